// Which operands a plan refuses.

package plan

import (
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/shaders/spec"
)

// check refuses operands that do not fit together.
func (p *Plan) check(q launch.Product) error {
	b, c := q.B, q.C
	switch {
	case p.closed.Load():
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	case b == nil || c == nil:
		return errors.New("B or C is missing")
	case b.Device() != p.dev || c.Device() != p.dev:
		return fmt.Errorf("A, B and C must be on one device, and A is on %v", p.dev.Info())
	case b == c:
		return errors.New("B and C must be two matrices: C is written while B is read")
	}
	if err := p.sides().CheckDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return err
	}
	if b.RowBlocks() > 1 || b.ColBlocks() != c.ColBlocks() ||
		b.ColBlock != c.ColBlock || c.Rows > 0 && c.RowBlock != min(p.rowBlock, c.Rows) {
		if p.right {
			b, c = b.Transposed(), c.Transposed()
			return fmt.Errorf("B lies in blocks of %d×%d and C of %d×%d, but A of %d×%d on the right needs C in blocks of %d columns, B in whole rows, and the same rows in both (TensorsFor makes such)",
				b.RowBlock, b.ColBlock, c.RowBlock, c.ColBlock, p.Cols, p.Rows, p.rowBlock)
		}
		return fmt.Errorf("B lies in blocks of %d×%d and C of %d×%d, but A of %d×%d needs C in blocks of %d rows, B in whole columns, and the same columns in both (TensorsFor makes such)",
			b.RowBlock, b.ColBlock, c.RowBlock, c.ColBlock, p.Rows, p.Cols, p.rowBlock)
	}
	if err := c.Odd(); err != nil {
		return err
	}
	if b.Overlaps(c) {
		return errors.New("B and C lie in the same memory: C is written while B is read")
	}
	if err := p.checkBias(q); err != nil {
		return err
	}
	return p.exec.Takes(q)
}

// checkBias refuses a bias that does not fit C.
func (p *Plan) checkBias(q launch.Product) error {
	if q.Bias == nil {
		return nil
	}
	c, t, rowwise := q.C, q.Bias, q.Epilogue.Bias == spec.RowBias
	if p.right { // as the caller has them
		c, t, rowwise = c.Transposed(), t.Transposed(), !rowwise
	}
	rows, cols, name := c.Rows, 1, "row bias"
	if !rowwise {
		rows, cols, name = 1, c.Cols, "column bias"
	}
	switch {
	case t.Device() != p.dev:
		return fmt.Errorf("the bias must be on the plan's device, %v", p.dev.Info())
	case t == c || t.Overlaps(c):
		return errors.New("the bias and C must be two matrices: C is written while the bias is read")
	case t.Rows != rows || t.Cols != cols:
		return fmt.Errorf("shapes do not fit: C is %d×%d, the %s is %d×%d; want %d×%d", c.Rows, c.Cols, name, t.Rows,
			t.Cols, rows, cols)
	case t.RowBlocks()*t.ColBlocks() > 1:
		return fmt.Errorf("the %s lies in %d blocks: it must be one (NewTensor makes such)", name,
			t.RowBlocks()*t.ColBlocks())
	}
	return nil
}
