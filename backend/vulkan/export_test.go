// What the tests reach into.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"testing"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
)

// UseLoader makes the driver use another Vulkan loader until the test ends.
func UseLoader(t testing.TB, name string) {
	swap := func(name string, in *instance) (string, *instance) {
		shared.Lock()
		defer shared.Unlock()
		name, loaderName = loaderName, name
		in, shared.instance = shared.instance, in
		if shared.instance != nil { // the binding has one set of functions for the process
			if err := shared.instance.bind(); err != nil {
				t.Error(err)
			}
		}
		return name, in
	}
	old, in := swap(name, nil)
	t.Cleanup(func() { swap(old, in) })
}

// StagedOnly makes devices opened from now on copy through staging, until the test ends.
func StagedOnly(t testing.TB) {
	stagedOnly = true
	t.Cleanup(func() { stagedOnly = false })
}

// LimitAllocations makes the device believe that one allocation has at most n bytes.
func LimitAllocations(d backend.Device, bytes int64) { d.(*device).pool.setLimits(d.(*device), bytes) }

// HasSparse reports whether a buffer may have several allocations.
func HasSparse(d backend.Device) bool {
	return d.(*device).features.base.sparseBinding != 0 && d.(*device).queue.sparse
}

// PoolBytes is the size of the device's blocks.
func PoolBytes(d backend.Device) int64 { return d.(*device).pool.used }

// CacheFile is where the device's pipeline cache is kept.
func CacheFile(d backend.Device) string { return cache.Path(d.(*device).cache.file) }

// CacheLoaded is how many bytes of pipeline cache were loaded.
func CacheLoaded(d backend.Device) int { return d.(*device).cache.loaded }

var (
	ValidationMessages      = validationMessages
	ResetValidationMessages = resetValidationMessages
)

// Misuse makes a call that the specification forbids: a buffer without a use.
func Misuse(d backend.Device) {
	var b vk.Buffer
	info := vk.BufferCreateInfo{SType: vk.StructureTypeBufferCreateInfo, Size: 64}
	defer info.Free()
	if handle := d.(*device).handle; vk.CreateBuffer(handle, &info, nil, &b) == vk.Success {
		vk.DestroyBuffer(handle, b, nil)
	}
}

// LanesSource is the hash of the source of the code that looks at lanes.
const LanesSource = lanesSource

// Use says how a launch uses some bytes of the device's memory. ReadOnly: its kernel never writes them.
type Use struct {
	From                        uint64
	Bytes                       int64
	Unread, Unwritten, ReadOnly bool
}

// Waits tells what comes before each of launches that do this: 0 nothing, 1 those before are done, 2 and it sees what
// they wrote.
func Waits(launches [][]Use) (waits []int) {
	var h hazards
	bit := func(on bool, i int) uint32 {
		if on {
			return 1 << i
		}
		return 0
	}
	for _, uses := range launches {
		k := &kernel{}
		l := backend.Launch{Kernel: k}
		for i, u := range uses {
			k.bin.ReadOnly |= bit(u.ReadOnly, i)
			l.Unread |= bit(u.Unread, i)
			l.Unwritten |= bit(u.Unwritten, i)
			l.Args = append(l.Args, &buffer{size: u.Bytes, block: &block{}, off: int64(u.From)})
		}
		waits = append(waits, int(h.add(&l)))
	}
	return waits
}
