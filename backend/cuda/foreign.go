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
		return fmt.Errorf("cuda: the default stream of each thread: goroutines change threads; make a stream: %w", backend.ErrUnsupported)
	}
	if err := d.enter(ctx, true); err != nil {
		return err
	}
	defer d.leave()
	err := d.queue.SetStream(stream)
	if driver.Code(err) == driver.InvalidContext {
		return errors.New("cuda: the stream belongs to another context than the device was opened on: open it on that, with cuda.OpenContext")
	} else if err != nil {
		return d.fail("using a stream", err)
	}
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
	}
	return nil
}
