// Short products again and again: recorded as a sequence, as peers record theirs, so that the host's time for a call is in none of them.

package benchmark

import (
	"context"
	"time"

	"github.com/spmmrun/spmm"
)

// Products of a batch that are recorded together: from fewest on, at most mostRecorded.
const fewestRecorded, mostRecorded = 8, 128

// recorded repeats a plan's product. What a sequence refuses it runs call by call.
type recorded struct {
	dev      *spmm.Device
	plan     *spmm.Plan
	b, c     spmm.Operand
	sequence *spmm.Sequence
	products int // in the sequence
	refused  bool
}

// repeat returns what so many products took.
func (r *recorded) repeat(ctx context.Context, times int) (spmm.Timing, error) {
	each := min(times, mostRecorded)
	if r.refused || times < fewestRecorded || !r.record(ctx, each) {
		return r.plan.Repeat(ctx, times, 1, r.b, 0, r.c)
	}
	var all spmm.Timing
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

// record makes a sequence of so many products, and runs it once, as the second run is the first that is recorded. It returns false where a sequence
// takes no such plan.
func (r *recorded) record(ctx context.Context, products int) bool {
	if r.products == products {
		return true
	}
	_ = r.close()
	r.sequence, r.products = r.dev.NewSequence(), products
	for range products {
		if r.sequence.Add(r.plan, 1, r.b, 0, r.c) != nil {
			r.refused = true
			return false
		}
	}
	_, err := r.sequence.Run(ctx)
	r.refused = err != nil && ctx.Err() == nil
	return err == nil
}

func (r *recorded) close() error {
	if r.sequence == nil {
		return nil
	}
	s := r.sequence
	r.sequence, r.products = nil, 0
	return s.Close()
}
