//go:build cuda && cgo && linux && (amd64 || arm64)

// Page-locked memory of the host.
//
// The driver's own (cuMemHostAlloc) is made by one thread at a time, in pages of 4 KiB: 2 to 3 GB/s on an H200's host.
// So much memory is mapped by the program, in pages of 2 MiB where the system has them, touched by several threads, and
// then registered, which takes little for pages that are there.

package cuda

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// AllocHost returns page-locked memory. See backend.HostAllocator.
func (d *device) AllocHost(bytes int64) (backend.HostMemory, error) {
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d.mu.Lock()
	err := d.usable()
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	// Without the device's lock: much memory takes seconds, and several allocations go on at once.
	d.lending.RLock()
	defer d.lending.RUnlock()
	if d.closed {
		return nil, errClosed
	}
	if err := d.push(); err != nil {
		return nil, wrap("entering the context", err)
	}
	defer d.pop()
	m, err := lockedMemory(int(bytes))
	if err != nil {
		return nil, wrap(fmt.Sprintf("page-locking %d bytes of host memory", bytes), err)
	}
	m.ctx = d.ctx
	if d.primary {
		if _, err := d.dev.RetainPrimaryCtx(); err != nil { // the context stays as long as its memory is used
			m.free()
			return nil, wrap("keeping the context", err)
		}
		m.release = d.dev.ReleasePrimaryCtx
	}
	return m, nil
}

// lockedMemory returns page-locked memory; the context is current.
func lockedMemory(bytes int) (*hostMemory, error) {
	const much = 8 << 20
	if bytes >= much {
		if mapped, p, err := mapHuge(bytes); err == nil {
			if err := driver.HostRegister(p); err == nil {
				return &hostMemory{p: p, mapped: mapped}, nil
			}
			_ = unix.Munmap(mapped) // where memory cannot be registered the driver's own may be had
		}
	}
	p, err := driver.HostAlloc(bytes)
	return &hostMemory{p: p}, err
}

// mapHuge maps memory, and returns that part of it which begins with a huge page, once all of it is there.
func mapHuge(bytes int) (mapped, p []byte, err error) {
	const huge, page = 2 << 20, 4 << 10
	if mapped, err = unix.Mmap(-1, 0, bytes+huge, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return nil, nil, err
	}
	at := int(-uintptr(unsafe.Pointer(&mapped[0])) % huge)
	p = mapped[at:][:bytes:bytes]
	_ = unix.Madvise(mapped[at:at+bytes], unix.MADV_HUGEPAGE) // an advice
	run, _ := errgroup.WithContext(context.Background())
	run.SetLimit(min(8, runtime.GOMAXPROCS(0)))
	const each = 16 * huge
	for lo := 0; lo < bytes; lo += each {
		run.Go(func() error {
			for i := lo; i < min(lo+each, bytes); i += page {
				p[i] = 0
			}
			return nil
		})
	}
	return mapped, p, run.Wait()
}

// hostMemory is page-locked memory of the host.
type hostMemory struct {
	mu      sync.Mutex
	p       []byte
	mapped  []byte // by the program, and p is registered; nil: p is the driver's
	ctx     cu.CUContext
	release func() error // the context; nil: it is the caller's
}

func (m *hostMemory) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

func (m *hostMemory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.p == nil {
		return nil
	}
	err := push(m.ctx)
	if err == nil {
		err = m.free()
		pop()
	}
	m.p = nil
	if m.release != nil {
		if e := m.release(); err == nil {
			err = e
		}
	}
	if err != nil && !fatal(driver.Code(err)) { // after the loss of the device its context's end frees
		return wrap("freeing page-locked host memory", err)
	}
	return nil
}

// free frees the memory; the context is current. Mapped memory that stays registered is left to the process's end.
func (m *hostMemory) free() error {
	if m.mapped == nil {
		return cu.MemFreeHost(unsafe.Pointer(&m.p[0]))
	}
	if err := driver.HostUnregister(m.p); err != nil {
		return err
	}
	return unix.Munmap(m.mapped)
}
