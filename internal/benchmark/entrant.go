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
	// rest waits until nothing is left of that which could disturb the next.
	rest(ctx context.Context)
	// check computes the product of a round once and has it verified.
	check(ctx context.Context, r *round) error
	// describe adds what there is to say of the entrant; called once, when the median is known.
	describe(ctx context.Context, r *Result) error
	close()
}

// planned is a plan of a device or a group, with its operands there.
type planned struct {
	repeat     func(ctx context.Context, times int) (spmm.Timing, error)
	attainable func(ctx context.Context, took time.Duration) (spmm.Bound, error)
	info       func() (i spmm.PlanInfo, split string)
	right      func(ctx context.Context, r *round) error // what is in C
	shut       []func() error
	bytes      int64 // of B and C
}

// enter prepares a matrix at a place, and its operands.
func enter(ctx context.Context, at *place, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (*planned, error) {
	switch o.Precision.Storage() {
	case dtype.F16:
		return enterAs[half.F16, float32](ctx, at, a, b, o)
	case dtype.BF16:
		return enterAs[half.BF16, float32](ctx, at, a, b, o)
	case dtype.F64:
		return enterAs[float64, float64](ctx, at, a, b, o)
	}
	return enterAs[float32, float32](ctx, at, a, b, o)
}

// enterAs has A and B of type T, and C of type O.
func enterAs[T formats.Value, O oracle.Number](ctx context.Context, at *place, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (*planned, error) {
	out := formats.TypeOf[O]()
	p := &planned{bytes: int64(b.Cols) * (int64(a.Cols)*int64(o.Precision.Storage().Size()) + int64(out.Size())*int64(a.Rows))}
	x, y := formats.Convert[T](a), formats.ConvertDense[T](b)
	var err error
	if at.group != nil {
		err = onGroup[T, O](ctx, p, at.group, x, y, o)
	} else {
		err = onDevice[T, O](ctx, p, at.devices[0], x, y, o)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// onDevice prepares on one device.
func onDevice[T formats.Value, O oracle.Number](ctx context.Context, p *planned, dev *spmm.Device, a *formats.CSR[T], b *formats.Dense[T], o spmm.Options) error {
	plan, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		return err
	}
	p.shut = append(p.shut, plan.Close)
	tb, tc, err := spmm.TensorsFor[T, O](plan, b.Cols)
	if err != nil {
		return err
	}
	p.shut = append(p.shut, tb.Close, tc.Close)
	r := &recorded{dev: dev, plan: plan, b: tb, c: tc}
	p.shut = append(p.shut, r.close)
	out := formats.TypeOf[O]()
	p.repeat = r.repeat
	p.attainable = func(ctx context.Context, took time.Duration) (spmm.Bound, error) {
		return plan.Observe(ctx, b.Cols, out, took)
	}
	p.info = func() (spmm.PlanInfo, string) { return plan.Info(), "" }
	p.right = func(ctx context.Context, r *round) error {
		bits, _ := plan.Reproduced()
		return downloaded[O](ctx, r, tc, plan.Info().Precision, bits)
	}
	return tb.Upload(ctx, b)
}

// onGroup prepares on a group, with B and C where its split needs them.
func onGroup[T formats.Value, O oracle.Number](ctx context.Context, p *planned, g *spmm.Group, a *formats.CSR[T], b *formats.Dense[T], o spmm.Options) error {
	plan, err := g.Prepare(ctx, a, spmm.GroupOptions{Options: o})
	if err != nil {
		return err
	}
	p.shut = append(p.shut, plan.Close)
	if most := plan.Info().Columns; most > 0 && most < b.Cols {
		return fmt.Errorf("the devices have memory for %d columns of B and C at a time: %w", most, spmm.ErrOutOfMemory)
	}
	tb, tc, err := spmm.GroupTensorsFor[T, O](plan, b.Cols)
	if err != nil {
		return err
	}
	p.shut = append(p.shut, tb.Close, tc.Close)
	out := formats.TypeOf[O]()
	p.repeat = func(ctx context.Context, times int) (spmm.Timing, error) {
		t, err := plan.Repeat(ctx, times, 1, tb, 0, tc)
		return t.Timing, err
	}
	p.attainable = func(ctx context.Context, _ time.Duration) (spmm.Bound, error) {
		return plan.Attainable(ctx, b.Cols, out)
	}
	p.info = func() (spmm.PlanInfo, string) { return plan.Info().PlanInfo, plan.Info().Split.String() }
	p.right = func(ctx context.Context, r *round) error {
		bits, _ := plan.Reproduced()
		return downloaded[O](ctx, r, tc, plan.Info().Precision, bits)
	}
	return tb.Upload(ctx, b)
}

// downloaded verifies a C that lies on devices.
func downloaded[O oracle.Number](ctx context.Context, r *round, from interface {
	Download(context.Context, *formats.Dense[O]) error
}, computed dtype.Type, bits int) error {
	c := formats.NewDense[O](r.a.Rows, r.n)
	if err := from.Download(ctx, c); err != nil {
		return err
	}
	return verify(ctx, r, computed, formats.TypeOf[O](), bits, c)
}

func (p *planned) again(ctx context.Context, times int) (time.Duration, string, error) {
	t, err := p.repeat(ctx, times)
	clock := "device"
	if t.Device == 0 {
		clock = "host"
	}
	return t.Best() / time.Duration(times), clock, err
}

func (p *planned) check(ctx context.Context, r *round) error {
	if _, err := p.repeat(ctx, 1); err != nil {
		return err
	}
	return p.right(ctx, r)
}

func (p *planned) rest(context.Context) {}

func (p *planned) describe(ctx context.Context, r *Result) error {
	i, split := p.info()
	r.Chosen, r.Variant, r.Kernel, r.Split, r.EncodeS = i.Format, i.Variant, i.Kernel, split, i.EncodeTime.Seconds()
	r.Bytes = i.Stats.StoredBytes + p.bytes
	bound, err := p.attainable(ctx, time.Duration(r.Median*float64(time.Microsecond)))
	r.AttainableUS, r.BoundBy = micros(bound.Time()), boundBy(bound)
	return err
}

// boundBy names the largest part of a bound.
func boundBy(b spmm.Bound) string {
	switch b.Time() {
	case 0:
		return ""
	case b.Memory:
		return "memory"
	case b.Gather:
		return "cache"
	}
	return "arithmetic"
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
