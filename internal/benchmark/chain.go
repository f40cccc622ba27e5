// Chains of multiplications. Each takes C of the one before for its B: by one Run after the other, and as a
// sequence.

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// What a chain is.
const (
	chainLength = 16
	chainCols   = 32
	chainOften  = 64      // chains in one list, to measure the device alone
	chainAlpha  = 1. / 16 // keeps the numbers of a chain from growing without bound
)

// Chains measures on each device, with each matrix, what a chain of multiplications takes by the host's clock, and
// how many heap objects it makes: called one by one, as a sequence, and many chains in one list, which is the
// device's time alone. The last result is of one multiplication by itself.
func Chains(ctx context.Context, t *Task) (*Report, error) {
	return t.each(ctx, len(t.Matrices), func(at *place, step int) ([]*contest, error) {
		dev, err := at.alone("chains")
		if err != nil {
			return nil, err
		}
		a, err := t.Open(ctx, t.Matrices[step])
		if err != nil {
			return nil, err
		}
		if a.Rows != a.Cols {
			return nil, fmt.Errorf("%s is of %d×%d: a chain needs a square matrix", t.Matrices[step], a.Rows, a.Cols)
		}
		return chainOn(ctx, dev, at.name, t.Matrices[step], a)
	})
}

func chainOn(ctx context.Context, dev *spmm.Device, name, matrix string, a *formats.CSR[float32]) ([]*contest, error) {
	c, err := newChain(ctx, dev, a)
	if err != nil {
		c.close()
		return nil, err
	}
	info := c.plan.Info()
	var all []*contest
	for _, w := range c.ways() {
		of := matrix
		if w.length > 1 {
			of = fmt.Sprintf("%d × %s", w.length, matrix)
		}
		all = append(all, &contest{entrant: w.timed, Result: Result{
			Case: Case{
				Matrix: of, N: chainCols, Precision: info.Precision.String(), Backend: name, Format: w.name,
				Mode: Fast,
			},
			Rows: a.Rows, Cols: a.Cols, NNZ: int64(w.length) * a.NNZ(), Chosen: info.Format, Variant: info.Variant,
		}})
	}
	all[0].entrant.(*timed).shut = []func() error{c.close}
	return all, c.compare(ctx, all[:len(all)-1])
}

// chain multiplies x to y and y to x, by turns.
type chain struct {
	plan *spmm.Plan
	x, y *spmm.Tensor[float32]
	seq  *spmm.Sequence
	b    *formats.Dense[float32] // what x holds at first
}

func newChain(ctx context.Context, dev *spmm.Device, a *formats.CSR[float32]) (*chain, error) {
	c := &chain{seq: dev.NewSequence(), b: formats.NewDense[float32](a.Rows, chainCols)}
	for i := range c.b.Data {
		c.b.Data[i] = float32(i%17) - 8
	}
	var err error
	if c.plan, err = spmm.Prepare(ctx, dev, a, spmm.Options{Cols: chainCols}); err != nil {
		return c, err
	}
	if c.x, c.y, err = spmm.TensorsFor[float32, float32](c.plan, chainCols); err != nil {
		return c, err
	}
	return c, c.each(func(b, out *spmm.Tensor[float32]) error { return c.seq.Add(c.plan, chainAlpha, b, 0, out) })
}

func (c *chain) close() error {
	err := c.seq.Close()
	if c.x != nil {
		err = errors.Join(err, c.x.Close(), c.y.Close())
	}
	if c.plan != nil {
		err = errors.Join(err, c.plan.Close())
	}
	return err
}

// each gives the operands of the multiplications to f, in order.
func (c *chain) each(f func(b, out *spmm.Tensor[float32]) error) error {
	from, to := c.x, c.y
	for range chainLength {
		if err := f(from, to); err != nil {
			return err
		}
		from, to = to, from
	}
	return nil
}

// chainWay is a way to run a chain, or one product.
type chainWay struct {
	name   string
	length int // multiplications
	*timed
}

// ways are those to run a chain, and last one product by itself.
func (c *chain) ways() []chainWay {
	run := func(ctx context.Context) error {
		return c.each(func(b, out *spmm.Tensor[float32]) error {
			_, err := c.plan.Run(ctx, chainAlpha, b, 0, out)
			return err
		})
	}
	sequence := func(ctx context.Context) error {
		_, err := c.seq.Run(ctx)
		return err
	}
	started := func(ctx context.Context) error {
		p, err := c.seq.Start(ctx)
		if err == nil {
			_, err = p.Wait(ctx)
		}
		return err
	}
	one := func(ctx context.Context) error {
		_, err := c.plan.Run(ctx, chainAlpha, c.x, 0, c.y)
		return err
	}
	list := &timed{clock: "device", run: func(ctx context.Context, times int) (time.Duration, error) {
		var all time.Duration
		for range times {
			t, err := c.plan.Repeat(ctx, chainOften*chainLength, chainAlpha, c.x, 0, c.y)
			if err != nil {
				return 0, err
			}
			all += t.Best() / chainOften
		}
		return all, nil
	}}
	return []chainWay{
		{"in one list", chainLength, list}, {"Plan.Run", chainLength, counted(run)}, {
			"Sequence.Run", chainLength, counted(sequence),
		},
		{"Sequence.Start and Wait", chainLength, counted(started)}, {"Plan.Run", 1, counted(one)},
	}
}

// counted times by the host's clock, and counts heap objects.
func counted(run func(ctx context.Context) error) *timed {
	x := byHost(run)
	x.complete = func(r *Result) error {
		n, err := objects(run)
		r.Objects = &n
		return err
	}
	return x
}

// objects returns how many heap objects a run makes, the fewest of several: the runtime makes some now and then.
func objects(run func(ctx context.Context) error) (float64, error) {
	const rounds, runs = 3, 50
	ctx, fewest := context.Background(), math.Inf(1)
	for range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if err := run(ctx); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		fewest = min(fewest, float64(after.Mallocs-before.Mallocs)/runs)
	}
	return fewest, nil
}

// compare runs each way but the first, which runs many chains, twice from the same start, and fails those that leave
// other bits than the one before them all.
func (c *chain) compare(ctx context.Context, all []*contest) error {
	var want *formats.Dense[float32]
	for _, w := range all[1:] {
		if err := c.x.Upload(ctx, c.b); err != nil {
			return err
		}
		for range 2 { // a sequence's second run is the recorded one
			if _, _, err := w.again(ctx, 1); err != nil {
				return err
			}
		}
		got := formats.NewDense[float32](c.b.Rows, c.b.Cols)
		if err := c.x.Download(ctx, got); err != nil {
			return err
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got.Data, want.Data) {
			if err := w.fail(wrongError{fmt.Errorf("other bits than %s leaves", all[1].Format)}); err != nil {
				return err
			}
		}
	}
	return nil
}
