// A job's product behind one interface: in one process (alone), or as a rank's share (ranked.go).

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
)

// task is a prepared matrix and what it is multiplied with. All methods but data and Close are collective where there
// are several ranks.
type task[T formats.Value, S oracle.Number] interface {
	data() *operands[T, S]
	// tensors allocates B and C.
	tensors() (*spmm.Tensor[T], *spmm.Tensor[S], error)
	// Repeat multiplies a number of times back to back.
	Repeat(ctx context.Context, times int, alpha float64, b spmm.Operand, beta float64, c spmm.Operand,
		e ...spmm.Epilogue) (spmm.Timing, error)
	// Reproduced is that of the last product.
	Reproduced() (bits int, lossless bool)
	// measure times the requested products and leaves C in c. It returns how long one of the last repeat took.
	measure(ctx context.Context, e spmm.Epilogue, c *formats.Dense[S], p *progress) (timings, spmm.Timing, error)
	// report describes the job and the times.
	report(ctx context.Context, e spmm.Epilogue, ts timings, last spmm.Timing, p *progress) (*report, error)
	// claim says how C is to be verified.
	claim(c *formats.Dense[S]) (claim[S], error)
	Close() error
}

// newTask prepares the matrix, and makes or reads what it is multiplied with.
func newTask[T formats.Value, S oracle.Number](ctx context.Context, x setup, p *progress) (task[T, S], error) {
	if x.r.Size() == 1 {
		return newAlone[T, S](ctx, x, p)
	}
	s := &share[T]{setup: x}
	t, is := any(s).(task[T, S])
	if !is {
		return nil, x.r.agree(errors.New("the C of ranks is of f32: use another --precision than f64"))
	}
	if err := s.prepare(ctx, p); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return t, nil
}

// alone is the whole product, on one device or several of this process.
type alone[T formats.Value, S oracle.Number] struct {
	*spmm.Plan
	setup
	*operands[T, S]
}

// newAlone prepares A, as its file has it if that is of the right type.
func newAlone[T formats.Value, S oracle.Number](ctx context.Context, x setup, p *progress) (*alone[T, S], error) {
	j := x.job
	q, err := newOperands[T, S](ctx, j, x.dev.Info(), x.a, p)
	if err != nil {
		return nil, err
	}
	what := "encoding"
	if j.tune {
		what = "measuring formats"
	}
	p.step(what, -1)
	o, err := j.sums(spmm.Options{
		Format: j.format, Variant: j.variant, Precision: x.prec, Cols: q.b.Cols, Tune: j.tune, Uses: j.uses,
		Right: j.right, Transpose: j.right,
		Split: splitOf[j.split], Memory: int64(j.memory),
	})
	if err != nil {
		return nil, err
	}
	var a formats.Encoded = q.quantised
	if q.quantised == nil {
		if a = q.original; a.Format() == "csr" || a.Type() != x.prec.Storage() {
			a = q.csr()
		}
	}
	plan, err := spmm.Prepare(ctx, x.dev, a, o)
	return &alone[T, S]{plan, x, q}, err
}

func (t *alone[T, S]) data() *operands[T, S] { return t.operands }

func (t *alone[T, S]) tensors() (*spmm.Tensor[T], *spmm.Tensor[S], error) {
	return spmm.TensorsFor[T, S](t.Plan, t.b.Cols)
}

func (t *alone[T, S]) measure(ctx context.Context, e spmm.Epilogue, c *formats.Dense[S], p *progress) (timings,
	spmm.Timing, error) {
	if n := t.Info().Columns; n > 0 && n < t.b.Cols {
		return t.fromHost(ctx, e, c, p)
	}
	return onDevices(ctx, t.setup, t, e, c, p)
}

// fromHost is onDevices where there is memory for some columns at a time: B and C are in the host's memory, and the
// times include what it takes to bring them to the devices and back.
func (t *alone[T, S]) fromHost(ctx context.Context, e spmm.Epilogue, c *formats.Dense[S], p *progress) (ts timings,
	last spmm.Timing, err error) {
	ts, err = timeRuns(t.job, p, func(times int) (spmm.Timing, error) {
		start := time.Now()
		for range times {
			if t.c0 != nil {
				copy(c.Data, t.c0.Data)
			}
			if last, err = spmm.Multiply(ctx, t.Plan, t.job.alpha, t.b, t.job.beta, c, e); err != nil {
				return spmm.Timing{}, err
			}
		}
		return spmm.Timing{Host: time.Since(start)}, nil
	})
	return ts, last, err
}

func (t *alone[T, S]) report(ctx context.Context, e spmm.Epilogue, ts timings, last spmm.Timing,
	p *progress) (*report, error) {
	p.step("measuring the device", -1)
	bound, err := t.Observe(ctx, t.b.Cols, formats.TypeOf[S](), ts.quantile(0.5), e)
	if err != nil {
		return nil, err
	}
	info := t.Info()
	if t.job.right { // the plan's matrix is Aᵀ
		info.Rows, info.Cols = info.Cols, info.Rows
	}
	r := newReport(t.setup, t.operands, info, ts, bound)
	if info.Split != spmm.AutoSplit {
		r.Group = newGroupReport(t.dev, t.Plan, last)
	}
	if bits, _ := t.Reproduced(); bits != 0 {
		r.Reproduced = reproduced(t.job, bits, t.operands)
	}
	r.Quantised = t.a.quantised
	return r, nil
}

func (t *alone[T, S]) claim(c *formats.Dense[S]) (claim[S], error) {
	x := claim[S]{c: c, problem: oracle.ProblemOf[S]{
		Quantised: t.quantised, A: formats.Convert[S](t.csr()), B: convertDense[S](t.b), C: t.c0,
		Alpha: float64(S(t.job.alpha)), Beta: float64(S(t.job.beta)), Epilogue: t.epilogue, Compute: t.Info().Precision,
		Out: formats.TypeOf[S](),
	}}
	if t.job.verify == "sample" {
		x.sample = sampleSize(sampleProducts, t.csr().NNZ(), t.rows, 1)
	}
	if t.quantised != nil && t.quantised != t.original {
		x.unquantised = t.original
	}
	return x, nil
}
