// Running a case through package spmm, the library's front door.

package conformance

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// planInfo is a plan's report of itself.
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
	if t.layout.sampled != "" {
		return frontSampled(ctx, r, t, p, o)
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

func frontA[A formats.Value](ctx context.Context, r *runner, t *test, p *instance,
	o spmm.Options) (*outputs, *planInfo, error) {
	a := formats.Convert[A](p.a)
	if t.turned != t.right {
		a = a.Transpose()
	}
	o.Transpose, o.Right = t.turned, t.right
	if r.group != nil {
		o.Split = r.group.split
	}
	plan, err := prepareA(ctx, r, t, p, a, o)
	if plan != nil {
		defer plan.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	info := &planInfo{variant: plan.Info().Variant}
	out, err := product(ctx, r, t, p, plan)
	info.bits, info.lossless = plan.Reproduced()
	if err == nil && t.changed != "" {
		err = asFresh(ctx, r, t, p, a, o, out)
	}
	return out, info, err
}

// once multiplies into C. It looks at the device's memory if this is the last run.
func once[B, C formats.Value](ctx context.Context, r *runner, t *test, p *instance, plan *spmm.Plan,
	b *formats.Dense[B], c *formats.Dense[C], last bool) error {
	look := func() error {
		if last || r.second != nil {
			return r.intact(ctx)
		}
		return nil
	}
	if t.reuse && t.path == host && !last {
		before := slices.Clone(c.Data)
		for _, o := range otherProducts(p, b) {
			if _, err := spmm.Multiply(ctx, plan, o.alpha, o.b, o.beta, c); err != nil {
				return err
			}
			copy(c.Data, before)
		}
	}
	e, bias, err := newEpilogue(ctx, r, t, p, plan)
	if err != nil {
		return err
	}
	defer bias.Close()
	if t.path != host {
		return onDevice(ctx, r, plan, t, p, e, b, c, look)
	}
	if _, err := spmm.Multiply(ctx, plan, p.alpha, b, p.beta, c, e); err != nil {
		return err
	}
	return look()
}

// onDevice multiplies tensors, and looks at memory while they are there. Of two devices B lies on the first and C on
// the second.
func onDevice[B, C formats.Value](ctx context.Context, r *runner, plan *spmm.Plan, t *test, p *instance,
	e spmm.Epilogue, b *formats.Dense[B], c *formats.Dense[C], look func() error) error {
	x, err := newTensor[B](r, plan, b.Rows, b.Cols, b.ColMajor, spmm.On(0))
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := newTensor[C](r, plan, c.Rows, c.Cols, c.ColMajor, spmm.On(1))
	if err != nil {
		return err
	}
	defer y.Close()
	if t.reuse {
		if err := x.Upload(ctx, b); err != nil {
			return err
		}
		for _, o := range otherProducts(p, b) {
			if err := errors.Join(x.Upload(ctx, o.b), y.Upload(ctx, c)); err != nil {
				return err
			}
			if _, err := plan.Run(ctx, o.alpha, x, o.beta, y); err != nil {
				return err
			}
		}
	}
	if err := x.Upload(ctx, b); err != nil {
		return err
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

// newTensor allocates a tensor on the device in an order, or on one of two devices, where all are row-major.
func newTensor[T formats.Value](r *runner, plan *spmm.Plan, rows, cols int, colMajor bool,
	at spmm.Placement) (*spmm.Tensor[T], error) {
	if r.group != nil {
		return spmm.NewTensorAt[T](plan, rows, cols, at)
	}
	return spmm.NewTensor[T](r.door, rows, cols, colMajor)
}

// otherProduct is a product that a plan computes before an instance's.
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

// newEpilogue returns an instance's epilogue as package spmm takes it, and its bias on the device, to be closed.
func newEpilogue(ctx context.Context, r *runner, t *test, p *instance,
	plan *spmm.Plan) (spmm.Epilogue, io.Closer, error) {
	e := spmm.Epilogue{Activation: spmm.Activation(p.epilogue.Activation)}
	if p.bias == nil {
		return e, io.NopCloser(nil), nil
	}
	x, rowwise, err := newBias(ctx, r, t, p, plan)
	if err != nil {
		return e, nil, err
	}
	if rowwise {
		e.RowBias = x.(spmm.Operand)
	} else {
		e.ColBias = x.(spmm.Operand)
	}
	return e, x, nil
}
