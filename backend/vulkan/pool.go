// Device memory: blocks that buffers are cut from. A block is one VkDeviceMemory under one VkBuffer
// with a device address; large buffers have a block of their own.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
)

const (
	alignment    = 256      // of every buffer
	blockSize    = 64 << 20 // of a block that buffers share
	ownBlockSize = 16 << 20 // a buffer at least so large has its own block

	usageTransfer = 0x1 | 0x2
	usageDevice   = usageTransfer | 0x20 /* storage */ | 0x20000 /* address */
)

// stagedOnly makes mapped memory be treated as if it were not, for tests of the staging path.
var stagedOnly = false

type pool struct {
	memoryType int   // -1: the device has none
	direct     bool  // blocks of one part are mapped, and writing through the map is right
	readable   bool  // reading through the map is, too: the memory is cached
	heap       int64 // bytes of the heap
	part       int64 // bytes of one VkDeviceMemory
	limit      int64 // bytes of one block; more than a part only where a buffer may have several
	used       int64 // bytes of all blocks
	blocks     []*block
}

type block struct {
	mem    C.sv_memory
	shared bool   // by small buffers
	size   int64  // bytes that may be given out
	skip   int64  // bytes before them, to align the address
	free   []span // sorted, never touching each other
}

type span struct{ off, size int64 }

// init chooses the memory.
func (p *pool) init(d *device) error {
	p.memoryType = -1
	if len(d.a.memory) == 0 {
		return nil
	}
	var types C.uint32_t
	if err := d.check(C.sv_memory_types(d.native, usageDevice, &types), "vkCreateBuffer"); err != nil {
		return err
	}
	const local, visible = vk.MemoryPropertyDeviceLocalBit,
		vk.MemoryPropertyHostVisibleBit | vk.MemoryPropertyHostCoherentBit
	const cached = vk.MemoryPropertyHostCachedBit
	// Where the host's memory is the device's, copies are needless.
	shared := (d.a.info.Kind == "integrated" || d.a.info.Kind == "cpu") && !stagedOnly
	wishes := []vk.MemoryPropertyFlagBits{local, 0}
	if shared {
		wishes = []vk.MemoryPropertyFlagBits{local | visible | cached, local | visible, local, 0}
	}
	p.memoryType = d.a.pickMemory(uint32(types), wishes...)
	if p.memoryType < 0 {
		return fmt.Errorf("vulkan: %s offers no memory for buffers: %w", d.a.info.Name, backend.ErrUnsupported)
	}
	flags := d.a.memory[p.memoryType].flags
	p.direct = shared && flags&visible == visible
	p.readable = p.direct && flags&cached != 0
	p.heap = d.a.memory[p.memoryType].size
	p.setLimits(d, d.props.maxAllocation)
	return nil
}

// setLimits derives the largest buffer from the largest allocation: sparse buffers may have several.
func (p *pool) setLimits(d *device, part int64) {
	p.part, p.limit = part, part
	if d.features.base.sparseBinding != 0 && d.queue.sparse {
		p.limit = max(part, d.a.limits.sparseSpace)
	}
	if d.props.maxBuffer > 0 {
		p.part, p.limit = min(p.part, d.props.maxBuffer), min(p.limit, d.props.maxBuffer)
	}
	d.caps.MaxBinding = 0
	if p.limit < p.heap {
		d.caps.MaxBinding = p.limit - alignment
	}
}

// pickMemory returns the first memory type among the allowed ones that has all wanted properties, by
// the first wish that can be met; -1 if none. Types with special properties (protected, …) are left.
func (a *adapter) pickMemory(allowed uint32, wishes ...vk.MemoryPropertyFlagBits) int {
	const ordinary = 0xf // local, visible, coherent, cached
	for _, want := range wishes {
		for set := allowed; set != 0; set &= set - 1 {
			i := bits.TrailingZeros32(set)
			if i < len(a.memory) && a.memory[i].flags&want == want && a.memory[i].flags&^ordinary == 0 {
				return i
			}
		}
	}
	return -1
}

// alloc cuts n bytes, a multiple of alignment, from a block.
func (p *pool) alloc(d *device, n int64) (*block, int64, error) {
	if n < ownBlockSize {
		for _, b := range p.blocks {
			if !b.shared {
				continue
			}
			if off, ok := b.cut(n); ok {
				return b, off, nil
			}
		}
	}
	b, err := p.grow(d, n)
	if err != nil {
		return nil, 0, err
	}
	off, _ := b.cut(n)
	return b, off, nil
}

// grow adds a block with room for n bytes.
func (p *pool) grow(d *device, n int64) (*block, error) {
	if p.memoryType < 0 {
		return nil, fmt.Errorf("vulkan: %s only compiles, it has no memory: %w", d.a.info.Name, backend.ErrUnsupported)
	}
	if n > p.heap-alignment || p.used > p.heap-alignment-n {
		return nil, fmt.Errorf("vulkan: %w: a buffer of %d bytes, with %d in use; the device has %d", backend.ErrOutOfMemory, n, p.used, p.heap)
	}
	if n > p.limit-alignment {
		return nil, fmt.Errorf("vulkan: a buffer of %d bytes is beyond the driver's limit for one buffer, %d bytes: %w", n, p.limit, backend.ErrUnsupported)
	}
	sizes, shared := []int64{n}, n < ownBlockSize
	if shared { // when memory is short, a block just large enough will do
		sizes = []int64{max(n, min(blockSize, p.heap/8, p.limit-alignment)), n}
	}
	var err error
	for _, size := range sizes {
		b := &block{shared: shared, size: size, free: []span{{0, size}}}
		if err = b.alloc(d); err == nil {
			p.used += size + alignment
			p.blocks = append(p.blocks, b)
			return b, nil
		}
	}
	return nil, err
}

// alloc gets the block's memory: its size, and room to align it.
func (b *block) alloc(d *device) error {
	p, total := &d.pool, C.uint64_t(b.size+alignment)
	var r C.int
	if int64(total) > p.part {
		if err := d.settle(context.Background()); err != nil { // binding uses the queue
			return err
		}
		r = C.sv_alloc_parts(d.native, total, C.uint64_t(p.part), C.uint32_t(p.memoryType), usageDevice, &b.mem)
	} else {
		var mapped C.int
		if p.direct {
			mapped = 1
		}
		r = C.sv_alloc(d.native, total, C.uint32_t(p.memoryType), usageDevice, mapped, &b.mem)
	}
	b.skip = int64(-uint64(b.mem.address) % alignment)
	return d.check(r, "vkAllocateMemory")
}

// release returns bytes to their block. An empty block is freed, but the last of the shared ones is
// kept: the next buffer will want it.
func (p *pool) release(d *device, b *block, off, n int64) {
	b.join(off, n)
	if b.free[0].size < b.size || b.shared && p.sharedBlocks() == 1 {
		return
	}
	p.blocks = slices.DeleteFunc(p.blocks, func(o *block) bool { return o == b })
	p.used -= b.size + alignment
	C.sv_free(d.native, &b.mem)
}

func (p *pool) sharedBlocks() (n int) {
	for _, b := range p.blocks {
		if b.shared {
			n++
		}
	}
	return n
}

func (p *pool) free(d *device) {
	for _, b := range p.blocks {
		C.sv_free(d.native, &b.mem)
	}
	p.blocks, p.used = nil, 0
}

// cut takes n bytes from the smallest free span that has them.
func (b *block) cut(n int64) (off int64, ok bool) {
	best := -1
	for i, s := range b.free {
		if s.size >= n && (best < 0 || s.size < b.free[best].size) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	s := &b.free[best]
	off = s.off
	s.off += n
	s.size -= n
	if s.size == 0 {
		b.free = slices.Delete(b.free, best, best+1)
	}
	return off, true
}

// join gives n bytes at off back and merges them with their free neighbours.
func (b *block) join(off, n int64) {
	i, _ := slices.BinarySearchFunc(b.free, off, func(s span, off int64) int {
		if s.off < off {
			return -1
		}
		return 1
	})
	b.free = slices.Insert(b.free, i, span{off, n})
	if i+1 < len(b.free) && off+n == b.free[i+1].off {
		b.free[i].size += b.free[i+1].size
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].off+b.free[i-1].size == off {
		b.free[i-1].size += b.free[i].size
		b.free = slices.Delete(b.free, i, i+1)
	}
}

// bytes is the host's view of n bytes at off of a mapped block.
func (b *block) bytes(off, n int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(b.mem.host, b.skip+off)), n)
}
