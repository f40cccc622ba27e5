// A matrix on the right: C = alpha·B·A + beta·C is Cᵀ = alpha·Aᵀ·Bᵀ + beta·Cᵀ. The plan holds Aᵀ, and sees B and C as
// their transposes, which lie in the same memory in the other order. What it says to callers is in their terms.

package plan

import (
	"fmt"

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
	q.B, q.C, q.Bias, q.Epilogue = q.B.Transposed(), q.C.Transposed(), q.Bias.Transposed(), q.Epilogue.Transposed()
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

// columnsOfB names the dimension that a product may have any number of.
func columnsOfB(right bool) string {
	if right {
		return "rows of B"
	}
	return "columns of B"
}

// what is columnsOfB for the plan.
func (p *Plan) what() string { return columnsOfB(p.right) }

// Sides are the sizes of a matrix as a plan multiplies with it, on the left, and the side that the caller has it on.
type Sides struct {
	Rows, Cols int
	Right      bool
}

// Counted names what B and C may have any number of.
func (s Sides) Counted() string { return columnsOfB(s.Right) }

func (p *Plan) sides() Sides { return Sides{p.Rows, p.Cols, p.right} }

// CheckDims tells whether C = A·B is possible for B and C of these sizes, as the plan sees them.
func (s Sides) CheckDims(bRows, bCols, cRows, cCols int) error {
	switch {
	case bRows == s.Cols && cRows == s.Rows && bCols == cCols:
		return nil
	case s.Right:
		return fmt.Errorf("shapes do not fit: A, on the right, is %d×%d, B is %d×%d, C is %d×%d; want B n×%d and C n×%d",
			s.Cols, s.Rows, bCols, bRows, cCols, cRows, s.Cols, s.Rows)
	}
	return fmt.Errorf("shapes do not fit: A is %d×%d, B is %d×%d, C is %d×%d; want B %d×n and C %d×n",
		s.Rows, s.Cols, bRows, bCols, cRows, cCols, s.Cols, s.Rows)
}
