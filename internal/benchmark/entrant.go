// Those who compute a product: a plan on a device, or a peer.

package benchmark

import (
	"context"
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
	// output computes the product once and returns it.
	output(ctx context.Context) (*formats.Dense[float32], error)
	// describe adds what there is to say of the entrant; called once, when the median is known.
	describe(ctx context.Context, r *Result) error
	close()
}

// planned is a plan with its operands on the device.
type planned struct {
	plan  *spmm.Plan
	b, c  spmm.Operand
	read  func(ctx context.Context, c *formats.Dense[float32]) error
	shut  []func() error
	bytes int64 // of B and C
}

// enter prepares a matrix on a device, and its operands.
func enter(ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (*planned, error) {
	switch o.Precision.Storage() {
	case dtype.F16:
		return enterAs[half.F16](ctx, dev, a, b, o)
	case dtype.BF16:
		return enterAs[half.BF16](ctx, dev, a, b, o)
	}
	return enterAs[float32](ctx, dev, a, b, o)
}

func enterAs[T formats.Value](ctx context.Context, dev *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], o spmm.Options) (e *planned, err error) {
	p := &planned{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.plan, err = spmm.Prepare(ctx, dev, formats.Convert[T](a), o); err != nil {
		return nil, err
	}
	p.shut = append(p.shut, p.plan.Close)
	tb, tc, err := spmm.TensorsFor[T, float32](p.plan, b.Cols)
	if err != nil {
		return nil, err
	}
	p.shut = append(p.shut, tb.Close, tc.Close)
	p.b, p.c, p.read = tb, tc, tc.Download
	p.bytes = int64(b.Cols) * (int64(a.Cols)*int64(o.Precision.Storage().Size()) + 4*int64(a.Rows))
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

func (p *planned) output(ctx context.Context) (*formats.Dense[float32], error) {
	if _, err := p.plan.Run(ctx, 1, p.b, 0, p.c); err != nil {
		return nil, err
	}
	rows, cols := p.c.Dims()
	c := formats.NewDense[float32](rows, cols)
	return c, p.read(ctx, c)
}

func (p *planned) describe(ctx context.Context, r *Result) error {
	i := p.plan.Info()
	r.Chosen, r.Variant, r.EncodeS = i.Format, i.Variant, i.EncodeTime.Seconds()
	r.Bytes = i.Stats.StoredBytes + p.bytes
	bound, err := p.plan.Observe(ctx, r.N, dtype.F32, time.Duration(r.Median*float64(time.Microsecond)))
	r.AttainableUS = micros(bound.Time())
	return err
}

func (p *planned) close() {
	for i := len(p.shut) - 1; i >= 0; i-- {
		_ = p.shut[i]()
	}
}

// problem is what a plan's output must be right for: operands as the precision rounds them.
func problem(a *formats.CSR[float32], b *formats.Dense[float32], requested, computed, out dtype.Type) oracle.Problem {
	p := oracle.Problem{A: a, B: b, Alpha: 1, Compute: computed, Out: out}
	switch requested.Storage() {
	case dtype.F16:
		p.A, p.B = formats.Convert[float32](formats.Convert[half.F16](a)), formats.ConvertDense[float32](formats.ConvertDense[half.F16](b))
	case dtype.BF16:
		p.A, p.B = formats.Convert[float32](formats.Convert[half.BF16](a)), formats.ConvertDense[float32](formats.ConvertDense[half.BF16](b))
	}
	return p
}

// computed is what an entrant forms products in, what it rounds C to, and in reproducible mode its precision.
func computed(e entrant, requested dtype.Type) (as, out dtype.Type, bits int) {
	switch e := e.(type) {
	case *planned:
		bits, _ := e.plan.Reproduced()
		return e.plan.Info().Precision, dtype.F32, bits
	case *algorithm:
		return requested, e.rounded, 0
	}
	return requested, dtype.F32, 0
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// wrongError is an answer that is not right.
type wrongError struct{ err error }

func (w wrongError) Error() string { return fmt.Sprintf("wrong answer: %v", w.err) }
