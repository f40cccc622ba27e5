// Chains of multiplications, each of which takes what the one before left: by one Run after the other, and as a
// sequence.

package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
)

// What a chain is, and how it is measured.
const (
	chainFile   = "testdata/matrices/dwt_992.mtx.gz"
	chainLength = 16
	chainCols   = 32
	chainRuns   = 400 // of each way, by turns; the median counts
	chainOften  = 64  // chains in one list, to measure the device alone
)

// chains prints a table for each backend and matrix.
func chains(r *runner) error {
	files := []string{chainFile}
	if r.files != "" {
		var err error
		if files, err = filepath.Glob(r.files); err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no file %s", r.files)
		}
	}
	for _, name := range strings.Split(r.backends, ",") {
		for _, f := range files {
			if err := chainOn(name, f); err != nil {
				return fmt.Errorf("%s, %s: %w", name, f, err)
			}
		}
	}
	return nil
}

func chainOn(backend, file string) error {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, backend)
	if err != nil {
		return err
	}
	defer dev.Close()
	a, err := load.File(ctx, file, load.Options{})
	if err != nil {
		return err
	}
	if a.Rows != a.Cols {
		return fmt.Errorf("a matrix of %d×%d: a chain needs a square one", a.Rows, a.Cols)
	}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Cols: chainCols})
	if err != nil {
		return err
	}
	defer plan.Close()
	c, err := newChain(ctx, dev, plan, a.Rows)
	if err != nil {
		return err
	}
	defer c.seq.Close()
	info := plan.Info()
	fmt.Printf("\n%v, %s (%d×%d, %d entries), N=%d, %s/%s: a chain of %d multiplications, µs\n\n",
		dev.Info(), filepath.Base(file), a.Rows, a.Cols, a.NNZ(), chainCols, info.Format, info.Variant, chainLength)
	return c.measure(ctx)
}

// chain multiplies x to y and y to x, by turns.
type chain struct {
	plan *spmm.Plan
	x, y *spmm.Tensor[float32]
	seq  *spmm.Sequence
	b    *formats.Dense[float32] // what x holds at first
}

// alpha keeps the numbers of a chain from growing without bound.
const alpha = 1. / 16

func newChain(ctx context.Context, dev *spmm.Device, plan *spmm.Plan, n int) (*chain, error) {
	c := &chain{plan: plan, seq: dev.NewSequence(), b: formats.NewDense[float32](n, chainCols)}
	for i := range c.b.Data {
		c.b.Data[i] = float32(i%17) - 8
	}
	var err error
	if c.x, c.y, err = spmm.TensorsFor[float32, float32](plan, chainCols); err != nil {
		return nil, err
	}
	return c, c.each(func(b, c2 *spmm.Tensor[float32]) error { return c.seq.Add(plan, alpha, b, 0, c2) })
}

// each gives the operands of the multiplications to f, in order.
func (c *chain) each(f func(b, c *spmm.Tensor[float32]) error) error {
	from, to := c.x, c.y
	for range chainLength {
		if err := f(from, to); err != nil {
			return err
		}
		from, to = to, from
	}
	return nil
}

// way is a way to run a chain, and what it took.
type way struct {
	name   string
	run    func() (spmm.Timing, error) // Device is of the whole chain
	host   []time.Duration
	device []time.Duration
}

// ways are those to run a chain, and last one product by itself.
func (c *chain) ways(ctx context.Context) []*way {
	return []*way{
		{name: fmt.Sprintf("%d times Plan.Run", chainLength), run: func() (sum spmm.Timing, err error) {
			start := time.Now()
			err = c.each(func(b, out *spmm.Tensor[float32]) error {
				t, err := c.plan.Run(ctx, alpha, b, 0, out)
				sum.Device += t.Device
				return err
			})
			sum.Host = time.Since(start)
			return sum, err
		}},
		{name: "Sequence.Run", run: func() (spmm.Timing, error) {
			start := time.Now()
			t, err := c.seq.Run(ctx)
			t.Host = time.Since(start)
			return t, err
		}},
		{name: "Sequence.Start and Wait", run: func() (spmm.Timing, error) {
			start := time.Now()
			p, err := c.seq.Start(ctx)
			if err != nil {
				return spmm.Timing{}, err
			}
			t, err := p.Wait(ctx)
			t.Host = time.Since(start)
			return t, err
		}},
		{name: "one Plan.Run", run: func() (spmm.Timing, error) {
			start := time.Now()
			t, err := c.plan.Run(ctx, alpha, c.x, 0, c.y)
			t.Host = time.Since(start)
			return t, err
		}},
	}
}

// alone is what a chain takes the device by itself: many multiplications in one list.
func (c *chain) alone(ctx context.Context) (time.Duration, error) {
	var times []time.Duration
	for range 15 {
		t, err := c.plan.Repeat(ctx, chainOften*chainLength, alpha, c.x, 0, c.y)
		if err != nil {
			return 0, err
		}
		times = append(times, t.Best()/chainOften)
	}
	return median(times), nil
}

// measure prints what each way takes, after it has seen that all leave the same bits.
func (c *chain) measure(ctx context.Context) error {
	ways := c.ways(ctx)
	one := ways[len(ways)-1]
	if err := c.compare(ctx, ways[:len(ways)-1]); err != nil {
		return err
	}
	least, err := c.alone(ctx)
	if err != nil {
		return err
	}
	for range chainRuns {
		for _, w := range ways {
			t, err := w.run()
			if err != nil {
				return err
			}
			w.host, w.device = append(w.host, t.Host), append(w.device, t.Device)
		}
	}
	fmt.Println("| way | host | device | host beyond the device alone | heap objects |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: |")
	fmt.Printf("| the device alone, of %d in one list | | %.1f | | |\n", chainOften*chainLength, micros(least))
	for _, w := range ways {
		work := least
		if w == one {
			work /= chainLength
		}
		objects, err := w.objects()
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %.2f |\n", w.name, micros(median(w.host)), micros(median(w.device)), micros(median(w.host)-work), objects)
	}
	beyond, overhead, verdict := median(ways[1].host)-least, median(one.host)-least/chainLength, "no more than"
	if beyond > overhead {
		verdict = "more than"
	}
	fmt.Printf("\nSequence.Run takes %.1f µs beyond the device's time: %s the %.1f µs that one multiplication takes beyond its own.\n",
		micros(beyond), verdict, micros(overhead))
	return nil
}

// objects returns how many heap objects a run makes, the fewest of several: the runtime makes some now and then.
func (w *way) objects() (float64, error) {
	const rounds, runs = 3, 50
	fewest := math.Inf(1)
	for range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if _, err := w.run(); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		fewest = min(fewest, float64(after.Mallocs-before.Mallocs)/runs)
	}
	return fewest, nil
}

// compare runs each way twice from the same start, and refuses other bits than the first way's.
func (c *chain) compare(ctx context.Context, ways []*way) error {
	var want *formats.Dense[float32]
	for _, w := range ways {
		if err := c.x.Upload(ctx, c.b); err != nil {
			return err
		}
		for range 2 { // a sequence's second run is the recorded one
			if _, err := w.run(); err != nil {
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
			return fmt.Errorf("%s leaves other bits than %s", w.name, ways[0].name)
		}
	}
	return nil
}

func median(ts []time.Duration) time.Duration {
	ts = slices.Sorted(slices.Values(ts))
	return ts[len(ts)/2]
}
