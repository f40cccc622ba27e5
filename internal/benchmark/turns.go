// Those who compute the same take turns, until the times of all are known well enough.

package benchmark

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm"
)

// Turns says how well times are to be known.
type Turns struct {
	// Interval is the half length of the median's interval, over the median, at which its time counts as known: 0.02
	// is ±2 %.
	Interval float64
	// Limit bounds the time that is spent on each entrant, on average.
	Limit time.Duration
}

// contest is an entrant with what it has reached.
type contest struct {
	entrant // nil if Error tells why
	Result
	least time.Duration // of one product while it was warmed
}

// fail keeps why there is no time, and returns errors that end the sweep.
func (c *contest) fail(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, spmm.ErrDeviceLost) {
		return err
	}
	c.drop()
	c.Error, c.Samples, c.Batch, c.Clock = err.Error(), nil, 0, ""
	c.Wrong = errors.As(err, new(wrongError))
	return nil
}

func (c *contest) drop() {
	if c.entrant != nil {
		c.entrant.close()
		c.entrant = nil
	}
}

const (
	warmups      = 3
	leastSamples = 7 // fewer have no interval worth the name
	mostSamples  = 1000
	mostBatch    = 50
	leastBatch   = time.Millisecond // a batch lasts as long, or is of mostBatch products
)

// measure has all take turns until every median is known well enough, or the limit is reached. Waiting between them
// does not count towards it. progress is told which part of the time has gone.
func (t Turns) measure(ctx context.Context, all []*contest, progress func(part float64)) error {
	for _, c := range all {
		if err := c.warm(ctx); err != nil {
			return err
		}
	}
	if err := sparePeers(ctx, all); err != nil {
		return err
	}
	live := slices.DeleteFunc(living(all), func(c *contest) bool { return c.Once })
	spent, limit := time.Duration(0), t.Limit*time.Duration(len(live))
	for i := 0; len(live) > 0 && i < mostSamples; i++ {
		if i >= leastSamples && (t.settled(live) || spent > limit) {
			break
		}
		for k := range live {
			c := live[(i+k)%len(live)] // nobody is always first
			took, err := c.sample(ctx)
			if err != nil {
				return err
			}
			spent += took
		}
		progress(min(1, max(float64(i)/mostSamples, spent.Seconds()/max(1e-9, limit.Seconds()))))
	}
	for _, c := range living(all) {
		c.Median = Median(c.Samples)
		if !c.Once { // one time has no interval
			c.Low, c.High = Interval(c.Samples)
		}
		c.Settled = c.Once || Spread(c.Samples) <= t.Interval
		if err := c.describe(ctx, &c.Result); err != nil {
			return err
		}
	}
	return nil
}

// slowPeer is how many times the time of the peers' best algorithm another takes that is measured only once.
const slowPeer = 20

// sparePeers measures the peers' algorithms once that are far slower than the best of them, and leaves them at that.
func sparePeers(ctx context.Context, all []*contest) error {
	peers := slices.DeleteFunc(living(all), func(c *contest) bool {
		_, is := c.entrant.(*algorithm)
		return !is
	})
	best := time.Duration(math.MaxInt64)
	for _, c := range peers {
		best = min(best, c.least)
	}
	for _, c := range peers {
		if c.least/slowPeer <= best {
			continue
		}
		c.Once, c.Batch = true, 1
		if _, err := c.sample(ctx); err != nil {
			return err
		}
	}
	return nil
}

// warm computes the product some times, and finds how many of them last long enough to be timed.
func (c *contest) warm(ctx context.Context) error {
	c.Batch = 1
	least := time.Duration(math.MaxInt64)
	defer func() { c.least = least }()
	for i := 0; i < warmups && c.entrant != nil; i++ {
		took, _, err := c.again(ctx, c.Batch)
		if err != nil {
			return c.fail(err)
		}
		c.quiet(ctx)
		least = min(least, max(1, took))
		c.Batch = int(min(mostBatch, 1+leastBatch/least))
	}
	return nil
}

// sample computes a batch and keeps its time, unless the entrant has failed before. It returns how long it took in
// all, without the wait behind it.
func (c *contest) sample(ctx context.Context) (time.Duration, error) {
	if c.entrant == nil {
		return 0, nil
	}
	start := time.Now()
	took, clock, err := c.again(ctx, c.Batch)
	spent := time.Since(start)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return spent, c.fail(err)
	}
	c.quiet(ctx)
	c.Clock = clock
	c.Samples = append(c.Samples, max(micros(took), 1e-3))
	return spent, nil
}

// living are those that have not failed.
func living(all []*contest) []*contest {
	return slices.DeleteFunc(slices.Clone(all), func(c *contest) bool { return c.entrant == nil })
}

func (t Turns) settled(live []*contest) bool {
	return !slices.ContainsFunc(living(live), func(c *contest) bool { return Spread(c.Samples) > t.Interval })
}

// results returns the results of all that were measured or failed.
func results(all []*contest) []Result {
	var out []Result
	for _, c := range all {
		if c.Error != "" || c.Median > 0 { // else it was interrupted
			out = append(out, c.Result)
		}
	}
	return out
}
