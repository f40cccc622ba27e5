// Those who compute a product: a plan on a device, or a peer.

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// entrant computes a product as often as it is asked to.
type entrant interface {
	// again computes the product so many times back to back and returns how long one took on average.
	again(ctx context.Context, times int) (took time.Duration, clock string, err error)
	// check computes the product of a round once and has it verified.
	check(ctx context.Context, r *round) error
	// describe adds what there is to say of the entrant; called once, when the median is known.
	describe(ctx context.Context, r *Result) error
	close()
}

// planned is a plan with its operands on the device.
type planned struct {
	plan  *spmm.Plan
	b, c  spmm.Operand
	out   dtype.Type                                // of C
	right func(ctx context.Context, r *round) error // what is in c
	shut  []func() error
	bytes int64 // of B and C
}

// enter prepares a matrix on a device, and its operands.
func enter(ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (*planned, error) {
	switch o.Precision.Storage() {
	case dtype.F16:
		return enterAs[half.F16, float32](ctx, dev, a, b, o)
	case dtype.BF16:
		return enterAs[half.BF16, float32](ctx, dev, a, b, o)
	case dtype.F64:
		return enterAs[float64, float64](ctx, dev, a, b, o)
	}
	return enterAs[float32, float32](ctx, dev, a, b, o)
}

// enterAs has A and B of type T, and C of type O.
func enterAs[T formats.Value, O oracle.Number](ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (e *planned, err error) {
	p := &planned{out: formats.TypeOf[O]()}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.plan, err = spmm.Prepare(ctx, dev, formats.Convert[T](a), o); err != nil {
		return nil, err
	}
	p.shut = append(p.shut, p.plan.Close)
	tb, tc, err := spmm.TensorsFor[T, O](p.plan, b.Cols)
	if err != nil {
		return nil, err
	}
	p.shut = append(p.shut, tb.Close, tc.Close)
	p.b, p.c = tb, tc
	p.right = func(ctx context.Context, r *round) error {
		c := formats.NewDense[O](a.Rows, b.Cols)
		if err := tc.Download(ctx, c); err != nil {
			return err
		}
		bits, _ := p.plan.Reproduced()
		return verify(ctx, r, p.plan.Info().Precision, p.out, bits, c)
	}
	p.bytes = int64(b.Cols) * (int64(a.Cols)*int64(o.Precision.Storage().Size()) + int64(p.out.Size())*int64(a.Rows))
	return p, tb.Upload(ctx, formats.ConvertDense[T](b))
}

func (p *planned) again(ctx context.Context, times int) (time.Duration, string, error) {
	t, err := p.plan.Repeat(ctx, times, 1, p.b, 0, p.c)
	clock := "device"
	if t.Device == 0 {
		clock = "host"
	}
	return t.Best() / time.Duration(times), clock, err
}

func (p *planned) check(ctx context.Context, r *round) error {
	if _, err := p.plan.Run(ctx, 1, p.b, 0, p.c); err != nil {
		return err
	}
	return p.right(ctx, r)
}

func (p *planned) describe(ctx context.Context, r *Result) error {
	i := p.plan.Info()
	r.Chosen, r.Variant, r.EncodeS = i.Format, i.Variant, i.EncodeTime.Seconds()
	r.Bytes = i.Stats.StoredBytes + p.bytes
	bound, err := p.plan.Observe(ctx, r.N, p.out, time.Duration(r.Median*float64(time.Microsecond)))
	r.AttainableUS = micros(bound.Time())
	return err
}

func (p *planned) close() {
	for i := len(p.shut) - 1; i >= 0; i-- {
		_ = p.shut[i]()
	}
}

// verify tells whether c is right, which was computed in a precision and rounded to a type, in reproducible mode of so many bits.
func verify[O oracle.Number](ctx context.Context, r *round, computed, out dtype.Type, bits int, c *formats.Dense[O]) (err error) {
	switch c := any(c).(type) {
	case *formats.Dense[float32]:
		err = r.Verify(ctx, problem[float32](r, computed, out), bits, c)
	case *formats.Dense[float64]:
		err = r.Verify64(ctx, problem[float64](r, computed, out), c)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return wrongError{err}
	}
	return err
}

// problem is what an output must be right for: operands as the precision rounds them.
func problem[O oracle.Number](r *round, computed, out dtype.Type) oracle.ProblemOf[O] {
	a, b := r.a, r.b
	switch r.prec.Storage() {
	case dtype.F16:
		a, b = formats.Convert[float32](formats.Convert[half.F16](a)), formats.ConvertDense[float32](formats.ConvertDense[half.F16](b))
	case dtype.BF16:
		a, b = formats.Convert[float32](formats.Convert[half.BF16](a)), formats.ConvertDense[float32](formats.ConvertDense[half.BF16](b))
	}
	return oracle.ProblemOf[O]{A: formats.Convert[O](a), B: formats.ConvertDense[O](b), Alpha: 1, Compute: computed, Out: out}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// wrongError is an answer that is not right.
type wrongError struct{ err error }

func (w wrongError) Error() string { return fmt.Sprintf("wrong answer: %v", w.err) }
