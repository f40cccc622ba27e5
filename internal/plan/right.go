// A matrix on the right: C = alpha·B·A + beta·C is Cᵀ = alpha·Aᵀ·Bᵀ + beta·Cᵀ. The plan holds Aᵀ, and sees B and C as
// their transposes, which lie in the same memory in the other order. What it says to callers is in their terms.

package plan

import (
	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

// product describes a multiplication as the plan computes it, with its operands as the caller has them.
func (p *Plan) product(alpha float64, b tensor.Operand, beta float64, c tensor.Operand, e launch.Epilogue,
	times int) (q launch.Product, err error) {
	if p.sums() != dtype.F64 {
		alpha, beta = float64(float32(alpha)), float64(float32(beta))
	}
	q.Alpha, q.Beta, q.Times = alpha, beta, times
	if q.B, err = tensor.One(b); err != nil {
		return q, err
	}
	if q.C, err = tensor.One(c); err != nil {
		return q, err
	}
	if q.Bias, q.Epilogue, err = e.Split(); err != nil || !p.right {
		return q, err
	}
	q.B, q.C, q.Bias, q.Epilogue = q.B.Transposed(), q.C.Transposed(), q.Bias.Transposed(), q.Epilogue.Turned()
	return q, nil
}

// Describe returns the plan's PlanInfo in the caller's terms: Rows and Cols are those of the matrix that is multiplied
// by, on whichever side.
func (p *Plan) Describe() api.PlanInfo {
	i := p.PlanInfo
	if p.right {
		i.Rows, i.Cols = i.Cols, i.Rows
	}
	return i
}

// Shapes returns how B (K×n) and C (M×n) are to lie on the device for this plan: whole where the device can bind
// that, else in the largest blocks it can. On the right they are n×K and n×M. A limit that no blocks can meet is
// ErrUnsupported.
func (p *Plan) Shapes(n int, bType dtype.Type, bColMajor bool, cType dtype.Type, cColMajor bool) (b, c tensor.Shape,
	err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, c, err = p.shapes(n, bType, bColMajor != p.right, cType, cColMajor != p.right)
	if p.right {
		b, c = b.Transposed(), c.Transposed()
	}
	return b, c, err
}

// TensorsFor allocates B and C as Shapes has them, row-major.
func (p *Plan) TensorsFor(n int, b, c dtype.Type) (tensor.Operand, tensor.Operand, error) {
	sb, sc, err := p.Shapes(n, b, false, c, false)
	if err != nil {
		return nil, nil, err
	}
	ts, err := tensor.NewAll(p.dev, sb, sc)
	if err != nil {
		return nil, nil, err
	}
	return ts[0], ts[1], nil
}

// columnsOfB names the dimension that a product may have any number of.
func columnsOfB(right bool) string {
	if right {
		return "rows of B"
	}
	return "columns of B"
}

// what is columnsOfB for the plan.
func (p *Plan) what() string { return columnsOfB(p.right) }
