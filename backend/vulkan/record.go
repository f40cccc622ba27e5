// Recordings: command buffers that are submitted again and again.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// recording is launches that were checked, none of an empty grid. The device's lock guards it.
type recording struct {
	d        *device
	launches []backend.Launch
	parts    []*work // once the pace of all kernels is known
	closed   bool
}

var errRecordingClosed = fmt.Errorf("vulkan: recording %w", backend.ErrClosed)

// Record keeps a copy of the launches. Command buffers are made of them by the first runs.
func (d *device) Record(launches ...backend.Launch) (backend.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	r := &recording{d: d, launches: backend.CloneLaunches(launches)}
	d.records[r] = struct{}{}
	return r, nil
}

// check tells why the recording cannot be run, if it cannot.
func (r *recording) check() error {
	if r.closed {
		return errRecordingClosed
	}
	return r.d.checkAll(r.launches)
}

// Run submits and awaits one part after the other.
func (r *recording) Run(ctx context.Context) (t backend.Timing, err error) {
	start := time.Now()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if err := r.d.ready(ctx); err != nil {
		return t, err
	}
	if err := r.check(); err != nil {
		return t, err
	}
	if err := ctx.Err(); err != nil {
		return t, err
	}
	made, err := r.prepare()
	switch {
	case err != nil:
	case made:
		err = r.run(ctx, &t)
	default:
		err = r.d.run(ctx, r.launches, &t)
	}
	t.Host = time.Since(start)
	return t, err
}

// run runs the parts on a device that is idle.
func (r *recording) run(ctx context.Context, t *backend.Timing) error {
	for i, w := range r.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.d.submit(w); err != nil {
			return err
		}
		if err := r.d.awaitWork(ctx, w); err != nil {
			if w.running {
				r.d.started = append(r.d.started, started{works: r.parts[i : i+1]})
			}
			return err
		}
		t.Device += w.took
	}
	return nil
}

// Start submits all parts. Those that are still running are awaited first: a command buffer runs once at a time.
func (r *recording) Start(ctx context.Context) (backend.Pending, error) {
	begun, d := time.Now(), r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(ctx); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	made, err := r.prepare()
	if err != nil {
		return nil, err
	}
	if !made || r.running() {
		if err := d.settle(ctx); err != nil {
			return nil, err
		}
	}
	if made {
		return d.begin(begun, r.parts, false)
	}
	var t backend.Timing
	if err := d.run(ctx, r.launches, &t); err != nil {
		return nil, err
	}
	t.Host = time.Since(begun)
	return backend.Done(t), nil
}

func (r *recording) running() bool {
	for _, w := range r.parts {
		if w.running {
			return true
		}
	}
	return false
}

// prepare records the parts once the pace of all kernels is known, and tells whether there are some.
func (r *recording) prepare() (made bool, err error) {
	if len(r.parts) > 0 || len(r.launches) == 0 {
		return len(r.parts) > 0, nil
	}
	for i := range r.launches {
		if !r.launches[i].Kernel.(*kernel).pace.Known() {
			return false, nil
		}
	}
	parts, err := r.d.record(r.launches)
	if err != nil {
		r.d.spare = append(r.d.spare, parts...)
		return false, err
	}
	r.parts = parts
	return true, nil
}

// Close gives the command buffers back when they are not running.
func (r *recording) Close() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if r.closed || r.d.closed {
		r.closed = true
		return nil
	}
	r.closed = true
	r.d.settle(context.Background()) // a loss is for the next call to tell
	if r.d.lost {
		return nil // freed with the device
	}
	delete(r.d.records, r)
	r.d.spare = append(r.d.spare, r.parts...)
	r.parts = nil
	return nil
}
