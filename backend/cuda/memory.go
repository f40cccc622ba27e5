//go:build cuda && cgo && linux && (amd64 || arm64)

// Device memory: buffers, and the pool that makes allocating one of the same size again cheap.

package cuda

import (
	"context"
	"fmt"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// The pool keeps blocks up to maxBlock bytes, maxCached bytes together.
const (
	maxBlock  = 64 << 20
	maxCached = 256 << 20
)

// pool keeps freed blocks by their exact size, so that a tool like compute-sanitizer still sees
// every access past a buffer's end. Its owner's context must be current.
type pool struct {
	free   map[int64][]cu.DevicePtr
	cached int64 // bytes
}

// alloc returns a block, giving the cached ones back to the driver if memory has run out.
func (p *pool) alloc(size int64) (cu.DevicePtr, error) {
	if list := p.free[size]; len(list) > 0 {
		last := len(list) - 1
		p.free[size] = list[:last]
		p.cached -= size
		return list[last], nil
	}
	ptr, err := cu.MemAlloc(size)
	if driver.Code(err) == driver.OutOfMemory && p.cached > 0 {
		if err := p.trim(); err != nil {
			return 0, err
		}
		ptr, err = cu.MemAlloc(size)
	}
	return ptr, err
}

// put takes a block back.
func (p *pool) put(ptr cu.DevicePtr, size int64) error {
	if size > maxBlock {
		return cu.MemFree(ptr)
	}
	if p.cached+size > maxCached {
		if err := p.trim(); err != nil {
			return err
		}
	}
	if p.free == nil {
		p.free = map[int64][]cu.DevicePtr{}
	}
	p.free[size] = append(p.free[size], ptr)
	p.cached += size
	return nil
}

// trim gives all cached blocks back to the driver.
func (p *pool) trim() error {
	var first error
	for _, list := range p.free {
		for _, ptr := range list {
			if err := cu.MemFree(ptr); err != nil && first == nil {
				first = err
			}
		}
	}
	clear(p.free)
	p.cached = 0
	return first
}

// buffer is memory of a device. The device's mu guards it.
type buffer struct {
	dev    *device
	ptr    cu.DevicePtr
	size   int64
	closed bool

	imported bool // the memory is somebody else's
}

var errBufferClosed = fmt.Errorf("cuda: buffer %w", backend.ErrClosed)

func (b *buffer) Size() int64 { return b.size }

// overlaps reports whether two buffers have memory in common.
func (b *buffer) overlaps(x *buffer) bool {
	return b.ptr < x.ptr+cu.DevicePtr(x.size) && x.ptr < b.ptr+cu.DevicePtr(b.size)
}

// Close gives the memory to the pool, or lets go of its owner's, when what a cancelled Run has left on the device is
// done.
func (b *buffer) Close() error {
	d := b.dev
	d.lending.Lock()
	defer d.lending.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if d.usable() != nil { // freed with the device, or by its Close
		return nil
	}
	delete(d.buffers, b)
	if err := d.settle(context.Background()); err != nil || b.imported {
		return nil // lost: freed with the device
	}
	if err := d.push(); err != nil {
		return d.fail("entering the context", err)
	}
	defer d.pop()
	if err := d.pool.put(b.ptr, b.size); err != nil {
		return d.fail("freeing memory", err)
	}
	return nil
}
