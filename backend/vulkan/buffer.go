// Buffers, and how bytes get into and out of them: through the map where the host sees device memory,
// else through a staging buffer with two copies in flight.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

// stagingSlot is how many bytes one copy moves.
const stagingSlot = 8 << 20

var errBufferClosed = fmt.Errorf("vulkan: buffer %w", backend.ErrClosed)

// buffer implements backend.Buffer.
type buffer struct {
	d     *device
	size  int64
	block *block // nil once closed
	off   int64  // in the block
}

func (d *device) Alloc(bytes int64) (backend.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	block, off, err := d.pool.alloc(d, roundUp(bytes))
	if err != nil {
		return nil, err
	}
	return &buffer{d: d, size: bytes, block: block, off: off}, nil
}

func roundUp(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

func (b *buffer) Size() int64 { return b.size }

// address is the one that kernels get.
func (b *buffer) address() uint64 {
	return uint64(b.block.mem.address) + uint64(b.block.skip+b.off)
}

func (b *buffer) Close() error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.block != nil && !b.d.closed {
		b.d.settle(context.Background()) // a loss is for the next call to tell
		if !b.d.lost {                   // else freed with the device: who knows what it is doing
			b.d.pool.release(b.d, b.block, b.off, roundUp(b.size))
		}
	}
	b.block = nil
	return nil
}

// ready checks a copy before it starts.
func (b *buffer) ready(ctx context.Context, off int64, p []byte) error {
	if err := b.d.usable(); err != nil {
		return err
	}
	if b.block == nil {
		return errBufferClosed
	}
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return fmt.Errorf("vulkan: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.d.settle(ctx)
}

func (b *buffer) Write(ctx context.Context, off int64, p []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.ready(ctx, off, p); err != nil || len(p) == 0 {
		return err
	}
	if b.block.mem.host != nil {
		copy(b.block.bytes(b.off+off, int64(len(p))), p)
		return nil
	}
	if h, at := b.d.hostAt(p); h != nil {
		return h.copy(ctx, at, b, off, len(p), true)
	}
	return b.d.staging.write(ctx, b, off, p)
}

func (b *buffer) Read(ctx context.Context, off int64, p []byte) error {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if err := b.ready(ctx, off, p); err != nil || len(p) == 0 {
		return err
	}
	if b.block.mem.host != nil && b.d.pool.readable {
		copy(p, b.block.bytes(b.off+off, int64(len(p))))
		return nil
	}
	if h, at := b.d.hostAt(p); h != nil {
		return h.copy(ctx, at, b, off, len(p), false)
	}
	return b.d.staging.read(ctx, b, off, p)
}

// staging is host memory that the device copies from and to; made on first use.
type staging struct{ mem C.sv_memory }

func (s *staging) init(d *device) error {
	if s.mem.memory != 0 {
		return nil
	}
	var err error
	s.mem, err = d.allocHost(C.SV_SLOTS * stagingSlot)
	return err
}

func (s *staging) free(d *device) { C.sv_free(d.native, &s.mem) }

// slot is the host's view of a slot's first n bytes.
func (s *staging) slot(i, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(s.mem.host, i*stagingSlot)), n)
}

func (s *staging) write(ctx context.Context, b *buffer, off int64, p []byte) error {
	d := b.d
	if err := s.init(d); err != nil {
		return err
	}
	at := C.uint64_t(b.block.skip + b.off + off)
	for i := 0; len(p) > 0; i = (i + 1) % C.SV_SLOTS {
		n := min(len(p), stagingSlot)
		err := d.check(C.sv_copy_wait(d.native, C.int(i)), "vkWaitForFences")
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			copy(s.slot(i, n), p)
			err = d.check(C.sv_copy(d.native, C.int(i), s.mem.buffer, C.uint64_t(i*stagingSlot), b.block.mem.buffer, at,
				C.uint64_t(n)), "vkCmdCopyBuffer")
		}
		if err != nil {
			s.settle(d)
			return err
		}
		p = p[n:]
		at += C.uint64_t(n)
	}
	return s.settle(d)
}

func (s *staging) read(ctx context.Context, b *buffer, off int64, p []byte) error {
	d := b.d
	if err := s.init(d); err != nil {
		return err
	}
	at := C.uint64_t(b.block.skip + b.off + off)
	var pending [C.SV_SLOTS][]byte // where each slot's bytes go
	fetch := func(i int) error {
		if err := d.check(C.sv_copy_wait(d.native, C.int(i)), "vkWaitForFences"); err != nil {
			return err
		}
		copy(pending[i], s.slot(i, len(pending[i])))
		pending[i] = nil
		return nil
	}
	i := 0
	for ; len(p) > 0; i = (i + 1) % C.SV_SLOTS {
		n := min(len(p), stagingSlot)
		err := fetch(i)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = d.check(C.sv_copy(d.native, C.int(i), b.block.mem.buffer, at, s.mem.buffer, C.uint64_t(i*stagingSlot),
				C.uint64_t(n)), "vkCmdCopyBuffer")
		}
		if err != nil {
			s.settle(d)
			return err
		}
		pending[i] = p[:n]
		p = p[n:]
		at += C.uint64_t(n)
	}
	for range C.SV_SLOTS {
		if err := fetch(i); err != nil {
			s.settle(d)
			return err
		}
		i = (i + 1) % C.SV_SLOTS
	}
	return nil
}

// settle awaits what is in flight, so that no copy outlives its call.
func (s *staging) settle(d *device) (err error) {
	for i := range C.SV_SLOTS {
		if e := d.check(C.sv_copy_wait(d.native, C.int(i)), "vkWaitForFences"); e != nil {
			err = e
		}
	}
	return err
}
