// Tuning: measuring the candidates instead of predicting.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// Candidates within nearBest times the best prediction are measured, and at least nearLeast.
const (
	nearBest  = 3
	nearLeast = 2
)

// A measurement is the best of up to tuneRuns batches, within tuneTime if that allows two.
const (
	tuneBatch = 2 * time.Millisecond
	tuneRuns  = 8
	tuneTime  = 200 * time.Millisecond
)

// tune prepares the matrix for every candidate that is predicted to be near the best, multiplies with each,
// keeps the fastest and remembers it.
func tune(ctx context.Context, d *Device, a *source, cs []*candidate, o Options) (*Plan, error) {
	var best *Plan
	var times []measured
	var refused error // the first
	for _, c := range worth(cs) {
		p, m, err := try(ctx, d, a, c, o)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrDeviceLost):
			closeAll(best, p)
			return nil, errors.Join(ctx.Err(), err)
		case err != nil: // this one cannot: out of memory, say
			refused = firstOf(refused, err)
			continue
		case best == nil || m.Time < slices.MinFunc(times, compareTimes).Time:
			best, p = p, best
		}
		closeAll(p)
		times = append(times, m)
	}
	if best == nil {
		return nil, refused
	}
	if recall(d, a, o) == nil { // each matrix counts once
		d.learn(cs, times)
	}
	r := newRecord(d, a, o, cs, times)
	best.Why = r.why("when measured")
	r.save() // what cannot be remembered is measured again
	return best, nil
}

func closeAll(ps ...*Plan) {
	for _, p := range ps {
		if p != nil {
			p.Close()
		}
	}
}

// worth returns those of the ranked candidates that are worth measuring.
func worth(cs []*candidate) []*candidate {
	n := 0
	for n < len(cs) && cs[n].cost != unlikely && (n < nearLeast || float64(cs[n].cost) <= nearBest*float64(cs[0].cost)) {
		n++
	}
	return cs[:max(1, n)]
}

// try prepares the matrix for a candidate and measures it.
func try(ctx context.Context, d *Device, a *source, c *candidate, o Options) (*Plan, measured, error) {
	m := measured{Format: c.kernel.Name, Variant: c.variant.Name}
	p, err := newFor(ctx, d, a, c)
	if err != nil {
		return nil, m, err
	}
	if m.Time, err = p.measure(ctx, o.cols()); err != nil {
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
	ts, err := p.dev.NewTensors(bs, cs)
	if err != nil {
		return 0, err
	}
	b, c := ts[0], ts[1]
	defer b.Close()
	defer c.Close()
	for i, buf := range b.blocks {
		if err := fill(ctx, buf, b.blockLayout(i/b.colBlocks(), i%b.colBlocks()).bytes()); err != nil {
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
	p.launcher.close()
}

// best returns the time of the fastest of several batches.
func (p *Plan) best(ctx context.Context, b, c *Tensor) (time.Duration, error) {
	once, err := p.Run(ctx, 1, b, 0, c, Epilogue{}) // brings the kernel onto the device, too
	if err != nil {
		return 0, err
	}
	best, batch, start := time.Duration(math.MaxInt64), 1, time.Now()
	for i := 0; i < tuneRuns && (i < 2 || time.Since(start) < tuneTime); i++ {
		t, err := p.Repeat(ctx, batch, 1, b, 0, c, Epilogue{})
		if err != nil {
			return 0, err
		}
		best = min(best, t.Best()/time.Duration(batch))
		if i == 0 {
			batch = int(min(64, 1+tuneBatch/max(1, min(best, once.Best()))))
		}
	}
	return best, nil
}

// measured is how long a variant took.
type measured struct {
	Format  string        `json:"format"`
	Variant string        `json:"variant"`
	Time    time.Duration `json:"ns"`
}

func compareTimes(x, y measured) int { return cmp.Compare(x.Time, y.Time) }

// why says what the times, fastest first, show.
func (r *record) why(when string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "it took %s %s", short(r.Times[0].Time), when)
	for i, m := range r.Times[1:] {
		fmt.Fprintf(&b, "%s %s/%s %s", pick(i == 0, ", and", ","), m.Format, m.Variant, short(m.Time))
	}
	return b.String()
}
