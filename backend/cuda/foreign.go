//go:build cuda && cgo && linux && (amd64 || arm64)

// What belongs to others: their context, their stream, their memory on the device.

package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

func openContext(ctx context.Context, handle uintptr) (backend.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := count(); err != nil {
		return nil, err
	}
	if handle == 0 {
		return nil, errors.New("cuda: a context of handle 0: there is none; spmm.Open opens the device on its primary context")
	}
	index, err := driver.DeviceOf(driver.Context(handle))
	if err != nil {
		return nil, unavailable(err, "")
	}
	return open(index, driver.Context(handle))
}

// StreamOf returns the handle of a stream, for UseStream.
func StreamOf(s cu.Stream) uintptr { return *(*uintptr)(unsafe.Pointer(&s)) }

// ContextOf returns the handle of a context, for OpenContext.
func ContextOf(c cu.CUContext) uintptr { return *(*uintptr)(unsafe.Pointer(&c)) }

// UseStream has launches and copies go to another stream. See backend.Streamer.
func (d *device) UseStream(ctx context.Context, stream uintptr) error {
	if stream == driver.PerThreadStream {
		return errPerThread
	}
	if err := d.enter(ctx, false); err != nil {
		return err
	}
	defer d.leave()
	if err := d.settleRun(ctx); err != nil {
		return err
	}
	var last driver.Clock
	if n := len(d.started); n > 0 {
		last = d.started[n-1].clock
	}
	err := d.queue.SetStream(stream, last)
	if driver.Code(err) == driver.InvalidContext {
		return errStreamContext
	} else if err != nil {
		return d.fail("using a stream", err)
	}
	return nil
}

var (
	errPerThread = fmt.Errorf("cuda: the default stream of each thread: goroutines change threads; make a stream: %w",
		backend.ErrUnsupported)
	errStreamContext = errors.New("cuda: the stream belongs to another context than the device was opened on: open it on that, with cuda.OpenContext")
)

// Enqueue submits launches to a stream without events. See backend.Streamer.
func (d *device) Enqueue(stream uintptr, launches ...backend.Launch) (captured bool, err error) {
	switch stream {
	case driver.PerThreadStream:
		return false, errPerThread
	case backend.OwnStream:
		return false, errors.New("cuda: the device's own stream is for Start: give Enqueue a stream of the program's, 0 for the default one")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return false, err
	}
	left, err := d.checkAll(launches)
	if err != nil {
		return false, err
	}
	first := 0
	for i := range launches {
		if launches[i].Empty() {
			continue
		}
		d.add(&launches[i])
		if left--; left > 0 && !d.queue.Full() {
			continue
		}
		captured, err = d.queue.Enqueue(stream)
		d.enqueued = true
		if driver.Code(err) == driver.InvalidContext {
			return false, errStreamContext
		} else if err != nil {
			return captured, d.fail(d.blame(launches[first:]), err)
		}
		first = i + 1
	}
	return captured, nil
}

// settleEnqueued waits for what was enqueued to streams of others.
func (d *device) settleEnqueued() error {
	if !d.enqueued {
		return nil
	}
	if err := d.queue.WaitAll(); err != nil {
		return d.fail("waiting for what was enqueued", err)
	}
	d.enqueued = false
	return nil
}

// Import makes a buffer of somebody else's memory. See backend.Importer.
func (d *device) Import(address uintptr, bytes int64) (backend.Buffer, error) {
	if err := backend.CheckAddress(address, bytes); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := d.enter(context.Background(), false); err != nil {
		return nil, err
	}
	defer d.leave()
	p := cu.DevicePtr(address)
	if err := d.checkMemory(p, bytes); err != nil {
		return nil, err
	}
	return &buffer{dev: d, ptr: p, size: bytes, imported: true}, nil
}

// Move points an imported buffer elsewhere. See backend.Mover.
func (b *buffer) Move(address uintptr) error {
	if err := backend.CheckAddress(address, b.size); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	d, p := b.dev, cu.DevicePtr(address)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case b.closed:
		return errBufferClosed
	case !b.imported:
		return errors.New("cuda: memory of the device's own cannot be moved: import some")
	case b.ptr == p:
		return nil
	}
	if err := d.usable(); err != nil {
		return err
	}
	if !d.checked.has(p, b.size) {
		if err := d.push(); err != nil {
			return d.fail("entering the context", err)
		}
		defer d.pop()
		if err := d.checkMemory(p, b.size); err != nil {
			return err
		}
	}
	b.ptr = p
	return nil
}

// ranges are the last allocations of others that were checked.
type ranges struct {
	kept [16]struct{ from, to cu.DevicePtr }
	next int
}

func (r *ranges) has(p cu.DevicePtr, bytes int64) bool {
	for i := range r.kept {
		if k := &r.kept[i]; p >= k.from && p < k.to && k.to-p >= cu.DevicePtr(bytes) {
			return true
		}
	}
	return false
}

func (r *ranges) keep(from, to cu.DevicePtr) {
	r.kept[r.next].from, r.kept[r.next].to = from, to
	r.next = (r.next + 1) % len(r.kept)
}

// checkMemory refuses an address range that kernels of the device must not touch. It may span several allocations that
// lie side by side, as those of an allocator that maps memory in chunks.
func (d *device) checkMemory(p cu.DevicePtr, bytes int64) error {
	for at, end := p, p+cu.DevicePtr(bytes); at < end; {
		m, err := driver.MemoryAt(at)
		switch {
		case driver.Code(err) == driver.InvalidValue && at > p:
			return fmt.Errorf("cuda: %d bytes at %#x: only %d are allocated there", bytes, uint64(p), int64(at-p))
		case driver.Code(err) == driver.InvalidValue:
			return fmt.Errorf("cuda: no memory of CUDA's lies at %#x", uint64(p))
		case err != nil:
			return d.fail("importing memory", err)
		case !m.OnDevice:
			return fmt.Errorf("cuda: the memory at %#x is the host's: upload it", uint64(p))
		case m.Device >= 0 && m.Device != d.info.Index:
			return fmt.Errorf("cuda: the memory at %#x is on device %d, not on device %d", uint64(p), m.Device, d.info.Index)
		case m.Context != 0 && m.Context != ContextOf(d.ctx):
			return fmt.Errorf("cuda: the memory at %#x belongs to another context than the device was opened on: open it on that, with cuda.OpenContext", uint64(p))
		case m.Size <= 0 || m.Start > at || at-m.Start >= cu.DevicePtr(m.Size):
			return fmt.Errorf("cuda: the driver does not tell how much memory lies at %#x", uint64(p))
		}
		at = m.Start + cu.DevicePtr(m.Size)
		d.checked.keep(m.Start, at)
	}
	return nil
}
