// Running a case through package spmm, the library's front door.

package conformance

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// planInfo is what a plan reports of itself.
type planInfo struct {
	variant  string
	bits     int // in reproducible mode
	lossless bool
}

// front multiplies by Multiply or by Plan.Run and returns the outputs, and the plan if there was one.
func (r *runner) front(ctx context.Context, t *test, p *instance, o spmm.Options) (*outputs, *planInfo, error) {
	if r.spoil != nil {
		p = r.spoil(p)
	}
	switch t.a {
	case dtype.F16:
		return frontA[half.F16](ctx, r, t, p, o)
	case dtype.BF16:
		return frontA[half.BF16](ctx, r, t, p, o)
	case dtype.F64:
		return frontA[float64](ctx, r, t, p, o)
	}
	return frontA[float32](ctx, r, t, p, o)
}

func frontA[A formats.Value](ctx context.Context, r *runner, t *test, p *instance, o spmm.Options) (*outputs, *planInfo, error) {
	a := formats.Convert[A](p.a)
	if t.turned != t.right {
		a = a.Transpose()
	}
	o.Transpose, o.Right = t.turned, t.right
	if r.group != nil {
		return groupA(ctx, r, t, p, a, o)
	}
	plan, err := prepareA(ctx, r, t, p, a, o)
	if plan != nil {
		defer plan.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	info := &planInfo{variant: plan.Info().Variant}
	out, err := frontPlan(ctx, r, t, p, plan)
	info.bits, info.lossless = plan.Reproduced()
	if err == nil && t.changed != "" {
		err = asFresh(ctx, r, t, p, a, o, out)
	}
	return out, info, err
}

// asGiven returns A as a program would have it: for a format that takes only matrices which store every element, as a dense
// one.
func asGiven[A formats.Value](t *test, a *formats.CSR[A]) formats.Encoded {
	if t.kernel.Full {
		if d, err := a.Full(); err == nil {
			return d
		}
	}
	return a
}

func frontPlan(ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan) (*outputs, error) {
	switch t.b {
	case dtype.F16:
		return frontB[half.F16](ctx, r, t, p, plan)
	case dtype.BF16:
		return frontB[half.BF16](ctx, r, t, p, plan)
	case dtype.F64:
		return frontB[float64](ctx, r, t, p, plan)
	}
	return frontB[float32](ctx, r, t, p, plan)
}

func frontB[B formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan) (*outputs, error) {
	b := place[B](p.b, t.bcol, t.pad)
	switch t.c {
	case dtype.F16:
		return frontC[B, half.F16](ctx, r, t, p, plan, b)
	case dtype.BF16:
		return frontC[B, half.BF16](ctx, r, t, p, plan, b)
	case dtype.F64:
		return frontC[B, float64](ctx, r, t, p, plan, b)
	}
	return frontC[B, float32](ctx, r, t, p, plan, b)
}

func frontC[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan, b *formats.Dense[B]) (*outputs, error) {
	before := p.c
	if before == nil {
		before = formats.NewDense[float64](p.m, p.n)
	}
	c := place[C](before, t.ccol, t.pad)
	if p.c == nil { // it must not be read
		copy(backend.Bytes(c.Data), filled(len(backend.Bytes(c.Data))))
	}
	kept := slices.Clone(backend.Bytes(c.Data))
	if t.right { // what the plan is given, in the same memory
		b, c = b.Transpose(), c.Transpose()
	}
	if t.reuse && t.path == host {
		for _, o := range otherProducts(p, b) {
			if _, err := spmm.Multiply(ctx, plan, o.alpha, o.b, o.beta, c); err != nil {
				return nil, err
			}
			copy(backend.Bytes(c.Data), kept)
		}
	}
	first, err := once(ctx, r, t, p, plan, b, c, kept, false)
	if err != nil {
		return nil, err
	}
	copy(backend.Bytes(c.Data), kept)
	second, err := once(ctx, r, t, p, plan, b, c, kept, true)
	if err != nil {
		return nil, err
	}
	return first, alike(first, second)
}

// once multiplies and returns C, whose memory was kept before. It looks at the device's memory if this is the last run.
func once[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan, b *formats.Dense[B], c *formats.Dense[C], kept []byte, last bool) (*outputs, error) {
	look := func() error {
		if last {
			return r.dev.intact(ctx)
		}
		return nil
	}
	e, bias, err := newEpilogue(ctx, r.door, t, p)
	if err != nil {
		return nil, err
	}
	defer bias.Close()
	if t.path == host {
		if _, err = spmm.Multiply(ctx, plan, p.alpha, b, p.beta, c, e); err == nil {
			err = look()
		}
	} else {
		err = onDevice(ctx, r.door, plan, t, p, e, b, c, look)
	}
	if err != nil {
		return nil, err
	}
	width := c.Cols
	if c.ColMajor {
		width = c.Rows
	}
	mem := backend.Bytes(c.Data)
	if err := samePadding(t.c, width, max(1, c.LD), kept, mem); err != nil {
		return nil, err
	}
	return collect(t.c, p.m, p.n, c.LD, c.ColMajor != t.right, mem), nil
}

// onDevice multiplies tensors, and looks at memory while they are there.
func onDevice[B, C formats.Value](ctx context.Context, dev *spmm.Device, plan *spmm.Plan, t *test, p *instance, e spmm.Epilogue, b *formats.Dense[B], c *formats.Dense[C], look func() error) error {
	x, err := spmm.NewTensor[B](dev, b.Rows, b.Cols, b.ColMajor)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := spmm.NewTensor[C](dev, c.Rows, c.Cols, c.ColMajor)
	if err != nil {
		return err
	}
	defer y.Close()
	if err := x.Upload(ctx, b); err != nil {
		return err
	}
	if t.reuse {
		for _, o := range otherProducts(p, b) {
			if err := errors.Join(x.Upload(ctx, o.b), y.Upload(ctx, c)); err != nil {
				return err
			}
			if _, err := plan.Run(ctx, o.alpha, x, o.beta, y); err != nil {
				return err
			}
		}
		if err := x.Upload(ctx, b); err != nil {
			return err
		}
	}
	if p.c != nil {
		if err := y.Upload(ctx, c); err != nil {
			return err
		}
	}
	if _, err := plan.Run(ctx, p.alpha, x, p.beta, y, e); err != nil {
		return err
	}
	if err := y.Download(ctx, c); err != nil {
		return err
	}
	return look()
}

// otherProduct is what a plan multiplies before an instance's product.
type otherProduct[B formats.Value] struct {
	alpha, beta float64
	b           *formats.Dense[B]
}

// otherProducts are products that differ from the instance's in alpha, in beta, in both, and in B, which is of ones: in
// reproducible mode few bits suffice for it. A plan that has multiplied them must not take them for the instance's.
func otherProducts[B formats.Value](p *instance, b *formats.Dense[B]) []otherProduct[B] {
	ones := *b
	one := make([]B, 1)
	formats.ConvertSlice(one, []float64{1})
	ones.Data = slices.Repeat(one, len(b.Data))
	return []otherProduct[B]{{p.alpha, p.beta + 1, b}, {p.alpha * 3, p.beta, b}, {3, 0, b}, {p.alpha, p.beta, &ones}}
}

// newEpilogue returns an instance's epilogue as package spmm takes it, and its bias on the device, to be closed. The bias is
// in the order of C, so that its elements lie side by side in some cases, and apart in others.
func newEpilogue(ctx context.Context, dev *spmm.Device, t *test, p *instance) (spmm.Epilogue, io.Closer, error) {
	switch t.bias {
	case dtype.F16:
		return epilogueOf[half.F16](ctx, dev, t, p)
	case dtype.BF16:
		return epilogueOf[half.BF16](ctx, dev, t, p)
	case dtype.F64:
		return epilogueOf[float64](ctx, dev, t, p)
	}
	return epilogueOf[float32](ctx, dev, t, p)
}

func epilogueOf[T formats.Value](ctx context.Context, dev *spmm.Device, t *test, p *instance) (spmm.Epilogue, io.Closer, error) {
	e := spmm.Epilogue{Activation: spmm.Activation(p.epilogue.Activation)}
	if p.bias == nil {
		return e, io.NopCloser(nil), nil
	}
	d := formats.NewDense[float64](1, len(p.bias))
	rowwise := (p.epilogue.Bias == spec.RowBias) != t.right
	if rowwise {
		d = formats.NewDense[float64](len(p.bias), 1)
	}
	copy(d.Data, p.bias)
	x, err := spmm.NewTensor[T](dev, d.Rows, d.Cols, t.ccol)
	if err != nil {
		return e, nil, err
	}
	if rowwise {
		e.RowBias = x
	} else {
		e.ColBias = x
	}
	if err := x.Upload(ctx, place[T](d, t.ccol, t.pad)); err != nil {
		x.Close()
		return e, nil, err
	}
	return e, x, nil
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
