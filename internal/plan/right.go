// A matrix on the right: C = alpha·B·A + beta·C is Cᵀ = alpha·Aᵀ·Bᵀ + beta·Cᵀ. The plan holds Aᵀ, and sees B and C as their
// transposes, which lie in the same memory in the other order. What it says to callers is in their terms.

package plan

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/tensor"
)

// product describes a multiplication as the plan computes it, with its operands as the caller has them.
func (p *Plan) product(alpha float64, b Operand, beta float64, c Operand, e Epilogue, times int) (product, error) {
	if p.right {
		e.RowBias, e.ColBias = e.ColBias, e.RowBias
	}
	if p.sums() != dtype.F64 {
		alpha, beta = float64(float32(alpha)), float64(float32(beta))
	}
	q := product{alpha: alpha, beta: beta, times: times}
	var err error
	if q.bias, q.epilogue, err = e.split(); err != nil {
		return q, err
	}
	if q.b, err = OneTensor(b); err != nil {
		return q, err
	}
	if q.c, err = OneTensor(c); err != nil {
		return q, err
	}
	if p.right {
		q.b, q.c, q.bias = q.b.Transposed(), q.c.Transposed(), q.bias.Transposed()
	}
	return q, nil
}

// Describe returns the plan's Info in the caller's terms: Rows and Cols are those of the matrix that is multiplied by, on
// whichever side.
func (p *Plan) Describe() Info {
	i := p.Info
	if p.right {
		i.Rows, i.Cols = i.Cols, i.Rows
	}
	return i
}

// Shapes returns how B (K×n) and C (M×n) are to lie on the device for this plan: whole where the device can bind that, else
// in the largest blocks it can. On the right they are n×K and n×M. A limit that no blocks can meet is ErrUnsupported.
func (p *Plan) Shapes(n int, bType dtype.Type, bColMajor bool, cType dtype.Type, cColMajor bool) (b, c tensor.Shape, err error) {
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

// checkDims tells whether C = A·B is possible for B and C of these sizes, as the plan sees them.
func (p *Plan) checkDims(bRows, bCols, cRows, cCols int) error {
	switch {
	case bRows == p.Cols && cRows == p.Rows && bCols == cCols:
		return nil
	case p.right:
		return fmt.Errorf("shapes do not fit: A, on the right, is %d×%d, B is %d×%d, C is %d×%d; want B n×%d and C n×%d",
			p.Cols, p.Rows, bCols, bRows, cCols, cRows, p.Cols, p.Rows)
	}
	return fmt.Errorf("shapes do not fit: A is %d×%d, B is %d×%d, C is %d×%d; want B %d×n and C %d×n",
		p.Rows, p.Cols, bRows, bCols, cRows, cCols, p.Cols, p.Rows)
}
