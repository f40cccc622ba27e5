// A product by a plan of package spmm: its element types, the host's memory, what is checked.

package conformance

import (
	"context"
	"io"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// product multiplies an instance twice, and wants the same bits.
func product(ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan) (*outputs, error) {
	switch t.b {
	case dtype.F16:
		return productB[half.F16](ctx, r, t, p, plan)
	case dtype.BF16:
		return productB[half.BF16](ctx, r, t, p, plan)
	case dtype.F64:
		return productB[float64](ctx, r, t, p, plan)
	}
	return productB[float32](ctx, r, t, p, plan)
}

func productB[B formats.Value](ctx context.Context, r *runner, t *test, p *instance,
	plan *spmm.Plan) (*outputs, error) {
	b := place[B](p.b, t.bcol, t.pad)
	switch t.c {
	case dtype.F16:
		return productC[half.F16](ctx, r, t, p, plan, b)
	case dtype.BF16:
		return productC[half.BF16](ctx, r, t, p, plan, b)
	case dtype.F64:
		return productC[float64](ctx, r, t, p, plan, b)
	}
	return productC[float32](ctx, r, t, p, plan, b)
}

func productC[C, B formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan,
	b *formats.Dense[B]) (*outputs, error) {
	before := p.c
	if before == nil {
		before = formats.NewDense[float64](p.m, p.n)
	}
	c := place[C](before, t.ccol, t.pad)
	mem := backend.Bytes(c.Data)
	if p.c == nil { // it must not be read
		copy(mem, filled(len(mem)))
	}
	kept := slices.Clone(mem)
	if t.right { // what the plan is given, in the same memory
		b, c = b.Transpose(), c.Transpose()
	}
	width := c.Cols
	if c.ColMajor {
		width = c.Rows
	}
	var outs [2]*outputs
	for i := range outs {
		copy(mem, kept)
		err := once(ctx, r, t, p, plan, b, c, i == 1)
		if err == nil {
			err = samePadding(t.c, width, max(1, c.LD), kept, mem)
		}
		if err != nil {
			return nil, err
		}
		outs[i] = collect(t.c, p.m, p.n, c.LD, c.ColMajor != t.right, mem)
	}
	return outs[0], alike(outs[0], outs[1])
}

// newBias returns an instance's bias where a plan multiplies, to be closed, and whether it has an element for each row
// of what the plan sees as C.
func newBias(ctx context.Context, r *runner, t *test, p *instance,
	plan *spmm.Plan) (x io.Closer, rowwise bool, err error) {
	d := formats.NewDense[float64](1, len(p.bias))
	rowwise = (p.epilogue.Bias == spec.RowBias) != t.right
	if rowwise {
		d = formats.NewDense[float64](len(p.bias), 1)
	}
	copy(d.Data, p.bias)
	switch t.bias {
	case dtype.F16:
		x, err = biasOf[half.F16](ctx, r, t, plan, d)
	case dtype.BF16:
		x, err = biasOf[half.BF16](ctx, r, t, plan, d)
	case dtype.F64:
		x, err = biasOf[float64](ctx, r, t, plan, d)
	default:
		x, err = biasOf[float32](ctx, r, t, plan, d)
	}
	return x, rowwise, err
}

// biasOf makes a bias' tensor: on one device in the order of C, so that its elements lie side by side in some cases,
// and apart in others; of two devices on the second.
func biasOf[T formats.Value](ctx context.Context, r *runner, t *test, plan *spmm.Plan,
	d *formats.Dense[float64]) (io.Closer, error) {
	x, err := newTensor[T](r, plan, d.Rows, d.Cols, t.ccol, spmm.On(1))
	if err != nil {
		return nil, err
	}
	if err := x.Upload(ctx, place[T](d, t.ccol, t.pad)); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// place returns d in elements of type T, in an order, and with NaN in the padding if there is any.
func place[T formats.Value](d *formats.Dense[float64], colMajor, pad bool) *formats.Dense[T] {
	ld := 0
	if pad {
		ld = d.Cols + 3
		if colMajor {
			ld = d.Rows + 3
		}
	}
	s := d.Layout(colMajor, ld)
	out := &formats.Dense[T]{Rows: d.Rows, Cols: d.Cols, LD: s.LD, ColMajor: colMajor, Data: make([]T, len(s.Data))}
	mem := backend.Bytes(out.Data)
	copy(mem, filled(len(mem)))
	lines := d.Rows
	if colMajor {
		lines = d.Cols
	}
	for i := range lines {
		formats.ConvertSlice(out.Line(i), s.Line(i))
	}
	return out
}
