// A matrix on the right: C = alpha·B·A + beta·C is Cᵀ = alpha·Aᵀ·Bᵀ + beta·Cᵀ. The plan holds Aᵀ, and sees B and C as
// their transposes, which lie in the same memory in the other order. What it says to callers is in their terms.

package plan

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

// product describes a multiplication as the plan computes it, with its operands as the caller has them.
func (p *Plan) product(alpha float64, b *tensor.Tensor, beta float64, c *tensor.Tensor, e launch.Epilogue,
	times int) (launch.Product, error) {
	if p.right {
		b, c = b.Transposed(), c.Transposed()
		e.RowBias, e.ColBias = e.ColBias.Transposed(), e.RowBias.Transposed()
	}
	if p.sums() != dtype.F64 {
		alpha, beta = float64(float32(alpha)), float64(float32(beta))
	}
	bias, epilogue, err := e.Split()
	return launch.Product{B: b, C: c, Bias: bias, Alpha: alpha, Beta: beta, Epilogue: epilogue, Times: times}, err
}

// Describe returns the plan's Info in the caller's terms: Rows and Cols are those of the matrix that is multiplied
// by, on whichever side.
func (p *Plan) Describe() Info {
	i := p.Info
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

// columnsOfB names the dimension that a product may have any number of.
func columnsOfB(right bool) string {
	if right {
		return "rows of B"
	}
	return "columns of B"
}

// what is columnsOfB for the plan.
func (p *Plan) what() string { return columnsOfB(p.right) }
