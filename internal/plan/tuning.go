// Tuning: plans for several candidates. The fastest is kept.

package plan

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// A measurement is the best of up to tuneRuns batches of about tuneBatch, of up to tuneMost products, within tuneTime
// if that allows two.
const (
	tuneBatch = 2 * time.Millisecond
	tuneMost  = 128
	tuneRuns  = 8
	tuneTime  = 200 * time.Millisecond
)

// tune makes a plan for every candidate that is predicted to be near the best, multiplies with each, keeps the fastest
// and remembers it.
func tune(ctx context.Context, d *device.Device, w *work.Work) (*Plan, error) {
	cs, err := choose.Choose(ctx, d, w)
	if err != nil {
		return nil, err
	}
	if len(cs) == 1 {
		return build(ctx, d, w, fastWay(w, cs[0]))
	}
	var best *Plan
	var times []choose.Measured
	var refused error // the first
	for i, c := range choose.Near(cs) {
		p, m, err := try(ctx, d, w, c, i == 0)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrDeviceLost):
			closeAll(best, p)
			return nil, errors.Join(ctx.Err(), err)
		case err != nil: // this one cannot: out of memory, say
			refused = cmp.Or(refused, err)
			continue
		case best == nil || m.Time < slices.MinFunc(times, choose.CompareTimes).Time:
			best, p = p, best
		}
		closeAll(p)
		times = append(times, m)
	}
	if best == nil {
		return nil, refused
	}
	best.Why = choose.Remember(d, w, cs, times)
	return best, nil
}

func closeAll(ps ...*Plan) {
	for _, p := range ps {
		if p != nil {
			p.Close()
		}
	}
}

// try prepares the matrix for a candidate and measures it, twice if it is the first: a device that was idle is slow.
func try(
	ctx context.Context, d *device.Device, w *work.Work, c *choose.Candidate, first bool,
) (*Plan, choose.Measured, error) {
	m := choose.Measured{Format: c.Kernel.Name, Variant: c.Variant.Name}
	p, err := build(ctx, d, w, fastWay(w, c))
	if err != nil {
		return nil, m, err
	}
	m.Time, err = p.measure(ctx, w.Cols)
	if first && err == nil {
		m.Time, err = p.measure(ctx, w.Cols)
	}
	if err != nil {
		p.Close()
		return nil, m, err
	}
	return p, m, nil
}

// measure returns the time of a multiplication by n columns of random numbers.
func (p *Plan) measure(ctx context.Context, n int) (time.Duration, error) {
	bs, cs, err := p.Shapes(n, p.Precision.Storage(), false, p.sums(), false)
	if err != nil {
		return 0, err
	}
	ts, err := tensor.NewAll(p.dev, bs, cs)
	if err != nil {
		return 0, err
	}
	b, c := ts[0], ts[1]
	defer b.Close()
	defer c.Close()
	for j := range b.ColBlocks() { // B is in whole columns
		if err := device.Fill(ctx, b.Block(0, j), b.BlockLayout(0, j).Size()); err != nil {
			return 0, err
		}
	}
	defer p.drop()
	return p.best(ctx, b, c)
}

// drop forgets launches and frees the buffers that serve them alone.
func (p *Plan) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.launcher.Close()
}

// best returns the time of the fastest of several batches.
func (p *Plan) best(ctx context.Context, b, c *tensor.Tensor) (time.Duration, error) {
	var once api.Timing
	for range 2 { // the first brings the kernel onto the device, too
		var err error
		if once, err = p.Run(ctx, 1, b, 0, c, launch.Epilogue{}); err != nil {
			return 0, err
		}
	}
	times := int(min(tuneMost, 1+tuneBatch/max(1, once.Best())))
	p.drop() // what a sequence has of its own
	batch := p.batch(times, b, c)
	defer batch.Close()
	best, start := time.Duration(math.MaxInt64), time.Now()
	for i := 0; i < tuneRuns && (i < 2 || time.Since(start) < tuneTime); i++ {
		t, err := batch.run(ctx)
		if err != nil {
			return 0, err
		}
		best = min(best, t.Best()/time.Duration(times))
	}
	return best, nil
}

// batch is a plan's product, a number of times.
type batch struct {
	run func(ctx context.Context) (api.Timing, error)
	*Sequence
}

// batch returns a batch that is recorded, if the plan's products can be: else short ones take as long as the host takes
// to submit them.
func (p *Plan) batch(times int, b, c *tensor.Tensor) batch {
	s := NewSequence(p.dev)
	for range times {
		if err := s.Add(p, 1, b, 0, c, launch.Epilogue{}); err != nil {
			s.Close()
			return batch{func(ctx context.Context) (api.Timing, error) {
				return p.Repeat(ctx, times, 1, b, 0, c, launch.Epilogue{})
			}, s}
		}
	}
	return batch{s.Run, s}
}
