//go:build cuda && cgo && linux && (amd64 || arm64)

// Copies between Go's memory and the device. Go's memory is pageable, which the device cannot read
// at full speed, so data go through two page-locked blocks: while the device copies one, the other
// is filled or emptied.

package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

const (
	stagingBlock = 4 << 20
	copyPart     = 512 << 10 // what one goroutine copies at least
	copyWorkers  = 8
)

// staging is the page-locked memory, made on first use.
type staging struct {
	block [2][]byte
	done  [2]cu.Event // the device's last use of the block has ended
}

func (s *staging) make() error {
	for i := range s.block {
		if s.block[i] != nil {
			continue
		}
		var err error
		if s.done[i] == (cu.Event{}) {
			if s.done[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return err
			}
		}
		if s.block[i], err = driver.HostAlloc(stagingBlock); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) free() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range s.block {
		if s.block[i] != nil {
			keep(cu.MemFreeHost(unsafe.Pointer(&s.block[i][0])))
			s.block[i] = nil
		}
		if s.done[i] != (cu.Event{}) {
			keep(cu.DestroyEvent(&s.done[i]))
		}
	}
	return first
}

// copyMemory copies with as many goroutines as make it faster: one core copies slower than the bus.
func copyMemory(dst, src []byte) {
	n := min(len(src)/copyPart, copyWorkers, runtime.GOMAXPROCS(0))
	if n <= 1 {
		copy(dst, src)
		return
	}
	part := (len(src) + n - 1) / n
	var wg sync.WaitGroup
	for at := 0; at < len(src); at += part {
		end := min(at+part, len(src))
		wg.Go(func() { copy(dst[at:end], src[at:end]) })
	}
	wg.Wait()
}

// enter takes the device for a copy of n bytes at off, after checking them.
func (b *buffer) enter(ctx context.Context, what string, off int64, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := backend.CheckRange(b.size, off, n); err != nil {
		return fmt.Errorf("cuda: %s: %w", what, err)
	}
	d := b.dev
	if err := d.enter(ctx, true); err != nil {
		return err
	}
	err := error(nil)
	if b.closed {
		err = errBufferClosed
	} else if e := d.staging.make(); e != nil {
		err = d.fail("allocating page-locked host memory", e)
	}
	if err != nil {
		d.leave()
	}
	return err
}

// Write copies p to the buffer at off.
func (b *buffer) Write(ctx context.Context, off int64, p []byte) error {
	if err := b.enter(ctx, "write", off, len(p)); err != nil {
		return err
	}
	defer b.dev.leave()
	return b.dev.finish(ctx, "writing to the device", b.dev.write(ctx, b.ptr+cu.DevicePtr(off), p))
}

// Read copies from the buffer at off to p.
func (b *buffer) Read(ctx context.Context, off int64, p []byte) error {
	if err := b.enter(ctx, "read", off, len(p)); err != nil {
		return err
	}
	defer b.dev.leave()
	return b.dev.finish(ctx, "reading from the device", b.dev.read(ctx, p, b.ptr+cu.DevicePtr(off)))
}

// finish waits for the copies that were started and turns the first error into the caller's.
func (d *device) finish(ctx context.Context, what string, err error) error {
	if e := d.queue.Stream().Synchronize(); err == nil || driver.Code(e) != 0 {
		err = e
	}
	if err == nil || err == ctx.Err() {
		return err
	}
	return d.fail(what, err)
}

// write fills the blocks by turns. A block is free again when its last copy is done.
func (d *device) write(ctx context.Context, dst cu.DevicePtr, p []byte) error {
	s := &d.staging
	for i := 0; len(p) > 0; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := i & 1
		if i >= 2 {
			if err := s.done[k].Synchronize(); err != nil {
				return err
			}
		}
		n := min(len(p), stagingBlock)
		copyMemory(s.block[k][:n], p[:n])
		if err := cu.MemcpyHtoDAsync(dst, unsafe.Pointer(&s.block[k][0]), int64(n), d.queue.Stream()); err != nil {
			return err
		}
		if err := s.done[k].Record(d.queue.Stream()); err != nil {
			return err
		}
		dst, p = dst+cu.DevicePtr(n), p[n:]
	}
	return nil
}

// read starts the copy into one block before it empties the other.
func (d *device) read(ctx context.Context, p []byte, src cu.DevicePtr) error {
	s := &d.staging
	start := func(i int) error {
		at := i * stagingBlock
		if at >= len(p) {
			return nil
		}
		n := min(len(p)-at, stagingBlock)
		err := cu.MemcpyDtoHAsync(unsafe.Pointer(&s.block[i&1][0]), src+cu.DevicePtr(at), int64(n), d.queue.Stream())
		if err != nil {
			return err
		}
		return s.done[i&1].Record(d.queue.Stream())
	}
	if err := start(0); err != nil {
		return err
	}
	for i, at := 0, 0; at < len(p); i, at = i+1, at+stagingBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := start(i + 1); err != nil {
			return err
		}
		if err := s.done[i&1].Synchronize(); err != nil {
			return err
		}
		n := min(len(p)-at, stagingBlock)
		copyMemory(p[at:at+n], s.block[i&1][:n])
	}
	return nil
}
