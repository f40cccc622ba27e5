// Buffers in the host's memory.

package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/memory"
)

const (
	alignment = 256
	// mapped is the size from which memory comes from the system, huge pages preferred, rather than from Go's
	// heap; it is given back at Close, not at some garbage collection.
	mapped = 1 << 18
	// chunk is the bytes that one worker touches or copies at a time: a huge page.
	chunk = 2 << 20
)

type buffer struct {
	dev   *device
	size  int64
	mem   []byte // whole words; nil once closed
	unmap bool
}

// Alloc takes memory that is there: sizes from mapped on are held against what the system has available, and
// touched by all workers, which also spreads them over the memory of several processors.
func (d *device) Alloc(bytes int64) (backend.Buffer, error) {
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	words := (bytes + 3) &^ 3
	b := &buffer{dev: d, size: bytes}
	if words < mapped {
		raw := make([]byte, words+alignment)
		skip := -uintptr(unsafe.Pointer(&raw[0])) % alignment
		b.mem = raw[skip:][:words:words]
	} else if err := b.mapMemory(words); err != nil {
		return nil, err
	}
	d.buffers[b] = struct{}{}
	return b, nil
}

func (b *buffer) mapMemory(bytes int64) error {
	if have := memory.Available(); have > 0 && bytes > have-have/16 {
		return fmt.Errorf("buffer of %d MiB, the system has %d MiB available: %w", bytes>>20, have>>20,
			backend.ErrOutOfMemory)
	}
	mem, err := mapPages(bytes)
	if err != nil {
		return fmt.Errorf("buffer of %d MiB: %w: %w", bytes>>20, err, backend.ErrOutOfMemory)
	}
	b.mem, b.unmap = mem, true
	touch := func(lo, hi int64) {
		for i := lo * chunk; i < min(hi*chunk, bytes); i += 4096 {
			mem[i] = 0
		}
	}
	chunks := (bytes + chunk - 1) / chunk
	if len(b.dev.jobs) > 0 { // which have the pool
		touch(0, chunks)
		return nil
	}
	return b.dev.pool.do(nil, chunks, touch)
}

func (b *buffer) Size() int64 { return b.size }

func (b *buffer) Write(ctx context.Context, off int64, p []byte) error {
	return b.transfer(ctx, off, p, func(host, mem []byte) { copy(mem, host) })
}

func (b *buffer) Read(ctx context.Context, off int64, p []byte) error {
	return b.transfer(ctx, off, p, func(host, mem []byte) { copy(host, mem) })
}

func (b *buffer) transfer(ctx context.Context, off int64, p []byte, move func(host, mem []byte)) error {
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return err
	}
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.dev.mu.Unlock()
	n, mem := int64(len(p)), b.mem[off:]
	if n <= chunk {
		move(p, mem[:n])
		return nil
	}
	err := b.dev.pool.do(ctx.Done(), (n+chunk-1)/chunk, func(lo, hi int64) {
		lo, hi = lo*chunk, min(hi*chunk, n)
		move(p[lo:hi], mem[lo:hi])
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// enter locks the device for a copy, after what was started before.
func (b *buffer) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.dev.mu.Lock()
	err := b.dev.settle(ctx)
	if err == nil && b.mem == nil {
		err = errClosed
	}
	if err != nil {
		b.dev.mu.Unlock()
	}
	return err
}

func (b *buffer) Close() error {
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	b.dev.settle(context.Background())
	return b.free()
}

// free is called with the device locked.
func (b *buffer) free() error {
	mem := b.mem
	b.mem = nil
	delete(b.dev.buffers, b)
	if mem == nil || !b.unmap {
		return nil
	}
	return unmapPages(mem)
}
