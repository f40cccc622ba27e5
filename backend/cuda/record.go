//go:build cuda && cgo && linux && (amd64 || arm64)

// Recordings: launches as graphs; each graph is submitted in one call.

package cuda

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// recording is launches that were checked, none of an empty grid. The device's mu guards it.
type recording struct {
	dev      *device
	launches []backend.Launch
	parts    []graph // once the pace of all kernels is known
	refused  bool    // the driver makes no graphs of them
	closed   bool
}

// graph is launches of a recording from the first on.
type graph struct {
	driver.Graph
	first int
}

var errRecordingClosed = fmt.Errorf("cuda: recording %w", backend.ErrClosed)

// Record keeps a copy of the launches. What is made of them is up to the first runs.
func (d *device) Record(launches ...backend.Launch) (backend.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if _, err := d.checkAll(launches); err != nil {
		return nil, err
	}
	r := &recording{dev: d, launches: backend.CloneLaunches(launches)}
	d.graphs[r] = struct{}{}
	return r, nil
}

// check tells why the recording cannot be run, if it cannot.
func (r *recording) check() error {
	if r.closed {
		return errRecordingClosed
	}
	_, err := r.dev.checkAll(r.launches)
	return err
}

// Run submits the graphs like the batches of a device's Run: two are in flight at most.
func (r *recording) Run(ctx context.Context) (backend.Timing, error) {
	begin, d := time.Now(), r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx); err != nil {
		return backend.Timing{}, err
	}
	if err := r.check(); err != nil {
		return backend.Timing{}, err
	}
	t, err := backend.Timing{}, error(nil)
	if r.prepare() {
		err = r.submit(ctx, d.queue.Clock(), true)
		t.Device = d.queue.Clock().Elapsed()
	} else {
		t, err = r.first(ctx)
	}
	if err != nil {
		return backend.Timing{}, err
	}
	t.Host = time.Since(begin)
	return t, nil
}

// Start submits all graphs before it returns.
func (r *recording) Start(ctx context.Context) (backend.Pending, error) {
	begun, d := time.Now(), r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(ctx); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.prepare() {
		return d.begin(begun, r.launches, func(c driver.Clock) error { return r.submit(ctx, c, false) })
	}
	t, err := r.first(ctx)
	if err != nil {
		return nil, err
	}
	t.Host = time.Since(begun)
	return backend.Done(t), nil
}

// first runs the launches as a list, and learns how long they take.
func (r *recording) first(ctx context.Context) (t backend.Timing, err error) {
	d := r.dev
	if err := d.settle(ctx); err != nil || len(r.launches) == 0 {
		return t, err
	}
	err = d.submit(ctx, r.launches, len(r.launches))
	t.Device = d.queue.Clock().Elapsed()
	return t, err
}

// submit passes the graphs to the queue, and awaits them if that is wanted.
func (r *recording) submit(ctx context.Context, c driver.Clock, wait bool) error {
	d := r.dev
	for i, p := range r.parts {
		if err := ctx.Err(); err != nil && i > 0 {
			return d.abandon(err)
		}
		f := &d.flying[i&1]
		f.first, f.submitted = p.first, time.Now()
		d.queue.SetGraph(p.Graph)
		last := i == len(r.parts)-1
		if err := d.queue.Submit(c, i == 0, last); err != nil {
			d.running = false // Submit has waited
			return d.abandon(d.fail("running "+firstKernel(r.launches[p.first:]), err))
		}
		d.running = wait || !last
		if wait && i > 0 {
			if err := d.await(ctx, &d.flying[(i-1)&1], false, r.launches); err != nil {
				return err
			}
		}
	}
	if !wait {
		return nil
	}
	return d.await(ctx, &d.flying[(len(r.parts)-1)&1], true, r.launches)
}

// prepare makes the graphs if it can, and tells whether there are some.
func (r *recording) prepare() bool {
	if len(r.parts) > 0 || r.refused || len(r.launches) == 0 {
		return len(r.parts) > 0
	}
	for i := range r.launches {
		if !r.launches[i].Kernel.(*kernel).pace.Known() {
			return false
		}
	}
	if err := r.make(); err != nil { // it can be run without
		r.refused = true
		r.dev.queue.Reset()
		if r.dev.push() == nil {
			r.free()
			r.dev.pop()
		}
	}
	return !r.refused
}

// make makes graphs of launches that are predicted to take half a flight each.
func (r *recording) make() error {
	d := r.dev
	var batch backend.Batch
	open := false // the last graph has launches and is not ready
	for i := range r.launches {
		l := &r.launches[i]
		if !open {
			r.parts = append(r.parts, graph{driver.NewGraph(), i})
			open = true
		}
		g := r.parts[len(r.parts)-1].Graph
		long := batch.Add(&l.Kernel.(*kernel).pace, l.Groups, flight/2) || i == len(r.launches)-1
		d.add(l)
		if long || d.queue.Full() {
			if err := d.queue.AddTo(g); err != nil {
				return err
			}
		}
		if long {
			if err := d.queue.Make(g); err != nil {
				return err
			}
			batch.Drop()
			open = false
		}
	}
	return nil
}

// free frees the graphs; the device's context is current.
func (r *recording) free() error {
	var first error
	for _, p := range r.parts {
		if err := p.Destroy(); first == nil {
			first = err
		}
	}
	r.parts = nil
	return first
}

// Close frees the graphs when what was started is done.
func (r *recording) Close() error {
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if d.usable() != nil { // freed with the device, or by its Close
		return nil
	}
	delete(d.graphs, r)
	if len(r.parts) == 0 {
		return nil
	}
	if err := d.settle(context.Background()); err != nil {
		return nil // lost: freed with the device
	}
	if err := d.push(); err != nil {
		return d.fail("entering the context", err)
	}
	defer d.pop()
	if err := r.free(); err != nil {
		return d.fail("freeing a recording", err)
	}
	return nil
}
