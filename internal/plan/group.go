// Several devices that multiply together: each does some columns of B and C with all of A, or some rows of A and C with
// all of B.

package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
)

// Split is how devices share a product.
type Split uint8

// The splits.
const (
	AutoSplit Split = iota // by columns where A fits each device and that is predicted to be no slower, else by rows
	ByColumns              // of B and C: each device holds all of A
	ByRows                 // of A and C: each device takes all of B
)

func (s Split) String() string {
	switch s {
	case AutoSplit:
		return "auto"
	case ByColumns:
		return "columns"
	case ByRows:
		return "rows"
	}
	return fmt.Sprintf("Split(%d)", uint8(s))
}

// GroupOptions say how to bring a matrix onto several devices.
type GroupOptions struct {
	Options
	Split  Split
	Memory int64 // bytes that may be used of each device; 0: what it has
}

// GroupPlan is a matrix on several devices. Its methods may be called from any goroutine; multiplications run one after
// another.
type GroupPlan struct {
	Split Split // ByColumns or ByRows
	Why   string

	all     Plan    // describes the whole matrix; it is on no device
	plans   []*Plan // one for each device
	weights []float64
	bounds  []int // ByRows: the rows of each device

	mu     sync.Mutex
	closed bool
}

// NewGroupPlan prepares a matrix, which is not needed afterwards, for devices that multiply together.
func NewGroupPlan(ctx context.Context, devs []*Device, a formats.Encoded, o GroupOptions) (*GroupPlan, error) {
	if err := o.validate(devs); err != nil {
		return nil, err
	}
	m, err := newDivided(a, &o.Options)
	if err != nil {
		return nil, err
	}
	s, err := decide(ctx, devs, m, o)
	if err != nil {
		return nil, err
	}
	g := &GroupPlan{Split: s.split, Why: s.why, weights: s.weights}
	rows, cols := m.Dims()
	g.all = Plan{Info: Info{Rows: rows, Cols: cols, NNZ: m.NNZ()}, right: o.Right}
	if s.split == ByRows {
		g.plans, g.bounds, err = m.byRows(ctx, devs, s.weights, o.Options)
	} else {
		g.plans, err = m.byColumns(ctx, devs, a, o.Options)
	}
	if err != nil {
		return nil, errors.Join(err, closePlans(g.plans))
	}
	return g, nil
}

// validate refuses what no matrix can make right.
func (o GroupOptions) validate(devs []*Device) error {
	switch {
	case len(devs) == 0:
		return errors.New("a group needs at least one device")
	case o.Split > ByRows:
		return fmt.Errorf("GroupOptions.Split: %v: want AutoSplit, ByColumns or ByRows", o.Split)
	case o.Memory < 0:
		return fmt.Errorf("GroupOptions.Memory: %d bytes", o.Memory)
	case o.Whole != (Extent{}):
		return errors.New("Options.Whole is for a device by itself")
	case o.Tune && len(devs) > 1:
		return errors.New("Options.Tune: tune on one device of the group: what is found is remembered for all of its kind")
	}
	return o.Validate()
}

// Describe returns the Info of the whole matrix, and that of each device's part of it, in the caller's terms.
func (g *GroupPlan) Describe() (whole Info, parts []Info) {
	for _, p := range g.plans {
		parts = append(parts, p.Describe())
	}
	whole = parts[0]
	of := g.all.Describe()
	whole.Rows, whole.Cols, whole.NNZ = of.Rows, of.Cols, of.NNZ
	return whole, parts
}

// Reproduced is Plan.Reproduced: the largest precision that a device took, and whether none lost anything.
func (g *GroupPlan) Reproduced() (bits int, lossless bool) {
	lossless = true
	for _, p := range g.plans {
		b, l := p.Reproduced()
		if b == 0 { // it had nothing to do
			continue
		}
		bits, lossless = max(bits, int(b)), lossless && l
	}
	return bits, lossless && bits > 0
}

// GroupTiming is how long a multiplication took on each device, and in all.
type GroupTiming struct {
	backend.Timing // Device is the slowest's
	Each           []backend.Timing
}

// Multiply computes c = alpha·A·b + beta·c for data in the host's memory, as Plan.Multiply does. Where a device fails, the
// others stop and the error names it.
func (g *GroupPlan) Multiply(ctx context.Context, alpha float32, b Dense, beta float32, c Dense, e Epilogue) (GroupTiming, error) {
	start := time.Now()
	if e.RowBias != nil || e.ColBias != nil {
		return GroupTiming{}, fmt.Errorf("a bias lies on one device, and the group has %d: %w", len(g.plans), backend.ErrUnsupported)
	}
	if g.all.right {
		b, c = b.turned(), c.turned()
	}
	if err := g.all.checkDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return GroupTiming{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return GroupTiming{}, fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	parts := g.share(b, c)
	t := GroupTiming{Each: make([]backend.Timing, len(g.plans))}
	run, ctx := errgroup.WithContext(ctx)
	copied := newGate(len(parts))
	for _, q := range parts {
		run.Go(func() error {
			p := g.plans[q.device]
			if g.all.right {
				q.b, q.c = q.b.turned(), q.c.turned()
			}
			tm, err := p.multiply(ctx, alpha, q.b, beta, q.c, e, func() error { return copied.pass(ctx) })
			t.Each[q.device] = tm
			if err != nil {
				return named(p.dev, err)
			}
			return nil
		})
	}
	err := run.Wait()
	for _, tm := range t.Each {
		t.Device = max(t.Device, tm.Device)
	}
	t.Host = time.Since(start)
	return t, err
}

// named puts a device's name before an error.
func named(d *Device, err error) error {
	i := d.Info()
	return fmt.Errorf("%s:%d: %w", i.Backend, i.Index, err)
}

// task is what one device does of a product.
type task struct {
	device int
	b, c   Dense
}

// share cuts B and C as the plan sees them. Devices without rows or columns get no task, unless there are none at all.
func (g *GroupPlan) share(b, c Dense) []task {
	bounds := g.bounds
	if g.Split == ByColumns {
		bounds = cutColumns(b.Cols, g.weights)
	}
	var ps []task
	for i := range g.plans {
		lo, hi := bounds[i], bounds[i+1]
		if lo == hi && (i > 0 || bounds[len(bounds)-1] > 0) {
			continue
		}
		if g.Split == ByColumns {
			ps = append(ps, task{i, b.columns(lo, hi), c.columns(lo, hi)})
		} else {
			ps = append(ps, task{i, b, c.rows(lo, hi)})
		}
	}
	return ps
}

// columns returns columns lo to hi-1, in the same memory.
func (d Dense) columns(lo, hi int) Dense {
	at := min(d.offset(0, lo)*d.Type.Size(), len(d.Data)) // beyond the data if there are no rows
	d.Cols, d.Data = hi-lo, d.Data[at:]
	return d
}

// rows returns rows lo to hi-1, in the same memory.
func (d Dense) rows(lo, hi int) Dense {
	at := min(d.offset(lo, 0)*d.Type.Size(), len(d.Data))
	d.Rows, d.Data = hi-lo, d.Data[at:]
	return d
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

// Close waits for the multiplication in progress and frees everything the plan holds on the devices. A second call does
// nothing.
func (g *GroupPlan) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	return closePlans(g.plans)
}

func closePlans(plans []*Plan) error {
	var errs []error
	for _, p := range plans {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
