// Blocks: what exceeds the buffers, the grid or the workspace that a device allows is cut. A into row
// ranges when it is prepared, B and C into blocks of columns for each multiplication.

package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// split returns the encoded matrix whole if the device can bind it, and a few columns of C for it, else
// encoded again in as many row ranges as it takes.
func (p *Plan) split(ctx context.Context, c *packed) ([]*spec.Encoded, error) {
	limit := p.dev.limit()
	encs := []*spec.Encoded{c.enc}
	p.rowBlock = max(1, p.Rows)
	for {
		ranges := (max(largest(encs), int64(up(p.rowBlock, align))*align*4)-1)/limit + 1
		if ranges == 1 {
			return encs, nil
		}
		block := partRows(ceil(p.rowBlock, int(min(ranges, 1<<20))), c.enc.Panel)
		if block >= p.rowBlock {
			return nil, fmt.Errorf("%d rows of the matrix take %d bytes in one array of format %s, and a buffer of %v at most %d: %w",
				p.rowBlock, largest(encs), p.Format, p.dev.Info(), limit, backend.ErrUnsupported)
		}
		p.rowBlock, encs = block, encs[:0]
		for lo := 0; lo < p.Rows; lo += block {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e, err := p.kern.Part(c.matrix.RowRange(lo, min(lo+block, p.Rows)), p.variant, c.enc)
			if err != nil {
				return nil, err
			}
			encs = append(encs, e)
		}
	}
}

// partRows rounds the rows of a part up so that no panel is cut: to a multiple of what the format wants kept
// together, and of rowAlign, or in small parts leastAlign, which is all that others' panels need.
func partRows(rows, panel int) int {
	const rowAlign, leastAlign = 128, 32
	to := leastAlign
	if rows > rowAlign {
		to = rowAlign
	}
	return up(rows, lcm(to, max(1, panel)))
}

func lcm(a, b int) int {
	x, y := a, b
	for y > 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// largest returns the bytes of the largest array.
func largest(encs []*spec.Encoded) int64 {
	var n int64
	for _, e := range encs {
		for _, a := range e.Arrays {
			n = max(n, int64(len(a.Data)))
		}
	}
	return n
}

// Shapes returns how B (K×n) and C (M×n) are to lie on the device for this plan: whole where the
// device can bind that, else in the largest blocks it can. A limit that no blocks can meet is
// ErrUnsupported.
func (p *Plan) Shapes(n int, bType dtype.Type, bColMajor bool, cType dtype.Type, cColMajor bool) (b, c Shape, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shapes(n, bType, bColMajor, cType, cColMajor)
}

// shapes is Shapes with the plan locked. It remembers its last answer.
func (p *Plan) shapes(n int, bType dtype.Type, bColMajor bool, cType dtype.Type, cColMajor bool) (b, c Shape, err error) {
	b = Shape{Rows: p.Cols, Cols: n, Type: bType, ColMajor: bColMajor}
	c = Shape{Rows: p.Rows, Cols: n, Type: cType, ColMajor: cColMajor, RowBlock: p.rowBlock}
	if p.closed {
		return b, c, errClosed
	}
	asked := [2]Shape{b, c}
	if asked != p.asked {
		block, err := p.colBlock(b, c)
		if err != nil {
			return b, c, err
		}
		b.ColBlock, c.ColBlock = block, block
		p.asked, p.told = asked, [2]Shape{b, c}
	}
	return p.told[0], p.told[1], nil
}

// colBlock returns how many columns of B and C a block of each can have.
func (p *Plan) colBlock(b, c Shape) (int, error) {
	in, out, written := b.Type.Size(), c.Type.Size(), c.Type
	if p.staged(b.Type, b.ColMajor) {
		in = max(in, p.Precision.Storage().Size())
	}
	if !p.direct(c.Type, c.ColMajor) {
		out, written = max(out, dtype.F32.Size()), dtype.F32
	}
	block, limit := b.Cols, p.dev.limit()
	column := max(int64(up(p.Cols, align))*int64(in), int64(up(p.rowBlock, align))*int64(out))
	if column*int64(up(block, align)) > limit {
		block = int(limit / column / align * align)
	}
	if block == 0 && b.Cols > 0 {
		return 0, fmt.Errorf("%d columns of B (%d rows) take %d bytes, and a buffer of %v holds at most %d: %w",
			align, p.Cols, column*align, p.dev.Info(), limit, backend.ErrUnsupported)
	}
	for {
		err := p.possible(block, written)
		if err == nil || !errors.Is(err, backend.ErrUnsupported) || block <= align {
			return block, err
		}
		block = up(block/2, align)
	}
}

// possible tells whether the kernel can multiply by n columns at once, within the device's limits.
func (p *Plan) possible(n int, out dtype.Type) error {
	if p.fixed != nil {
		if err := p.fixed.possible(p.dev, p.variant, p.Cols, n); err != nil {
			return err
		}
	}
	for _, pt := range p.parts {
		l, err := p.kern.Launch(p.variant, pt.enc, spec.Problem{
			M: pt.enc.Rows, K: pt.enc.Cols, N: n, LDB: up(n, align), LDC: up(n, align), Out: out, Alpha: 1, Caps: p.dev.Caps(),
		})
		if err != nil {
			return err
		}
		if l.Workspace > p.dev.limit() {
			return fmt.Errorf("the workspace for %d columns takes %d bytes, and a buffer of %v at most %d: %w",
				n, l.Workspace, p.dev.Info(), p.dev.limit(), backend.ErrUnsupported)
		}
	}
	return nil
}
