// What a multiplication takes of a device, and the least time that allows.

package plan

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// work is what one multiplication moves and computes.
type work struct {
	bytes  int64 // read and written at least once: A as stored, B, C
	gather int64 // bytes of B's rows as they are fetched
	flops  int64 // executed: two for each multiply-add, padding included
}

// newWork counts a product by n columns that fetches a number of rows of B.
func newWork(rows, cols, n int, prec dtype.Type, s formats.Stats, fetched int64, out dtype.Type) work {
	in := prec.Storage().Size()
	return work{
		bytes:  s.StoredBytes + int64(cols)*int64(n)*int64(in) + int64(rows)*int64(n)*int64(out.Size()),
		gather: fetched * int64(n) * int64(in),
		flops:  2 * s.MACs * int64(n),
	}
}

// fetched is the rows of B that come from beyond a core's own cache, nearby being those that rows near
// each other do not share.
func fetched(s formats.Stats, nearby int64) int64 {
	if s.Staged {
		return s.Gathers
	}
	return min(s.Gathers, nearby)
}

// Bound is the least time that each limit of a device allows.
type Bound struct {
	Memory  time.Duration // moving the bytes once
	Gather  time.Duration // fetching rows of B from cache
	Compute time.Duration
}

// Time is the attainable time: the largest of the three.
func (b Bound) Time() time.Duration { return max(b.Memory, b.Gather, b.Compute) }

// bound returns the least time for some work done by a variant. A ceiling that is not known does not
// bound.
func (c *Ceilings) bound(v *spec.Variant, w work) Bound {
	return Bound{Memory: at(w.bytes, c.stream(w.bytes)), Gather: at(w.gather, c.Gather), Compute: at(w.flops, c.rate(v))}
}

// at is the time that n units take at a rate per second, 0 if the rate is unknown.
func at(n int64, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / rate * float64(time.Second))
}

// Attainable returns the least time of a multiplication by n columns, C having elements of type out
// and not being read.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type) (Bound, error) {
	c, err := p.dev.Ceilings(ctx)
	if err != nil {
		return Bound{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := newWork(p.Rows, p.Cols, n, p.Precision, p.Stats, p.fetched, out)
	if p.fixed != nil {
		w = p.fixed.work(p.variant, w, p.Cols, n, p.fetched)
	}
	return c.bound(p.variant, w), nil
}
