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
	Alone   time.Duration // what the busiest workgroup takes by itself
}

// Time is the attainable time: the largest of the three that do not depend on how work is shared out.
func (b Bound) Time() time.Duration { return max(b.Memory, b.Gather, b.Compute) }

// sum is what the three take one after another, which tells formats apart that share a largest limit; and no
// less than the busiest workgroup.
func (b Bound) sum() time.Duration { return max(b.Memory+b.Gather+b.Compute, b.Alone) }

// bound returns the least time for some work done by a variant. A ceiling that is not known does not
// bound.
func (c *Ceilings) bound(v *spec.Variant, w work) Bound {
	rate := c.FMA
	if len(v.Need.Shapes) > 0 {
		rate = c.Matrix[matrixKey(v.Need.Shapes[0])]
	}
	return Bound{Memory: at(w.bytes, c.stream(w.bytes)), Gather: at(w.gather, c.Gather), Compute: at(w.flops, rate)}
}

// predict returns the least times of a multiplication of a, packed with stats s, by n columns on a device of so
// many units; nearby is as in fetched.
func (c *Ceilings) predict(units int, v *spec.Variant, a formats.Sparse, s formats.Stats, nearby int64, n int) Bound {
	rows, cols := a.Dims()
	b := c.bound(v, newWork(rows, cols, n, v.In, s, fetched(s, nearby), dtype.F32))
	b.Alone = c.alone(units, v, a, s, n)
	return b
}

// alone returns the least time of the workgroup with most to do, where a format gives whole rows to workgroups:
// it fetches no faster than one of the device's cores. (On an H200 a core does 45 GB/s and a workgroup alone
// 10 in a long run.) s may be those of a sample without the longest row.
func (c *Ceilings) alone(units int, v *spec.Variant, a formats.Sparse, s formats.Stats, n int) time.Duration {
	if s.Longest == 0 || units == 0 {
		return 0
	}
	ptr, _ := pattern(a)
	longest := s.Longest
	for i := range len(ptr) - 1 {
		longest = max(longest, ptr[i+1]-ptr[i])
	}
	columns := n
	if cols := int(v.Const("COLS")); cols > 0 {
		columns = min(n, cols)
	}
	return at(longest*int64(columns)*int64(v.In.Storage().Size()), c.Gather/float64(units))
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
		w = p.fixed.work(w, p.Cols, n, p.fetched)
	}
	return c.bound(p.variant, w), nil
}
