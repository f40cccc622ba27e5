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
	// again computes the product a number of times back to back and returns how long one took on average.
	again(ctx context.Context, times int) (took time.Duration, clock string, err error)
	// quiet waits until nothing that it leaves running could disturb the next.
	quiet(ctx context.Context)
	// describe adds what there is to say of the entrant; called once, when the median is known.
	describe(ctx context.Context, r *Result) error
	close()
}

// checked is an entrant that computes the product of a round once and has it verified.
type checked interface {
	check(ctx context.Context, r *round) error
}

// planned is a plan, with its operands where it needs them.
type planned struct {
	repeat     func(ctx context.Context, times int) (spmm.Timing, error)
	attainable func(ctx context.Context, took time.Duration) (spmm.Bound, error)
	info       func() spmm.PlanInfo
	several    bool                                      // devices share the product
	right      func(ctx context.Context, r *round) error // what is in C
	shut       []func() error
	bytes      int64              // of B and C
	quantised  *formats.Quantised // the matrix, if its values are
	onRight    bool               // C is Y = X·Aᵀ
}

// enter prepares the matrix of a round at a place in a way, and its operands.
func enter(ctx context.Context, at *place, r *round, o spmm.Options, way Way) (*planned, error) {
	switch t := o.Precision.Storage(); {
	case t == dtype.F16 && way.Right:
		return enterAs[half.F16, half.F16](ctx, at, r, o, way)
	case t == dtype.BF16 && way.Right:
		return enterAs[half.BF16, half.BF16](ctx, at, r, o, way)
	case t == dtype.F16:
		return enterAs[half.F16, float32](ctx, at, r, o, way)
	case t == dtype.BF16:
		return enterAs[half.BF16, float32](ctx, at, r, o, way)
	case t == dtype.F64:
		return enterAs[float64, float64](ctx, at, r, o, way)
	}
	return enterAs[float32, float32](ctx, at, r, o, way)
}

// enterAs has A and B of type T, and C of type O.
func enterAs[T, O formats.Value](
	ctx context.Context, at *place, r *round, o spmm.Options, way Way,
) (*planned, error) {
	out := formats.TypeOf[O]()
	column := int64(r.a.Cols)*int64(o.Precision.Storage().Size()) + int64(r.a.Rows)*int64(out.Size())
	p := &planned{several: at.several, onRight: way.Right, bytes: int64(r.n) * column}
	a, b := operands[T](r)
	var x formats.Encoded = a
	if t := way.quantised(); t != dtype.Invalid {
		var err error
		if p.quantised, _, err = formats.Quantise(r.a, t); err != nil {
			return nil, err
		}
		x = p.quantised
	}
	if err := prepare[T, O](ctx, p, at.dev, x, b, o, way); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// splits are the words of Way.Split.
var splits = map[string]spmm.Split{"": spmm.AutoSplit, "columns": spmm.ByColumns, "rows": spmm.ByRows}

// prepare makes the plan and its operands, where the plan needs them, or B on the first of several devices. Calls on a
// device by itself follow each other as the way says.
func prepare[T, O formats.Value](
	ctx context.Context, p *planned, dev *spmm.Device, a formats.Encoded, b *formats.Dense[T], o spmm.Options, way Way,
) error {
	if !p.several && (way.Split != "" || way.First) {
		return fmt.Errorf("%v: is for several devices: %w", way, spmm.ErrUnsupported)
	}
	o.Split, o.Memory = splits[way.Split], way.Memory
	plan, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		return err
	}
	p.shut = append(p.shut, plan.Close)
	if most := plan.Info().Columns; most > 0 && most < b.Cols {
		return fmt.Errorf("the devices have memory for %d columns of B and C at a time: %w", most, spmm.ErrOutOfMemory)
	}
	n := b.Cols
	if way.Right {
		b = b.Transpose()
	}
	tb, tc, err := spmm.TensorsFor[T, O](plan, n)
	if err != nil {
		return err
	}
	p.shut = append(p.shut, tb.Close, tc.Close)
	if way.First {
		if tb, err = spmm.NewTensorAt[T](plan, b.Rows, b.Cols, spmm.On(0)); err != nil {
			return err
		}
		p.shut = append(p.shut, tb.Close)
	}
	out := formats.TypeOf[O]()
	switch {
	case way.First:
		p.repeat = func(ctx context.Context, times int) (spmm.Timing, error) {
			return moving(times, func() (spmm.Timing, error) { return plan.Run(ctx, 1, tb, 0, tc) })
		}
	case p.several, way.Memory > 0:
		p.repeat = func(ctx context.Context, times int) (spmm.Timing, error) {
			return plan.Repeat(ctx, times, 1, tb, 0, tc)
		}
	default:
		r := &calls{dev: dev, plan: plan, b: tb, c: tc, how: way.Calls}
		p.shut = append(p.shut, r.close)
		p.repeat = r.repeat
	}
	p.attainable = func(ctx context.Context, took time.Duration) (spmm.Bound, error) {
		return plan.Observe(ctx, n, out, took)
	}
	p.info = plan.Info
	p.right = func(ctx context.Context, r *round) error {
		bits, _ := plan.Reproduced()
		return downloaded[O](ctx, p, r, tc, plan.Info().Precision, bits)
	}
	return tb.Upload(ctx, b)
}

// moving times products by the host's clock. B moves for each.
func moving(times int, run func() (spmm.Timing, error)) (spmm.Timing, error) {
	var all spmm.Timing
	for range times {
		t, err := run()
		if err != nil {
			return all, err
		}
		all.Host += t.Host
	}
	return all, nil
}

// downloaded verifies a C, or a Y, that lies on devices.
func downloaded[O formats.Value](
	ctx context.Context, p *planned, r *round, from *spmm.Tensor[O], computed dtype.Type, bits int,
) error {
	c := formats.NewDense[O](from.Dims())
	if err := from.Download(ctx, c); err != nil {
		return err
	}
	if p.onRight {
		c = c.Transpose().Layout(false, 0)
	}
	if d, ok := any(c).(*formats.Dense[float64]); ok {
		return verify(ctx, r, answer[float64]{d, computed, dtype.F64, bits, p.quantised})
	}
	d := formats.ConvertDense[float32](c)
	return verify(ctx, r, answer[float32]{d, computed, formats.TypeOf[O](), bits, p.quantised})
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

func (p *planned) quiet(context.Context) {}

func (p *planned) describe(ctx context.Context, r *Result) error {
	i := p.info()
	r.Chosen, r.Variant, r.Kernel, r.EncodeS = i.Format, i.Variant, i.Kernel, i.EncodeTime.Seconds()
	r.ChooseS, r.UploadS = i.ChooseTime.Seconds(), i.UploadTime.Seconds()
	if p.several {
		r.Split = i.Split.String()
	}
	r.Bytes = i.Stats.StoredBytes + p.bytes
	before, err := p.attainable(ctx, 0)
	if err != nil {
		return err
	}
	bound, err := p.attainable(ctx, time.Duration(r.Median*float64(time.Microsecond)))
	r.AttainableUS, r.BoundBy = micros(bound.Time()), boundBy(bound)
	r.Clamped = r.Median < micros(before.Time())
	if s := bound.Memory.Seconds(); s > 0 {
		r.ReadGBS = float64(r.Bytes) / s / 1e9
	}
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

// answer is an output, and how it came about.
type answer[O oracle.Number] struct {
	c         *formats.Dense[O]
	computed  dtype.Type         // the precision
	rounded   dtype.Type         // what C was rounded to
	bits      int                // of reproducible mode, else 0
	quantised *formats.Quantised // the matrix, if its values are
}

// verify tells whether an answer is right.
func verify[O oracle.Number](ctx context.Context, r *round, x answer[O]) (err error) {
	switch c := any(x.c).(type) {
	case *formats.Dense[float32]:
		err = r.Verify(ctx, problem[O, float32](r, x), x.bits, c)
	case *formats.Dense[float64]:
		err = r.Verify64(ctx, problem[O, float64](r, x), c)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return wrongError{err}
	}
	return err
}

// problem is the product that an answer is checked against, with operands as the precision rounds them.
func problem[O, N oracle.Number](r *round, x answer[O]) oracle.ProblemOf[N] {
	a, b := rounded[N](r)
	return oracle.ProblemOf[N]{
		A: a, B: b, Quantised: x.quantised, Alpha: 1, Compute: x.computed, Out: x.rounded,
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// wrongError is an answer that is not right.
type wrongError struct{ err error }

func (w wrongError) Error() string { return fmt.Sprintf("wrong answer: %v", w.err) }
