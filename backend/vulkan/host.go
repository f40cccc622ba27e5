// Host memory that the device copies from and to by itself, without the staging buffer.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
)

// hostPiece is how many bytes of host memory one copy moves; a context is looked at in between.
const hostPiece = 64 << 20

// hostMemory is mapped memory under a buffer of its own. The device's lock guards it.
type hostMemory struct {
	d    *device
	mem  C.sv_memory // all zero once freed
	size int64
}

// allocHost allocates mapped memory of the host, cached if there is such, for copies.
func (d *device) allocHost(bytes int64) (mem C.sv_memory, err error) {
	var types C.uint32_t
	if err := d.check(C.sv_memory_types(d.native, usageTransfer, &types), "vkCreateBuffer"); err != nil {
		return mem, err
	}
	const visible = vk.MemoryPropertyHostVisibleBit | vk.MemoryPropertyHostCoherentBit
	t := d.a.pickMemory(uint32(types), visible|vk.MemoryPropertyHostCachedBit, visible)
	if t < 0 {
		return mem, fmt.Errorf("vulkan: %s offers no memory that the host can write: %w", d.a.info.Name,
			backend.ErrUnsupported)
	}
	if most := d.props.maxAllocation; most > 0 && bytes > most {
		return mem, fmt.Errorf("vulkan: %d bytes of host memory, and the driver allocates at most %d at once: %w", bytes, most, backend.ErrUnsupported)
	}
	err = d.check(C.sv_alloc(d.native, C.uint64_t(bytes), C.uint32_t(t), usageTransfer, 1, &mem), "vkAllocateMemory")
	return mem, err
}

// AllocHost returns mapped memory. See backend.HostAllocator.
func (d *device) AllocHost(bytes int64) (backend.HostMemory, error) {
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, fmt.Errorf("vulkan: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	mem, err := d.allocHost(roundUp(bytes))
	if err != nil {
		return nil, err
	}
	m := &hostMemory{d, mem, bytes}
	d.hosts = append(d.hosts, m)
	return m, nil
}

// Bytes returns the memory, nil once it is freed.
func (m *hostMemory) Bytes() []byte {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.mem.host == nil {
		return nil
	}
	return unsafe.Slice((*byte)(m.mem.host), m.size)
}

// Close frees the memory, and the device if that was closed before and this is the last of its memory.
func (m *hostMemory) Close() error {
	d := m.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.mem.host == nil {
		return nil
	}
	C.sv_free(d.native, &m.mem)
	m.mem = C.sv_memory{}
	d.hosts = slices.DeleteFunc(d.hosts, func(o *hostMemory) bool { return o == m })
	if d.closed && len(d.hosts) == 0 {
		d.destroy()
	}
	return nil
}

// hostAt returns the host memory of the device's that p lies in, and where; nil if p is other memory.
func (d *device) hostAt(p []byte) (*hostMemory, int64) {
	first := uintptr(unsafe.Pointer(&p[0]))
	for _, m := range d.hosts {
		if at := int64(first - uintptr(m.mem.host)); first >= uintptr(m.mem.host) && at <= m.size-int64(len(p)) {
			return m, at
		}
	}
	return nil, 0
}

// copy copies n bytes between the memory, from at on, and a buffer, from off on, two chunks at a time.
func (m *hostMemory) copy(ctx context.Context, at int64, b *buffer, off int64, n int, in bool) error {
	d := m.d
	off += b.block.skip + b.off
	for i, left := 0, int64(n); left > 0; i = (i + 1) % C.SV_SLOTS {
		k := min(left, hostPiece)
		err := d.check(C.sv_copy_wait(d.native, C.int(i)), "vkWaitForFences")
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			from, to := m.mem.buffer, b.block.mem.buffer
			fromOff, toOff := C.uint64_t(at), C.uint64_t(off)
			if !in {
				from, to, fromOff, toOff = to, from, toOff, fromOff
			}
			err = d.check(C.sv_copy(d.native, C.int(i), from, fromOff, to, toOff, C.uint64_t(k)), "vkCmdCopyBuffer")
		}
		if err != nil {
			d.staging.settle(d)
			return err
		}
		at, off, left = at+k, off+k, left-k
	}
	return d.staging.settle(d)
}
