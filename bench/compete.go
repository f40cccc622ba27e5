// Plans that take part: each is right before it is timed.

package main

import (
	"context"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// compete multiplies with a plan, once to look whether it is right. The entrant closes the plan.
func compete[O oracle.Number, T formats.Value](ctx context.Context, plan *spmm.Plan, a *formats.CSR[T], b *formats.Dense[T], n int) (*entrant, error) {
	x, y, err := spmm.TensorsFor[T, O](plan, n)
	if err != nil {
		plan.Close()
		return nil, err
	}
	e := &entrant{close: func() { x.Close(); y.Close(); plan.Close() }, plan: plan, b: x, c: y}
	e.again = func(batch int) (time.Duration, error) {
		t, err := plan.Repeat(ctx, batch, 1, x, 0, y)
		return t.Best(), err
	}
	if err := x.Upload(ctx, b); err != nil {
		e.close()
		return nil, err
	}
	_, err = e.again(1)
	c := formats.NewDense[O](a.Rows, n)
	if err == nil {
		err = y.Download(ctx, c)
	}
	if err == nil {
		err = right(ctx, a, b, c, plan.Info().Precision)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// right tells whether a sample of C keeps the bound of the conformance suite.
func right[T formats.Value, O oracle.Number](ctx context.Context, a *formats.CSR[T], b *formats.Dense[T], c *formats.Dense[O], compute dtype.Type) error {
	const sample = 1000
	got, err := oracle.Check(ctx, oracle.ProblemOf[O]{
		A: formats.Convert[O](a), B: formats.ConvertDense[O](b), Alpha: 1, Compute: compute, Out: formats.TypeOf[O](),
	}, c, sample)
	if err == nil && !got.OK() {
		err = got.First
	}
	return err
}
