// Several devices that multiply together: each does some columns of B and C with all of A, or some rows of A and C with
// all of B.

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
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
	Memory int64     // bytes that may be used of each device; 0: what it has
	From   Placement // where B lies before each product
}

// groupPlans counts the plans of groups.
var groupPlans atomic.Int64

// GroupPlan is a matrix on several devices. Its methods may be called from any goroutine; multiplications run one after
// another.
type GroupPlan struct {
	number int64 // of all, by which sequences take several in one order

	Split Split // ByColumns or ByRows
	Why   string

	all     Plan    // describes the whole matrix; it is on no device
	plans   []*Plan // one for each device
	weights []float64
	bounds  []int   // ByRows: the rows of each device
	entries []int64 // ByRows: where the entries of each begin
	given   *given
	most    int // columns of a product for which there is memory on the devices; 0: any number, as far as is known

	mu     sync.Mutex
	closed bool
	torn   error           // why some devices have new values and others not, after SetHostValues
	held   [4]*GroupTensor // by role: what lay elsewhere in the last product
	chunks []chunked       // by device: see overlap
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
	g := &GroupPlan{number: groupPlans.Add(1), Split: s.split, Why: s.why, weights: s.weights, chunks: make([]chunked, len(devs))}
	rows, cols := m.Dims()
	g.all = Plan{Info: Info{Rows: rows, Cols: cols, NNZ: m.NNZ()}, right: o.Right}
	if s.split == ByRows {
		err = g.divideRows(ctx, devs, m, s, o)
	} else {
		g.plans, err = m.byColumns(ctx, devs, a, o.Options)
	}
	if err != nil {
		return nil, firstOf(err, closePlans(g.plans))
	}
	if s.split == ByRows {
		ptr, _ := m.csr().Pattern()
		for _, row := range g.bounds {
			g.entries = append(g.entries, ptr[row]-ptr[0])
		}
		g.given = newGiven(m.Encoded, m.turned, false)
	}
	return g, nil
}

// SetHostValues makes values, in the order of Plan.SetValues, those of the matrix's entries, on all devices.
func (g *GroupPlan) SetHostValues(ctx context.Context, v Values) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	}
	if n := v.len(); int64(n) != g.all.NNZ {
		return fmt.Errorf("%d values for a matrix of %d entries", n, g.all.NNZ)
	}
	for _, p := range g.plans { // before any device has new values
		if err := p.mayChange(ctx); err != nil {
			return named(p.dev, err)
		}
	}
	if g.Split == ByRows && g.given.turned { // by the rows of what is multiplied with
		v.Data = g.given.inOrder(v)
	}
	size := int64(v.Type.Size())
	g.torn = together(ctx, len(g.plans), func(ctx context.Context, d int) error {
		part := v
		if g.Split == ByRows {
			part.Data = v.Data[g.entries[d]*size : g.entries[d+1]*size]
		}
		if err := g.plans[d].SetHostValues(ctx, part); err != nil {
			return named(g.plans[d].dev, err)
		}
		return nil
	})
	return g.torn
}

// usable refuses to multiply where the plan is closed, or devices have different values.
func (g *GroupPlan) usable() error {
	switch {
	case g.closed:
		return fmt.Errorf("the plan: %w", backend.ErrClosed)
	case g.torn != nil:
		return fmt.Errorf("the matrix has new values on some devices and old ones on others: set its values again; when they were set last: %w", g.torn)
	}
	return nil
}

// divideRows brings ranges of rows onto the devices. Where memory is scarce it is for as many columns as there is room for.
func (g *GroupPlan) divideRows(ctx context.Context, devs []*Device, m divided, s decision, o GroupOptions) (err error) {
	n := o.cols()
	scarce := o.Memory > 0 || s.misfit != ""
	rows, cols := m.Dims()
	each := int64(cols)*int64(o.precision(m.source).Size()) + 4*int64(rows)/int64(len(devs)) // bytes of a column of B and C
	for _, d := range devs {
		for have := o.have(d); scarce && have > 0 && n > align && each*int64(n) > have/4*3; {
			n = fewer(n)
		}
	}
	for {
		if scarce {
			o.limit(devs, n)
			g.most = n
		}
		g.plans, g.bounds, err = m.byRows(ctx, devs, s.weights, o.Options)
		if !scarce || n <= align || !errors.Is(err, backend.ErrOutOfMemory) {
			return err
		}
		if err := closePlans(g.plans); err != nil {
			return err
		}
		n = fewer(n)
	}
}

// fewer is about half as many columns.
func fewer(n int) int {
	if n > 2*Tile {
		return up(n/2, Tile)
	}
	return max(align, n/2/align*align)
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
	case o.From.check(len(devs)) != nil:
		return fmt.Errorf("GroupOptions.From: %w", o.From.check(len(devs)))
	case o.Whole != (Extent{}):
		return errors.New("Options.Whole is for a device by itself")
	case o.Tune && len(devs) > 1:
		return errors.New("Options.Tune: tune on one device of the group: what is found is remembered for all of its kind")
	}
	return o.Validate()
}

// Most is the number of columns that tensors may have, 0 if any.
func (g *GroupPlan) Most() int { return g.most }

// Describe returns the Info of the whole matrix, and that of each device's part of it, in the caller's terms.
func (g *GroupPlan) Describe() (whole Info, parts []Info) {
	for _, p := range g.plans {
		parts = append(parts, p.Describe())
	}
	whole = parts[0]
	if g.Split == ByRows {
		for _, p := range parts[1:] {
			whole.Panels = max(whole.Panels, p.Panels)
			whole.Stats = addStats(whole.Stats, p.Stats, g.all.NNZ)
			whole.EncodeTime, whole.UploadTime = max(whole.EncodeTime, p.EncodeTime), max(whole.UploadTime, p.UploadTime)
		}
	}
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
	Moved          int64         // bytes from one device to another
	Move           time.Duration // what that took
	Streamed       Streamed      // of all devices together; Panels is the most of one

	adding *sync.Mutex
}

func newGroupTiming(devices int) GroupTiming {
	return GroupTiming{Each: make([]backend.Timing, devices), adding: new(sync.Mutex)}
}

// GroupEpilogue is Epilogue for a group.
type GroupEpilogue struct {
	RowBias, ColBias *GroupTensor
	Activation       Activation
}

// Multiply computes c = alpha·A·b + beta·c for data in the host's memory, as Plan.Multiply does. Where a device fails, the
// others stop and the error names it.
func (g *GroupPlan) Multiply(ctx context.Context, alpha float64, b Dense, beta float64, c Dense, e GroupEpilogue) (GroupTiming, error) {
	start := time.Now()
	if g.all.right {
		b, c = b.turned(), c.turned()
	}
	if err := g.all.checkDims(b.Rows, b.Cols, c.Rows, c.Cols); err != nil {
		return GroupTiming{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return GroupTiming{}, err
	}
	t := newGroupTiming(len(g.plans))
	if g.most > 0 && b.Cols > g.most && (e.RowBias != nil || e.ColBias != nil) {
		return t, fmt.Errorf("%w, and a bias is for all at once", g.tooMany(b.Cols))
	}
	step := b.Cols
	if g.most > 0 {
		step = min(step, g.most)
	}
	for lo := 0; lo == 0 || lo < b.Cols; lo += max(1, step) { // C may be B: columns do not depend on each other
		hi := min(b.Cols, lo+step)
		if err := g.multiply(ctx, alpha, b.columns(lo, hi), beta, c.columns(lo, hi), e, &t); err != nil {
			return t, err
		}
	}
	t.sum(start)
	return t, nil
}

// tooMany is the error of more columns than there is memory for.
func (g *GroupPlan) tooMany(n int) error {
	return fmt.Errorf("%d %s, and there is memory for %d on the devices (GroupOptions.Memory): %w", n, g.all.what(), g.most, backend.ErrOutOfMemory)
}

// multiply is Multiply of as many columns as there is memory for, B and C as the plan sees them.
func (g *GroupPlan) multiply(ctx context.Context, alpha float64, b Dense, beta float64, c Dense, e GroupEpilogue, t *GroupTiming) error {
	es, err := g.epilogues(ctx, e, b.Cols, c.Type, t)
	if err != nil {
		return err
	}
	parts := g.share(b, c)
	copied := newGate(len(parts))
	err = together(ctx, len(parts), func(ctx context.Context, i int) error {
		q := parts[i]
		p := g.plans[q.device]
		if g.all.right {
			q.b, q.c = q.b.turned(), q.c.turned()
		}
		tm, err := p.multiply(ctx, alpha, q.b, beta, q.c, es[q.device], func() error { return copied.pass(ctx) })
		t.Each[q.device].Device += tm.Device
		t.Each[q.device].Host += tm.Host
		if err != nil {
			return named(p.dev, err)
		}
		t.stream(p)
		return nil
	})
	return err
}

// stream adds what a product with a matrix that is not on the device took.
func (t *GroupTiming) stream(p *Plan) {
	p.mu.Lock()
	s := p.streamed
	p.streamed = Streamed{}
	p.mu.Unlock()
	if s.Panels == 0 {
		return
	}
	t.adding.Lock()
	defer t.adding.Unlock()
	t.Streamed.Panels = max(t.Streamed.Panels, s.Panels)
	t.Streamed.Bytes += s.Bytes
	t.Streamed.Copy += s.Copy
	t.Streamed.Compute += s.Compute
}

// sum sets what is said of all devices together.
func (t *GroupTiming) sum(start time.Time) {
	for _, x := range t.Each {
		t.Device = max(t.Device, x.Device)
	}
	if t.Streamed.Panels > 0 { // the device also waits
		t.Device = 0
	}
	t.Host = time.Since(start)
}

// epilogues returns each device's part of an epilogue.
func (g *GroupPlan) epilogues(ctx context.Context, e GroupEpilogue, n int, c dtype.Type, t *GroupTiming) ([]Epilogue, error) {
	out := make([]Epilogue, len(g.plans))
	for d := range out {
		out[d].Activation = e.Activation
	}
	if e.RowBias != nil && e.ColBias != nil {
		return out, errTwoBiases
	}
	for _, x := range []struct {
		bias *GroupTensor
		rows bool
		name string
	}{{e.RowBias, true, "row bias"}, {e.ColBias, false, "column bias"}} {
		if x.bias == nil {
			continue
		}
		r := roleColBias
		if x.rows != g.all.right {
			r = roleRowBias
		}
		here, err := g.bring(ctx, r, n, x.bias, x.bias.Type, c, true, t)
		if err != nil {
			return out, fmt.Errorf("the %s: %w", x.name, err)
		}
		for d, p := range here.parts {
			if x.rows {
				out[d].RowBias = p
			} else {
				out[d].ColBias = p
			}
		}
	}
	return out, nil
}

// bring returns a tensor that lies where the split needs it: t itself if it does, else one that the plan keeps, into which t
// is copied if it is read. b and c are the types of B and C.
func (g *GroupPlan) bring(ctx context.Context, r role, n int, t *GroupTensor, b, c dtype.Type, read bool, tm *GroupTiming) (*GroupTensor, error) {
	if lies, err := g.inPlace(r, n, t, b, c); lies || err != nil {
		return t, err
	}
	h := g.held[r]
	if h == nil || h.Shape.Rows != t.Rows || h.Cols != t.Cols || h.Type != t.Type {
		if h != nil {
			g.held[r] = nil
			g.forget(h)
			if err := h.Close(); err != nil {
				return nil, err
			}
		}
		var err error
		if h, err = g.tensorFor(r, n, t.Type, b, c); err != nil {
			return nil, err
		}
		g.held[r] = h
	}
	if !read {
		return h, nil
	}
	return h, tm.copy(ctx, h, t)
}

// inPlace tells whether a tensor lies where the split needs it.
func (g *GroupPlan) inPlace(r role, n int, t *GroupTensor, b, c dtype.Type) (bool, error) {
	s, at := g.need(r, n)
	if t.Rows != s.Rows || t.Cols != s.Cols {
		return false, fmt.Errorf("shapes do not fit: it is %d×%d, want %d×%d", t.Rows, t.Cols, s.Rows, s.Cols)
	}
	if len(t.devs) != len(g.plans) || slices.ContainsFunc(g.plans, func(p *Plan) bool { return !slices.Contains(t.devs, p.dev) }) {
		return false, errors.New("a tensor is on the devices of another group")
	}
	return g.lies(r, t, g.boxes(s, at), b, c)
}

// forget drops the launches with a tensor that is about to be closed.
func (g *GroupPlan) forget(t *GroupTensor) {
	for d, p := range g.plans {
		if t.parts[d] != nil {
			p.mu.Lock()
			p.launcher.forget(t.parts[d])
			p.mu.Unlock()
		}
	}
}

// copy copies between tensors and counts it.
func (t *GroupTiming) copy(ctx context.Context, dst, src *GroupTensor) error {
	start := time.Now()
	n, err := dst.Copy(ctx, src)
	t.Moved += n
	t.Move += time.Since(start)
	return err
}

// lies tells whether a tensor has the boxes that are needed, in blocks that the kernels take.
func (g *GroupPlan) lies(r role, t *GroupTensor, boxes []box, b, c dtype.Type) (bool, error) {
	for d, p := range t.parts {
		if p == nil {
			if !g.idle(d, boxes) {
				return false, nil
			}
			continue
		}
		if p.dev != g.plans[d].dev || t.boxes[d] != boxes[d] {
			return false, nil
		}
		s, err := g.shape(d, r, Shape{Rows: p.Rows, Cols: p.Cols, Type: p.Type}, b, c)
		if err != nil {
			return false, err
		}
		if p.Shape != s.whole() {
			return false, nil
		}
	}
	return true, nil
}

// Run computes c = alpha·A·b + beta·c for tensors on the group's devices. What does not lie where the split needs it is copied
// there before, and C back after.
func (g *GroupPlan) Run(ctx context.Context, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, e GroupEpilogue) (GroupTiming, error) {
	return g.Repeat(ctx, 1, alpha, b, beta, c, e)
}

// Repeat runs the same multiplication a number of times back to back; copies between devices are made once. With a beta other
// than 0 each run adds to the last one's c.
func (g *GroupPlan) Repeat(ctx context.Context, times int, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, e GroupEpilogue) (GroupTiming, error) {
	start := time.Now()
	t := newGroupTiming(len(g.plans))
	switch {
	case times < 1:
		return t, fmt.Errorf("%d repetitions: at least 1 is possible", times)
	case b == nil || c == nil:
		return t, errors.New("B or C is missing")
	case b == c:
		return t, errors.New("B and C must be two matrices: C is written while B is read")
	}
	n := c.Cols
	if g.all.right {
		n = c.Rows
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.usable(); err != nil {
		return t, err
	}
	if g.most > 0 && n > g.most {
		return t, g.tooMany(n)
	}
	if err := g.checkTensors(b, c); err != nil {
		return t, err
	}
	lies, err := g.inPlace(roleB, n, b, b.Type, c.Type)
	if err != nil {
		return t, err
	}
	cs, err := g.bring(ctx, roleC, n, c, b.Type, c.Type, beta != 0, &t)
	if err != nil {
		return t, err
	}
	es, err := g.epilogues(ctx, e, n, c.Type, &t)
	if err != nil {
		return t, err
	}
	done := false
	if !lies && times == 1 {
		done, err = g.overlapped(ctx, n, alpha, b, beta, cs, es, &t)
	}
	if !done && err == nil {
		var bs *GroupTensor
		if bs, err = g.bring(ctx, roleB, n, b, b.Type, c.Type, true, &t); err == nil {
			err = g.run(ctx, times, alpha, bs, beta, cs, es, t.Each)
		}
	}
	if err != nil {
		return t, err
	}
	for _, p := range g.plans {
		t.stream(p)
	}
	if cs != c {
		err = t.copy(ctx, c, cs)
	}
	t.sum(start)
	return t, err
}

// checkTensors refuses operands whose sizes do not fit together.
func (g *GroupPlan) checkTensors(b, c *GroupTensor) error {
	sb, sc := b.Shape, c.Shape
	if g.all.right {
		sb, sc = sb.turned(), sc.turned()
	}
	return g.all.checkDims(sb.Rows, sb.Cols, sc.Rows, sc.Cols)
}

// run starts the product on every device that has a part of it, and waits for all. Where the precision is found from B, a device
// is not started before that is known, so each has a goroutine.
func (g *GroupPlan) run(ctx context.Context, times int, alpha float64, b *GroupTensor, beta float64, c *GroupTensor, es []Epilogue, each []backend.Timing) error {
	one := func(ctx context.Context, d int) (backend.Pending, error) {
		p := g.plans[d]
		if b.parts[d] == nil || c.parts[d] == nil {
			return backend.Done(backend.Timing{}), nil
		}
		w, err := p.start(ctx, times, alpha, b.parts[d], beta, c.parts[d], es[d])
		if err != nil {
			return nil, named(p.dev, err)
		}
		return w, nil
	}
	wait := func(ctx context.Context, d int, w backend.Pending) (err error) {
		if each[d], err = w.Wait(ctx); err != nil {
			return named(g.plans[d].dev, err)
		}
		return nil
	}
	if g.plans[0].exec.recordable() != nil {
		return together(ctx, len(g.plans), func(ctx context.Context, d int) error {
			w, err := one(ctx, d)
			if err != nil {
				return err
			}
			return wait(ctx, d, w)
		})
	}
	var first error
	begun := make([]backend.Pending, 0, len(g.plans))
	for d := range g.plans {
		w, err := one(ctx, d)
		if err != nil {
			first = err
			break
		}
		begun = append(begun, w)
	}
	for d, w := range begun {
		first = firstOf(first, wait(ctx, d, w))
	}
	return first
}

// Attainable returns the bounds of the device whose part of a multiplication by n columns takes longest, C having elements of
// type out and not being read, with an activation at most.
func (g *GroupPlan) Attainable(ctx context.Context, n int, out dtype.Type) (Bound, error) {
	var most Bound
	cuts := cutColumns(n, g.weights)
	for d, p := range g.plans {
		part := n
		if g.Split == ByColumns {
			if part = cuts[d+1] - cuts[d]; part == 0 && d > 0 {
				continue
			}
		}
		b, err := p.Attainable(ctx, part, out, Epilogue{})
		if err != nil {
			return most, named(p.dev, err)
		}
		if b.Time() >= most.Time() {
			most = b
		}
	}
	return most, nil
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
	var errs []error
	for i, t := range g.held {
		if t != nil {
			errs = append(errs, t.Close())
			g.held[i] = nil
		}
	}
	for d := range g.chunks {
		errs = append(errs, g.chunks[d].close(g.plans[d]))
	}
	return firstOf(append(errs, closePlans(g.plans))...)
}

func closePlans(plans []*Plan) error {
	var errs []error
	for _, p := range plans {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return firstOf(errs...)
}
