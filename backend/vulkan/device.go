// An opened device: its queue, its memory, its kernels, and what is freed with it.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
)

var errClosed = fmt.Errorf("vulkan: device %w", backend.ErrClosed)

var errLost = resultError(vk.ErrorDeviceLost, "earlier call")

// device implements backend.Device. The lock serialises everything that touches the queue or the
// lists below; C is called with the lock held.
type device struct {
	a        *adapter
	queue    queue
	features *features
	props    properties
	caps     backend.Caps
	tick     float64 // nanoseconds of a timestamp's unit; 0: no timestamps
	tickMask uint64

	mu       sync.Mutex
	closed   bool
	lost     bool
	handle   vk.Device
	native   *C.sv_device
	launches []C.sv_launch // C's array, filled for each batch
	batch    backend.Batch // the same launches, to predict their time
	hazards  hazards       // of the same launches
	running  bool          // a cancelled Run has left launches on the device
	started  []started     // in order
	spare    []*work       // that nobody uses
	records  map[*recording]struct{}
	cuts     backend.Batch // to predict the time of launches that are recorded
	look     func()        // d.tryReap
	pool     pool
	staging  staging
	hosts    []*hostMemory // not closed yet
	kernels  map[*kernel]struct{}
	layouts  map[C.uint32_t]C.uint64_t // pipeline layouts by bytes of push constants
	cache    pipelineCache
}

func openDevice(a *adapter) (_ *device, err error) {
	if err := a.refuse(); err != nil {
		return nil, err
	}
	f, err := a.features()
	if err != nil {
		return nil, err
	}
	q, ok := a.queue()
	if !ok {
		return nil, unavailable("%s has no queue that computes", a.info.Name)
	}
	p := a.properties()
	a.checkProperties(&p)
	if err := a.refuse(); err != nil {
		return nil, err
	}
	d := &device{
		a: a, queue: q, features: f, props: p, caps: a.caps(f, &p),
		records: map[*recording]struct{}{}, kernels: map[*kernel]struct{}{}, layouts: map[C.uint32_t]C.uint64_t{},
	}
	if t := a.limits.nanosPerTick; q.timestampBits > 0 && t > 0 {
		d.tick, d.tickMask = t, 1<<q.timestampBits-1
	}
	d.look = d.tryReap
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := d.create(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := d.pool.init(d); err != nil {
		return nil, err
	}
	d.cache.open(d)
	d.caps.Lanes = d.lanes()
	return d, nil
}

// create makes the VkDevice.
func (d *device) create() error {
	var c chain
	defer c.release()
	extensions, free := cStrings(d.features.link(&c, d.a))
	defer free()
	var handle unsafe.Pointer
	r := C.sv_create_device(d.a.in.proc("vkCreateDevice"), unsafe.Pointer(d.a.handle), c.head, C.uint32_t(d.queue.family),
		unsafe.SliceData(extensions), C.uint32_t(len(extensions)), &handle)
	d.handle = vk.Device(handle)
	if r == 0 && handle == nil {
		return unavailable("%s: vkCreateDevice succeeds and makes no device; reinstall its driver", d.a.info.Name)
	}
	return d.check(r, "vkCreateDevice")
}

// open resolves the device's functions and makes its queue's objects.
func (d *device) open() error {
	var queue vk.Queue
	if len(d.a.memory) > 0 { // making a fence crashes a device that only compiles
		vk.GetDeviceQueue(d.handle, d.queue.family, 0, &queue)
		if queue == nil {
			return unavailable("%s: its driver gives no queue; reinstall it", d.a.info.Name)
		}
	}
	timestamps := C.int(0)
	if d.tick > 0 {
		timestamps = 1
	}
	var missing *C.char
	r := C.sv_open(d.a.in.proc("vkGetDeviceProcAddr"), unsafe.Pointer(d.handle), unsafe.Pointer(queue),
		C.uint32_t(d.queue.family), timestamps, &d.native, &missing)
	if missing != nil {
		return unavailable("%s: its driver lacks %s", d.a.info.Name, C.GoString(missing))
	}
	if err := d.check(r, "opening the queue"); err != nil {
		return err
	}
	d.launches = unsafe.Slice(C.sv_launches(d.native), C.SV_BATCH)
	return nil
}

func (d *device) Info() backend.Info { return d.a.info }

func (d *device) Caps() backend.Caps { return d.caps }

// usable tells why a call cannot be served.
func (d *device) usable() error {
	switch {
	case d.closed:
		return errClosed
	case d.lost:
		return errLost
	}
	return nil
}

// ready tells why a call cannot be served, after waiting for what is on the device.
func (d *device) ready(ctx context.Context) error {
	if err := d.usable(); err != nil {
		return err
	}
	return d.settle(ctx)
}

// check turns a result of C into an error and remembers the device's loss.
func (d *device) check(r C.int, call string) error {
	if r == 0 {
		return nil
	}
	if vk.Result(r) == vk.ErrorDeviceLost {
		d.lost = true
	}
	return resultError(vk.Result(r), call)
}

// Close frees the device with its kernels and buffers. What is left of it goes with the last of its host memory.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if d.native != nil {
		d.settle(context.Background()) // what is lost is lost
		C.sv_idle(d.native)
		for r := range d.records {
			d.free(r.parts)
		}
		d.free(d.spare)
		for k := range d.kernels {
			C.sv_free_pipeline(d.native, k.pipeline)
		}
		for _, l := range d.layouts {
			C.sv_free_layout(d.native, l)
		}
		d.cache.close(d)
		d.staging.free(d)
		d.pool.free(d)
	}
	d.launches, d.kernels, d.layouts = nil, nil, nil
	if len(d.hosts) == 0 {
		d.destroy()
	}
	return nil
}

// destroy ends the device itself.
func (d *device) destroy() {
	if d.native != nil {
		C.sv_close(d.native)
	}
	if d.handle != nil {
		vk.DestroyDevice(d.handle, nil)
	}
	d.native, d.handle = nil, nil
}
