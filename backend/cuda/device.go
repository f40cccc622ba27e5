//go:build cuda && cgo && linux && (amd64 || arm64)

// The device: its context, and the lifetime of what is made from it.

package cuda

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// device is an opened GPU. A context belongs to whichever thread it was pushed on, so each method
// locks its goroutine to a thread, pushes the context, makes its calls and pops it again: that
// costs far less than handing the work to a thread of the device's own, and leaves the threads, and
// other users of CUDA in the process, as they were.
type device struct {
	info backend.Info
	caps backend.Caps
	dev  cu.Device
	ctx  cu.CUContext

	primary bool // ctx is the device's primary context; else it is somebody else's

	lending sync.RWMutex // held for reading while another device copies from this one's memory; taken before any mu
	loading sync.RWMutex // held for reading while a kernel is loaded; taken before mu

	mu       sync.Mutex // guards everything below, and the state of buffers and kernels
	closed   bool
	lost     error // once set, every call but Close returns it
	queue    *driver.Queue
	flying   [2]flying       // what the queue has in flight, by turns
	last     *backend.Launch // that was added to the queue's batch
	idle     time.Time       // when the last batch that was awaited was done
	running  bool            // a cancelled Run has left launches on the device
	enqueued bool            // streams of others may have launches that were not awaited
	started  []started       // in order
	clocks   []driver.Clock  // for others
	look     func()          // d.reap, unless the device is in use
	checked  ranges          // memory of others
	staging  staging
	aside    aside
	pool     pool
	buffers  map[*buffer]struct{} // not closed yet
	graphs   map[*recording]struct{}
	code     map[[sha256.Size]byte]*library
	reached  map[cu.CUContext]bool  // devices whose memory this one reaches by itself, if it can
	shared   map[cu.Function]uint32 // dynamic shared memory that was set; kernels may share a function
}

var errClosed = fmt.Errorf("cuda: device %w", backend.ErrClosed)

// open makes device number index usable, in a context or, if that is none, in its primary one.
func open(index int, ctx cu.CUContext) (backend.Device, error) {
	info, err := describe(index)
	if err != nil {
		return nil, unavailable(err, "")
	}
	d := &device{
		info:    info,
		buffers: map[*buffer]struct{}{},
		graphs:  map[*recording]struct{}{},
		code:    map[[sha256.Size]byte]*library{},
		shared:  map[cu.Function]uint32{},
	}
	d.look = d.tryReap
	if d.dev, err = cu.GetDevice(index); err != nil {
		return nil, unavailable(err, "")
	}
	if d.caps, err = capabilities(d.dev); errors.Is(err, backend.ErrUnavailable) {
		return nil, err
	} else if err != nil {
		return nil, unavailable(err, "")
	}
	if d.ctx, d.primary = ctx, ctx == (cu.CUContext{}); d.primary {
		if d.ctx, err = d.dev.RetainPrimaryCtx(); err != nil {
			return nil, openError(err)
		}
	}
	if err := d.start(); err != nil {
		d.Close()
		return nil, openError(err)
	}
	return d, nil
}

// openError is the error of a device that is there but cannot be opened.
func openError(err error) error {
	if driver.Code(err) == driver.OutOfMemory {
		return wrap("opening the device: too little memory is free for a context", err)
	}
	return unavailable(err, "")
}

// start makes what the device needs in its context.
func (d *device) start() error {
	if err := d.push(); err != nil {
		return err
	}
	defer d.pop()
	var err error
	d.queue, err = driver.NewQueue(d.ctx)
	return err
}

func (d *device) push() error { return push(d.ctx) }

// push makes a context current, until pop.
func push(ctx cu.CUContext) error {
	runtime.LockOSThread()
	if err := cu.PushCurrentCtx(ctx); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	return nil
}

func (d *device) pop() { pop() }

func pop() {
	driver.Pop()
	runtime.UnlockOSThread()
}

// usable reports why the device cannot be used, if it cannot. The caller holds mu.
func (d *device) usable() error {
	if d.closed {
		return errClosed
	}
	return d.lost
}

// enter takes the device for calls in its context, until leave. With idle it waits first for what is on
// the device.
func (d *device) enter(ctx context.Context, idle bool) error {
	d.mu.Lock()
	err := d.usable()
	if err == nil && idle {
		err = d.settle(ctx)
	}
	if err == nil {
		if err = d.push(); err != nil {
			err = d.fail("entering the context", err)
		}
	}
	if err != nil {
		d.mu.Unlock()
	}
	return err
}

func (d *device) leave() {
	d.pop()
	d.mu.Unlock()
}

// fail wraps a call's error and remembers the loss of the device. The caller holds mu.
func (d *device) fail(what string, err error) error { return d.note(wrap(what, err)) }

func (d *device) note(err error) error {
	if errors.Is(err, backend.ErrDeviceLost) {
		d.lost = err
	}
	return err
}

func (d *device) Info() backend.Info { return d.info }

func (d *device) Caps() backend.Caps { return d.caps }

// Alloc returns device memory; cuMemAlloc aligns it to 256 bytes.
func (d *device) Alloc(bytes int64) (backend.Buffer, error) {
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.enter(context.Background(), false); err != nil {
		return nil, err
	}
	defer d.leave()
	defer driver.Relax()()
	p, err := cu.DevicePtr(0), error(driver.OutOfMemory)
	if bytes <= d.info.Memory {
		p, err = d.pool.alloc(bytes)
	}
	if err != nil {
		return nil, d.fail(fmt.Sprintf("allocating %d bytes%s", bytes, memoryLeft()), err)
	}
	b := &buffer{dev: d, ptr: p, size: bytes}
	d.buffers[b] = struct{}{}
	return b, nil
}

// memoryLeft says how much memory there is, for messages.
func memoryLeft() string {
	free, total, err := cu.MemInfo()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (%d MiB of %d MiB are free)", free>>20, total>>20)
}

// Close frees everything made from the device, then its context. After the loss of the device the
// calls that free fail, and it is the context's end that frees. Libraries are of no context.
func (d *device) Close() error {
	d.lending.Lock()
	defer d.lending.Unlock()
	d.loading.Lock()
	defer d.loading.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var first error
	keep := func(err error) {
		if first == nil && err != nil {
			first = err
		}
	}
	if err := d.push(); err != nil {
		keep(err)
	} else {
		d.settle(context.Background()) // what is lost is lost
		d.release(keep)
		d.pop()
	}
	d.unload(keep)
	if d.primary {
		keep(d.dev.ReleasePrimaryCtx())
	}
	if d.lost != nil || first == nil {
		return nil
	}
	return wrap("closing the device", first)
}

// release frees what lives in the context, which is current, and tells errors to keep.
func (d *device) release(keep func(error)) {
	for r := range d.graphs {
		keep(r.free())
	}
	for _, c := range d.clocks {
		keep(c.Destroy())
	}
	d.clocks = nil
	for b := range d.buffers {
		keep(cu.MemFree(b.ptr))
	}
	clear(d.buffers)
	keep(d.pool.trim())
	keep(d.staging.free())
	keep(d.aside.free())
	clear(d.shared)
	if d.queue != nil {
		keep(d.queue.Destroy())
		d.queue = nil
	}
}

// unload unloads the code of all kernels and tells errors to keep.
func (d *device) unload(keep func(error)) {
	for _, l := range d.code {
		if l.loaded != nil {
			keep(l.loaded.Unload())
		}
	}
	clear(d.code)
}
