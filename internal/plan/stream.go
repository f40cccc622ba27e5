// Out of core: a matrix that stays in the host's memory. Its panels, ranges of rows, go to the device one after another into two
// sets of buffers: while one is multiplied by, the other is written.

package plan

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// stream is the panels of a matrix in the host's memory, and the buffers that they go to: panel i to set i mod 2.
type stream struct {
	dev    *Device
	panels [][]backend.HostMemory // by panel and array
	sets   [2][]backend.Buffer
	loaded [2]int // the panel in each set, -1 if there is none
	owner  bool   // of the sets
}

// mark says that launches from number at on read panel part.
type mark struct{ at, part int }

// Streamed tells how long a multiplication with a matrix that is not on the device took.
type Streamed struct {
	Panels  int
	Bytes   int64         // copied to the device
	Copy    time.Duration // what the copies took
	Compute time.Duration // what the launches took
}

// newStream copies packed panels into memory that the device reads by itself, where it can, and allocates two sets of buffers for
// them, unless it is to share those of another stream.
func newStream(ctx context.Context, d *Device, panels []*spec.Packed, with *stream) (*stream, error) {
	s := &stream{dev: d, loaded: [2]int{-1, -1}, owner: with == nil}
	if with != nil {
		s.sets = with.sets
	} else if err := s.alloc(panels); err != nil {
		return nil, firstOf(err, s.close())
	}
	s.panels = make([][]backend.HostMemory, len(panels))
	const atOnce = 8
	run, ctx := errgroup.WithContext(ctx)
	run.SetLimit(atOnce)
	for i, p := range panels {
		run.Go(func() error {
			for k, a := range p.Arrays {
				if err := ctx.Err(); err != nil {
					return err
				}
				if most := s.sets[0][k].Size(); int64(len(a.Data)) > most {
					return fmt.Errorf("array %s of a panel takes %d bytes, of %d: %w", a.Name, len(a.Data), most, backend.ErrOutOfMemory)
				}
				s.panels[i] = append(s.panels[i], lockedCopy(d, a.Data))
			}
			return nil
		})
	}
	if err := run.Wait(); err != nil {
		return nil, firstOf(err, s.close())
	}
	return s, nil
}

// alloc allocates the sets.
func (s *stream) alloc(panels []*spec.Packed) error {
	for i := range s.sets[:min(2, len(panels))] {
		for k, a := range panels[0].Arrays {
			most := 0
			for _, p := range panels {
				most = max(most, len(p.Arrays[k].Data))
			}
			b, err := s.dev.alloc(int64(most), "array "+a.Name+" of a panel")
			if err != nil {
				return err
			}
			s.sets[i] = append(s.sets[i], b)
		}
	}
	if len(panels) == 1 {
		s.sets[1] = s.sets[0]
	}
	return nil
}

// lockedCopy copies data into such memory as hostMemory returns.
func lockedCopy(d *Device, data []byte) backend.HostMemory {
	m := d.hostMemory(int64(len(data)))
	copy(m.Bytes(), data)
	return m
}

// hostMemory returns memory of the host that the device copies by itself, or the program's where there is none.
func (d *Device) hostMemory(bytes int64) backend.HostMemory {
	if a, ok := d.Device.(backend.HostAllocator); ok && bytes > 0 {
		if m, err := a.AllocHost(bytes); err == nil {
			return m
		}
	}
	return &ordinary{make([]byte, bytes)}
}

// close frees the panels, and the sets if they are the stream's own.
func (s *stream) close() error {
	var errs []error
	for _, p := range s.panels {
		for _, a := range p {
			errs = append(errs, a.Close())
		}
	}
	s.panels = nil
	if s.owner {
		for _, set := range s.sets { // of one panel they are the same: a second Close does nothing
			for _, b := range set {
				errs = append(errs, b.Close())
			}
		}
	}
	return firstOf(errs...)
}

// load copies a panel to its set, unless it is there, and returns the bytes that were copied.
func (s *stream) load(ctx context.Context, i int) (n int64, err error) {
	set := i & 1
	if s.loaded[set] == i {
		return 0, nil
	}
	s.loaded[set] = -1
	for k, m := range s.panels[i] {
		p := m.Bytes()
		if len(p) == 0 {
			continue
		}
		if w, ok := s.sets[set][k].(backend.SideWriter); ok {
			err = w.WriteAside(ctx, 0, p)
		} else {
			err = writeChunks(ctx, s.sets[set][k], p)
		}
		if err != nil {
			return n, err
		}
		n += int64(len(p))
	}
	s.loaded[set] = i
	return n, nil
}

// run runs launches a number of times, each panel's after it has been copied.
func (s *stream) run(ctx context.Context, launches []backend.Launch, marks []mark, times int) (Streamed, error) {
	r := streaming{stream: s, launches: launches, marks: marks, times: times, full: make(chan int), out: Streamed{Panels: len(s.panels)}}
	for i := range r.free {
		r.free[i] = make(chan struct{}, 1)
		r.free[i] <- struct{}{}
	}
	run, ctx := errgroup.WithContext(ctx)
	run.Go(func() error { return r.copy(ctx) })
	run.Go(func() error { return r.compute(ctx) })
	err := run.Wait()
	return r.out, err
}

// streaming is a run: one goroutine copies panels to the two sets of buffers in turn, and another computes with them.
type streaming struct {
	*stream
	launches []backend.Launch
	marks    []mark
	times    int
	free     [2]chan struct{} // sets of buffers that may be written
	full     chan int         // panels, as they have come
	out      Streamed
}

func (r *streaming) copy(ctx context.Context) error {
	for range r.times {
		for _, m := range r.marks {
			select {
			case <-r.free[m.part&1]:
			case <-ctx.Done():
				return ctx.Err()
			}
			start := time.Now()
			n, err := r.load(ctx, m.part)
			if err != nil {
				return err
			}
			if n > 0 {
				r.out.Bytes, r.out.Copy = r.out.Bytes+n, r.out.Copy+time.Since(start)
			}
			select {
			case r.full <- m.part:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (r *streaming) compute(ctx context.Context) error {
	run := func(l []backend.Launch) error {
		if len(l) == 0 {
			return nil
		}
		t, err := r.dev.Run(ctx, l...)
		r.out.Compute += t.Best()
		return err
	}
	for range r.times {
		if err := run(r.launches[:r.marks[0].at]); err != nil {
			return err
		}
		for i, m := range r.marks {
			select {
			case <-r.full:
			case <-ctx.Done():
				return ctx.Err()
			}
			end := len(r.launches)
			if i+1 < len(r.marks) {
				end = r.marks[i+1].at
			}
			if err := run(r.launches[m.at:end]); err != nil {
				return err
			}
			r.free[m.part&1] <- struct{}{}
		}
	}
	return nil
}

// runStreamed multiplies with a matrix that is not on the device. Its time is the host's.
func (p *Plan) runStreamed(ctx context.Context, m *resident, w work, times int) (backend.Timing, error) {
	start := time.Now()
	if len(w.marks) == 0 {
		return p.dev.Run(ctx, w.launches...)
	}
	var err error
	p.streamed, err = m.stream.run(ctx, w.launches, w.marks, times)
	return backend.Timing{Host: time.Since(start)}, err
}

// startStreamed is runStreamed without the wait.
func (p *Plan) startStreamed(ctx context.Context, q product) (backend.Pending, error) {
	if err := q.use(); err != nil {
		return nil, err
	}
	w := &waited{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer q.release()
		p.mu.Lock()
		defer p.mu.Unlock()
		w.t, w.err = p.run(ctx, q)
	}()
	return w, nil
}

// waited is a product that a goroutine computes.
type waited struct {
	done chan struct{}
	t    backend.Timing
	err  error
}

func (w *waited) Wait(ctx context.Context) (backend.Timing, error) {
	select {
	case <-w.done:
		return w.t, w.err
	default:
	}
	select {
	case <-w.done:
		return w.t, w.err
	case <-ctx.Done():
		return backend.Timing{}, ctx.Err()
	}
}

// allowance says how much of a device's memory a matrix may take beside B and C.
type allowance struct {
	bytes int64 // of A, B, C and what multiplying takes
	cols  int   // of B and C
}

// placeWithin is place for a device of which no more than some bytes may be used: where the matrix does not fit beside B and C it
// is streamed, in panels as large as there is room for.
func placeWithin(ctx context.Context, d *Device, e *encoded, why string, o Options) (*Plan, *resident, error) {
	if o.within == nil {
		return place(ctx, d, e, why)
	}
	start := time.Now()
	parts, rowBlock, fits, err := e.panels(ctx, d, o)
	if err != nil {
		return nil, nil, err
	}
	if fits {
		return place(ctx, d, e, why)
	}
	packed := e.took + time.Since(start)
	start = time.Now()
	m, err := keep(ctx, d, e, parts, rowBlock, nil)
	if err != nil {
		return nil, nil, err
	}
	why += fmt.Sprintf("; A, of %.3g MiB, stays in the host's memory: %d panels are copied for each product", float64(m.stats.StoredBytes)/(1<<20), len(parts))
	return &Plan{
		Info: Info{
			Rows: m.rows, Cols: m.cols, NNZ: e.matrix.NNZ(), Format: e.format, Variant: e.name, Kernel: m.runs(0, e.cols).Kernel(), Why: why, Panels: len(parts),
			Precision: e.precision, Stats: m.stats, EncodeTime: packed, UploadTime: time.Since(start),
		},
		dev: d, rowBlock: rowBlock, launcher: newLauncher(d),
	}, m, nil
}

// panels cuts the matrix into panels of so many rows, of which two fit beside B and C, or finds that all of it does.
func (e *encoded) panels(ctx context.Context, d *Device, o Options) (parts []*spec.Packed, rowBlock int, fits bool, err error) {
	if parts, rowBlock, err = e.first(ctx); err != nil {
		return nil, 0, false, err
	}
	size := func() (panel, all, rest int64, err error) {
		if rest, err = e.beside(d, parts, rowBlock, o); err != nil {
			return 0, 0, 0, err
		}
		for _, p := range parts {
			n := panelBytes(p)
			panel, all = max(panel, n), all+n
		}
		return panel, all, rest, nil
	}
	panel, all, rest, err := size()
	if err != nil {
		return nil, 0, false, err
	}
	copies := int64(1)
	if o.Reproducible == AutoP {
		copies = 3 // at other precisions, which are made when they are needed
	}
	if copies*all+rest <= o.within.bytes {
		return parts, rowBlock, true, nil
	}
	step := lcm(32, max(1, e.enc.Panel))
	for {
		room := (o.within.bytes - rest) / 2
		if room <= 0 && rowBlock <= step {
			return nil, 0, false, fmt.Errorf("B, C and what multiplying %d columns takes are %d bytes, of %d that may be used of %v: fewer columns (Options.Cols) or more memory: %w",
				o.within.cols, rest, o.within.bytes, d.Info(), backend.ErrOutOfMemory)
		}
		if rowBlock <= step {
			return nil, 0, false, fmt.Errorf("a panel of %d rows takes %d bytes, of %d that may be used of %v beside %d for B and C: fewer columns (Options.Cols) or more memory: %w",
				rowBlock, panel, room, d.Info(), rest, backend.ErrOutOfMemory)
		}
		share := 0.5
		if room > 0 {
			share = min(0.95, 0.98*float64(min(room, d.limit()))/float64(panel))
		}
		rowBlock = max(step, int(float64(rowBlock)*share)/step*step)
		if parts, err = e.ranges(ctx, rowBlock); err != nil {
			return nil, 0, false, err
		}
		if panel, _, rest, err = size(); err != nil {
			return nil, 0, false, err
		}
		if 2*panel+rest <= o.within.bytes && largest(parts) <= d.limit() {
			return parts, rowBlock, false, nil
		}
	}
}

// onDevice refuses a matrix that is not on the device.
func (m *resident) onDevice() error {
	if m.stream != nil {
		return fmt.Errorf("a matrix that stays in the host's memory, as GroupOptions.Memory requires: %w", backend.ErrUnsupported)
	}
	return nil
}

// keep is upload for panels that stay in the host's memory. They may go to the buffers of another matrix.
func keep(ctx context.Context, d *Device, e *encoded, parts []*spec.Packed, rowBlock int, with *stream) (*resident, error) {
	rows, cols := e.matrix.Dims()
	m := &resident{
		dev: d, kern: e.kernel, variant: e.variant, rows: rows, cols: cols, operand: e.matrix.Type(), rowBlock: rowBlock,
	}
	var err error
	if m.stream, err = newStream(ctx, d, parts, with); err != nil {
		return nil, err
	}
	for i, p := range parts {
		m.parts = append(m.parts, part{enc: &spec.Packed{Rows: p.Rows, Cols: p.Cols, NNZ: p.NNZ, Stats: p.Stats, Items: p.Items, Format: p.Format, Work: p.Work}, bufs: m.stream.sets[i&1]})
		m.stats = addStats(m.stats, p.Stats, e.matrix.NNZ())
	}
	m.fetched = fetchedOf(m.stats, e)
	return m, nil
}

// panelBytes is what a panel takes on the device.
func panelBytes(p *spec.Packed) (n int64) {
	const each = 256 // an allocation is rounded up to
	for _, a := range p.Arrays {
		n += (int64(len(a.Data)) + each - 1) / each * each
	}
	return n
}

// beside returns the bytes that a multiplication takes on the device besides A at most: B and C of any type and order, and where they
// are staged, B in fixed point, and the kernel's workspace.
func (e *encoded) beside(d *Device, parts []*spec.Packed, rowBlock int, o Options) (int64, error) {
	const slack = 4 << 10
	n := int64(o.within.cols)
	rows, cols := e.matrix.Dims()
	total := int64(slack)
	for _, s := range []Shape{ // B and C of 4 bytes, and both as the kernel takes them
		{Rows: cols, Cols: int(n), Type: dtype.F32, ColMajor: o.Right},
		{Rows: rows, Cols: int(n), Type: dtype.F32, ColMajor: o.Right, RowBlock: rowBlock},
		{Rows: cols, Cols: int(n), Type: e.matrix.Type()},
		{Rows: min(rowBlock, rows), Cols: int(n), Type: dtype.F32},
	} {
		x, err := s.bytes()
		if err != nil {
			return 0, err
		}
		total += x + slack
	}
	if o.Reproducible != 0 {
		fixed := kernel.Layout(e.variant, cols, int(n)).Bytes()
		if o.Reproducible == AutoP {
			fixed = max(fixed, quantise.NewLayout(cols, int(n), rfx.P47).Bytes())
		}
		total += fixed + slack
	}
	most := int64(0)
	for _, p := range parts {
		q := spec.Problem{M: p.Rows, K: p.Cols, N: int(n), LDB: up(int(n), align), LDC: up(int(n), align), Out: dtype.F32, Alpha: 1, Caps: d.Caps()}
		l, err := e.kernel.Launch(runs(e.kernel, e.variant, e.exact, p, q), p, q)
		if err != nil {
			return 0, err
		}
		most = max(most, l.Workspace)
	}
	return total + most + slack, nil
}
