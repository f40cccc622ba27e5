// Products on several devices with B and C in the host's memory: each device copies its part of B, multiplies, and
// copies its part of C back.

package many

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Multiply computes c = alpha·A·b + beta·c for data in the host's memory, as Plan.Multiply does. Where a device fails,
// the others stop and the error names it.
func (g *Plan) Multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e launch.Epilogue) (api.Timing, error) {
	start := time.Now()
	if g.all.Right {
		b, c = b.Transposed(), c.Transposed()
	}
	if err := g.all.CheckDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return api.Timing{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return api.Timing{}, err
	}
	t := newTally(len(g.plans))
	if g.most > 0 && b.Cols > g.most && (e.RowBias != nil || e.ColBias != nil) {
		return t.Timing, fmt.Errorf("%w, and a bias is for all at once", g.tooMany(b.Cols))
	}
	step := b.Cols
	if g.most > 0 {
		step = min(step, g.most)
	}
	for lo := 0; lo == 0 || lo < b.Cols; lo += max(1, step) { // C may be B: columns do not depend on each other
		hi := min(b.Cols, lo+step)
		if err := g.multiply(ctx, alpha, b.ColRange(lo, hi), beta, c.ColRange(lo, hi), e, t); err != nil {
			return t.Timing, err
		}
	}
	t.sum(start)
	return t.Timing, nil
}

// tooMany is the error of more columns than there is memory for.
func (g *Plan) tooMany(n int) error {
	return fmt.Errorf("%d %s, and there is memory for %d on the devices (Options.Memory): %w", n, g.all.Counted(), g.most, backend.ErrOutOfMemory)
}

// multiply is Multiply of as many columns as there is memory for, B and C as the plan sees them.
func (g *Plan) multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e launch.Epilogue, t *tally) error {
	es, err := g.epilogues(ctx, e, b.Cols, c.Type, t)
	if err != nil {
		return err
	}
	parts := g.share(b, c)
	copied := newGate(len(parts))
	err = together(ctx, len(parts), func(ctx context.Context, i int) error {
		q := parts[i]
		p := g.plans[q.device]
		if g.all.Right {
			q.b, q.c = q.b.Transposed(), q.c.Transposed()
		}
		tm, err := p.MultiplyTogether(ctx, alpha, q.b, beta, q.c, es[q.device], func() error { return copied.pass(ctx) })
		t.Each[q.device].Device += tm.Device
		t.Each[q.device].Host += tm.Host
		if err != nil {
			return named(p.Device(), err)
		}
		t.stream(p)
		return nil
	})
	return err
}

// task is one device's share of a product.
type task struct {
	device int
	b, c   tensor.Dense
}

// share cuts B and C as the plan sees them. Devices without rows or columns get no task, unless there are none at all.
func (g *Plan) share(b, c tensor.Dense) []task {
	bounds := g.bounds
	if g.Split == api.ByColumns {
		bounds = cutColumns(b.Cols, g.weights)
	}
	var ps []task
	for i := range g.plans {
		lo, hi := bounds[i], bounds[i+1]
		if lo == hi && (i > 0 || bounds[len(bounds)-1] > 0) {
			continue
		}
		if g.Split == api.ByColumns {
			ps = append(ps, task{i, b.ColRange(lo, hi), c.ColRange(lo, hi)})
		} else {
			ps = append(ps, task{i, b, c.RowRange(lo, hi)})
		}
	}
	return ps
}

// gate lets nobody pass before all have come: C may be B, which every device must have copied before any writes to it.
type gate struct {
	missing atomic.Int64
	open    chan struct{}
}

func newGate(n int) *gate {
	g := &gate{open: make(chan struct{})}
	g.missing.Store(int64(n))
	return g
}

func (g *gate) pass(ctx context.Context) error {
	if g.missing.Add(-1) == 0 {
		close(g.open)
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
