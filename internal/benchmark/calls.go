// How the products of a batch are handed to a device: recorded as a sequence, as peers record theirs, in one list, or
// each by itself.

package benchmark

import (
	"context"
	"time"

	"github.com/spmmrun/spmm"
)

// Products of a batch that are recorded together: from fewest on unless Recorded is asked for, at most mostRecorded.
const fewestRecorded, mostRecorded = 8, 128

// calls repeats a plan's product.
type calls struct {
	dev      *spmm.Device
	plan     *spmm.Plan
	b, c     spmm.Operand
	add      func(*spmm.Sequence) error // what is recorded in place of plan's product; nil: that
	how      string                     // Way.Calls
	sequence *spmm.Sequence
	products int // in the sequence
	refused  bool
}

// repeat computes the product a number of times and returns how long that took.
func (r *calls) repeat(ctx context.Context, times int) (spmm.Timing, error) {
	switch r.how {
	case Listed:
		return r.list(ctx, times)
	case Apart:
		return r.apart(ctx, times)
	case Recorded:
		return r.recorded(ctx, times)
	}
	if r.refused || times < fewestRecorded {
		return r.list(ctx, times)
	}
	t, err := r.recorded(ctx, times)
	if err != nil && r.products == 0 && ctx.Err() == nil { // a sequence does not take such a plan
		r.refused = true
		return r.list(ctx, times)
	}
	return t, err
}

// list runs products back to back as one list of launches.
func (r *calls) list(ctx context.Context, times int) (spmm.Timing, error) {
	return r.plan.Repeat(ctx, times, 1, r.b, 0, r.c)
}

// apart starts each product by itself while those before still run: such do not overlap.
func (r *calls) apart(ctx context.Context, times int) (spmm.Timing, error) {
	var all spmm.Timing
	started := make([]*spmm.Pending, 0, times)
	for range times {
		p, err := r.plan.Start(ctx, 1, r.b, 0, r.c)
		if err != nil {
			return all, err
		}
		started = append(started, p)
	}
	for _, p := range started {
		t, err := p.Wait(ctx)
		if err != nil {
			return all, err
		}
		all.Device += t.Device
		all.Host += t.Host
	}
	return all, nil
}

// recorded runs a sequence of products as often as needed.
func (r *calls) recorded(ctx context.Context, times int) (spmm.Timing, error) {
	each := min(times, mostRecorded)
	var all spmm.Timing
	if err := r.record(ctx, each); err != nil {
		return all, err
	}
	runs := (times + each - 1) / each
	for range runs {
		t, err := r.sequence.Run(ctx)
		if err != nil {
			return all, err
		}
		all.Device += t.Device
		all.Host += t.Host
	}
	share := float64(times) / float64(runs*each)
	return spmm.Timing{Device: scaled(all.Device, share), Host: scaled(all.Host, share)}, nil
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// record makes a sequence of a number of products, and runs it once, as the second run is the first that is recorded.
func (r *calls) record(ctx context.Context, products int) error {
	if r.products == products {
		return nil
	}
	_ = r.close()
	r.sequence = r.dev.NewSequence()
	add := r.add
	if add == nil {
		add = func(s *spmm.Sequence) error { return s.Add(r.plan, 1, r.b, 0, r.c) }
	}
	for range products {
		if err := add(r.sequence); err != nil {
			return err
		}
	}
	if _, err := r.sequence.Run(ctx); err != nil {
		return err
	}
	r.products = products
	return nil
}

func (r *calls) close() error {
	if r.sequence == nil {
		return nil
	}
	s := r.sequence
	r.sequence, r.products = nil, 0
	return s.Close()
}
