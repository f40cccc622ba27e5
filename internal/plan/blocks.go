// Blocks of dense matrices: where B or C would exceed the buffers, the grid or the workspace that a device allows,
// they are cut into blocks of columns for each multiplication.

package plan

import (
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

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

// shapes is Shapes with the plan locked, of B and C as the plan sees them. It remembers its last answer.
func (p *Plan) shapes(n int, bType dtype.Type, bColMajor bool, cType dtype.Type, cColMajor bool) (b, c tensor.Shape,
	err error) {
	b = tensor.Shape{Rows: p.Cols, Cols: n, Type: bType, ColMajor: bColMajor}
	c = tensor.Shape{Rows: p.Rows, Cols: n, Type: cType, ColMajor: cColMajor, RowBlock: p.rowBlock}
	b.Tight, c.Tight = p.tight(b), p.tight(c)
	if p.closed.Load() {
		return b, c, fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	if err := tensor.CheckDim(n, p.what()); err != nil {
		return b, c, err
	}
	requested := [2]tensor.Shape{b, c}
	if requested != p.shapesKey {
		block, err := p.colBlock(b, c)
		if err != nil {
			return b, c, err
		}
		b.ColBlock, c.ColBlock = block, block
		p.shapesKey, p.shapesCached = requested, [2]tensor.Shape{b, c}
	}
	return p.shapesCached[0], p.shapesCached[1], nil
}

// tight tells whether rows of a matrix of this shape may lie side by side: the padding of few columns would be most
// of it.
func (p *Plan) tight(s tensor.Shape) bool {
	m, is := p.exec.(*fast)
	return is && m.Stream == nil && s.Cols <= spec.TightCols && !s.ColMajor && s.Type.Size() >= 4 && m.Tight(s.Cols)
}

// colBlock returns how many columns of B and C a block of each can have.
func (p *Plan) colBlock(b, c tensor.Shape) (int, error) {
	in, out, written := p.exec.Operands(b, c)
	block, limit := b.Cols, p.dev.Limit()
	column := max(tensor.Up(int64(p.Cols), tensor.Align)*int64(in), tensor.Up(int64(p.rowBlock),
		tensor.Align)*int64(out)) // bytes, at least a few
	if tensor.Up(int64(block), tensor.Align) > limit/column {
		block = int(limit / column / tensor.Align * tensor.Align)
	}
	if block == 0 && b.Cols > 0 {
		return 0, fmt.Errorf("%d %s (of %d elements) take %d bytes, and a buffer of %v holds at most %d: %w",
			tensor.Align, p.what(), p.Cols, column*tensor.Align, p.dev.Info(), limit, backend.ErrUnsupported)
	}
	for {
		err := p.exec.Check(block, written)
		if err == nil || !errors.Is(err, backend.ErrUnsupported) || block <= tensor.Align {
			return block, err
		}
		block = tensor.Up(block/2, tensor.Align)
	}
}
