// Physical devices: what is there and what each can do.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// adapter is a physical device.
type adapter struct {
	in      *instance
	handle  vk.PhysicalDevice
	info    backend.Info
	api     uint32
	id      identity
	limits  limits
	memory  []memoryType
	extends map[string]bool
	wrong   string // what it says of itself that cannot be; "": nothing
}

// identity names a device and its driver, for the pipeline cache.
type identity struct {
	vendor, device, driver uint32
	uuid                   [16]byte
}

// limits are those of VkPhysicalDeviceLimits that matter here.
type limits struct {
	pushBytes    uint32
	shared       uint32
	invocations  uint32
	local        [3]uint32
	groups       [3]uint32
	nanosPerTick float64
	sparseSpace  int64 // bytes of all sparse buffers
}

// memoryType is a VkMemoryType with its heap's size.
type memoryType struct {
	flags vk.MemoryPropertyFlagBits
	heap  uint32
	size  int64
}

// adapters lists the devices: discrete before integrated before virtual before CPUs, else in the
// loader's order.
func adapters(in *instance) ([]*adapter, error) {
	const most = 256
	f := in.proc("vkEnumeratePhysicalDevices")
	handles, err := list(most, nil, func(n *uint32, first *unsafe.Pointer) vk.Result {
		return vk.Result(C.sv_call3(f, unsafe.Pointer(in.handle), unsafe.Pointer(n), unsafe.Pointer(first)))
	})
	if err != nil {
		return nil, unavailable("vkEnumeratePhysicalDevices: %v", err)
	}
	handles = slices.DeleteFunc(handles, func(h unsafe.Pointer) bool { return h == nil })
	if len(handles) == 0 {
		return nil, unavailable("the installed Vulkan drivers offer no device; install your GPU's driver, or a software one (Debian: mesa-vulkan-drivers)")
	}
	devices := make([]*adapter, len(handles))
	for i := range devices {
		devices[i] = newAdapter(in, vk.PhysicalDevice(handles[i]))
	}
	kinds := []string{"discrete", "integrated", "virtual", "cpu"}
	slices.SortStableFunc(devices, func(a, b *adapter) int {
		return slices.Index(kinds, a.info.Kind) - slices.Index(kinds, b.info.Kind)
	})
	for i := range devices {
		devices[i].info.Index = i
	}
	return devices, nil
}

func newAdapter(in *instance, handle vk.PhysicalDevice) *adapter {
	a := &adapter{in: in, handle: handle}
	var p vk.PhysicalDeviceProperties
	vk.GetPhysicalDeviceProperties(handle, &p)
	p.Deref()
	p.Limits.Deref()
	a.api = p.ApiVersion
	a.id = identity{p.VendorID, p.DeviceID, p.DriverVersion, p.PipelineCacheUUID}
	a.limits = limits{
		pushBytes: p.Limits.MaxPushConstantsSize, shared: p.Limits.MaxComputeSharedMemorySize,
		invocations: p.Limits.MaxComputeWorkGroupInvocations, local: p.Limits.MaxComputeWorkGroupSize,
		groups: p.Limits.MaxComputeWorkGroupCount, sparseSpace: clampSize(uint64(p.Limits.SparseAddressSpaceSize)),
		nanosPerTick: float64(p.Limits.TimestampPeriod),
	}
	a.info = backend.Info{
		Backend: "vulkan", Name: cmp.Or(printable(p.DeviceName[:]), "unnamed"), Vendor: backend.VendorName(p.VendorID),
		Kind:   kindName(p.DeviceType),
		Driver: "Vulkan " + versionString(p.ApiVersion),
	}
	if p.DeviceType < 0 || p.DeviceType > vk.PhysicalDeviceTypeCpu {
		a.doubt("is of type %d", p.DeviceType)
	}
	p.Free()
	a.readMemory()
	a.checkLimits()
	if a.api >= version12 {
		a.extends = a.extensions()
		a.info.Driver = a.driver()
	}
	return a
}

// readMemory lists the memory types; none on a device that only compiles.
func (a *adapter) readMemory() {
	var m vk.PhysicalDeviceMemoryProperties
	vk.GetPhysicalDeviceMemoryProperties(a.handle, &m)
	m.Deref()
	defer m.Free()
	if int(m.MemoryTypeCount) > len(m.MemoryTypes) || int(m.MemoryHeapCount) > len(m.MemoryHeaps) {
		a.doubt("has %d types of memory and %d heaps", m.MemoryTypeCount, m.MemoryHeapCount)
		return
	}
	for i := range m.MemoryTypeCount {
		t := m.MemoryTypes[i]
		t.Deref()
		if t.HeapIndex >= m.MemoryHeapCount {
			a.doubt("has memory of heap %d of %d", t.HeapIndex, m.MemoryHeapCount)
			return
		}
		h := m.MemoryHeaps[t.HeapIndex]
		h.Deref()
		if uint64(h.Size) > mostMemory {
			a.doubt("has a heap of %d bytes", uint64(h.Size))
			return
		}
		a.memory = append(a.memory, memoryType{vk.MemoryPropertyFlagBits(t.PropertyFlags), t.HeapIndex, int64(h.Size)})
		if t.PropertyFlags&vk.MemoryPropertyFlags(vk.MemoryPropertyDeviceLocalBit) != 0 {
			a.info.Memory = max(a.info.Memory, int64(h.Size))
		}
	}
}

func (a *adapter) extensions() map[string]bool {
	const most = 1 << 14
	f := a.in.proc("vkEnumerateDeviceExtensionProperties")
	names, err := list(most, nil, func(n *uint32, first *extensionProperties) vk.Result {
		return vk.Result(C.sv_call4(f, unsafe.Pointer(a.handle), nil, unsafe.Pointer(n), unsafe.Pointer(first)))
	})
	if err != nil {
		a.doubt("lists its extensions wrongly: %v", err)
	}
	set := map[string]bool{}
	for i := range names {
		set[cString(names[i].name[:])] = true
	}
	return set
}

// query lets vkGetPhysicalDevice{Features,Properties}2 fill a chain.
func (a *adapter) query(function string, c *chain) {
	C.sv_call3(a.in.proc(function), unsafe.Pointer(a.handle), c.head, nil)
}

func (a *adapter) driver() string {
	var c chain
	defer c.release()
	p2, d := &properties2{}, &driverProperties{}
	c.add(&p2.header, typeProperties2)
	c.add(&d.header, typeDriverProperties)
	a.query("vkGetPhysicalDeviceProperties2", &c)
	return fmt.Sprintf("%s %s, Vulkan %s", printable(d.driverName[:]), printable(d.driverInfo[:]), versionString(a.api))
}

// queue is a queue family.
type queue struct {
	family        uint32
	timestampBits uint32 // that count
	sparse        bool   // it binds sparse memory
}

// queue picks the queue family: the first that computes and draws, which is every driver's main one,
// else the first that computes.
func (a *adapter) queue() (q queue, ok bool) {
	const graphics, compute, sparse, most = 1, 2, 8, 256
	f := a.in.proc("vkGetPhysicalDeviceQueueFamilyProperties")
	families, err := list(most, nil, func(n *uint32, first *queueFamily) vk.Result {
		C.sv_call3(f, unsafe.Pointer(a.handle), unsafe.Pointer(n), unsafe.Pointer(first))
		return vk.Success
	})
	if err != nil {
		return q, false
	}
	for _, want := range []uint32{graphics | compute, compute} {
		for i, f := range families {
			if f.flags&want == want && f.count > 0 {
				return queue{uint32(i), f.timestampBits, f.flags&sparse != 0}, true
			}
		}
	}
	return q, false
}

// properties are those of a device that later versions and extensions report.
type properties struct {
	maxAllocation int64 // bytes of one VkDeviceMemory
	maxBuffer     int64 // bytes of one VkBuffer; 0: unknown
	subgroup      subgroupProperties
	size          subgroupSizeProperties
	dots          dotProductProperties
	coopStages    uint32
	units         int
}

func (a *adapter) properties() properties {
	var c chain
	defer c.release()
	p2, m3, m4 := &properties2{}, &maintenance3Properties{}, &maintenance4Properties{}
	sub, size, stages := &subgroupProperties{}, &subgroupSizeProperties{}, &coopMatrixStages{}
	dots := &dotProductProperties{}
	sm, core, core2 := &smBuiltinsProperties{}, &shaderCoreProperties{}, &shaderCore2Properties{}
	c.add(&p2.header, typeProperties2)
	c.add(&m3.header, typeMaintenance3Properties)
	c.add(&sub.header, typeSubgroupProperties)
	if a.has13("VK_KHR_maintenance4") {
		c.add(&m4.header, typeMaintenance4Properties)
	}
	if a.has13("VK_EXT_subgroup_size_control") {
		c.add(&size.header, typeSubgroupSizeProperties)
	}
	if a.has13("VK_KHR_shader_integer_dot_product") {
		c.add(&dots.header, typeDotProductProperties)
	}
	if a.extends["VK_KHR_cooperative_matrix"] {
		c.add(&stages.header, typeCoopMatrixStages)
	}
	if a.extends["VK_NV_shader_sm_builtins"] {
		c.add(&sm.header, typeSMBuiltinsProperties)
	}
	if a.extends["VK_AMD_shader_core_properties"] {
		c.add(&core.header, typeShaderCoreProperties)
	}
	if a.extends["VK_AMD_shader_core_properties2"] {
		c.add(&core2.header, typeShaderCore2Properties)
	}
	a.query("vkGetPhysicalDeviceProperties2", &c)

	p := properties{
		maxAllocation: clampSize(m3.maxMemoryAllocationSize), maxBuffer: clampSize(m4.maxBufferSize),
		subgroup: *sub, size: *size, dots: *dots, coopStages: stages.supportedStages,
	}
	units := uint64(0)
	switch {
	case sm.shaderSMCount > 0:
		units = uint64(sm.shaderSMCount)
	case core2.activeComputeUnitCount > 0:
		units = uint64(core2.activeComputeUnitCount)
	case core.shaderEngineCount > 0 && max(core.shaderEngineCount, core.shaderArraysPerEngineCount,
		core.computeUnitsPerShaderArray) < 1<<16:
		units = uint64(core.shaderEngineCount) * uint64(core.shaderArraysPerEngineCount) *
			uint64(core.computeUnitsPerShaderArray)
	case a.info.Kind == "cpu":
		units = uint64(runtime.NumCPU())
	}
	if units < 1<<16 { // else nobody knows
		p.units = int(units)
	}
	return p
}

// has13 reports whether the device has something of Vulkan 1.3, or the extension it comes from.
func (a *adapter) has13(extension string) bool { return a.api >= version13 || a.extends[extension] }

// matrixShapes lists the subgroup-scope operations whose types the project has names for.
func (a *adapter) matrixShapes(bf16 bool) []backend.MatrixShape {
	const most = 1 << 12
	const largest = 1 << 10 // rows or columns
	f := a.in.proc("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")
	if f == nil {
		return nil
	}
	listed, err := list(most, func(s *coopMatrixShape) { s.sType = typeCoopMatrixProperties },
		func(n *uint32, first *coopMatrixShape) vk.Result {
			return vk.Result(C.sv_call3(f, unsafe.Pointer(a.handle), unsafe.Pointer(n), unsafe.Pointer(first)))
		})
	if err != nil {
		return nil
	}
	const subgroupScope = 3
	var shapes []backend.MatrixShape
	for _, p := range listed {
		if min(p.m, p.n, p.k) == 0 || max(p.m, p.n, p.k) > largest {
			continue
		}
		s := backend.MatrixShape{
			M: p.m, N: p.n, K: p.k, Saturating: p.saturating != 0,
			A: componentType(p.a), B: componentType(p.b), C: componentType(p.c), D: componentType(p.d),
		}
		types := []dtype.Type{s.A, s.B, s.C, s.D}
		if p.scope == subgroupScope && !slices.Contains(types, dtype.Invalid) &&
			(bf16 || !slices.Contains(types, dtype.BF16)) && !slices.Contains(shapes, s) {
			shapes = append(shapes, s)
		}
	}
	return shapes
}

// componentType maps VkComponentTypeKHR; Invalid for types the project has no name for.
func componentType(c uint32) dtype.Type {
	switch c {
	case 0:
		return dtype.F16
	case 1:
		return dtype.F32
	case 2:
		return dtype.F64
	case 3:
		return dtype.S8
	case 5:
		return dtype.S32
	case 7:
		return dtype.U8
	case 9:
		return dtype.U32
	case 1000141000:
		return dtype.BF16
	}
	return dtype.Invalid
}

// clampSize makes a size of the API, which may be any 64-bit number, an int64.
func clampSize(n uint64) int64 { return int64(min(n, 1<<62)) }

func kindName(t vk.PhysicalDeviceType) string {
	switch t {
	case vk.PhysicalDeviceTypeDiscreteGpu:
		return "discrete"
	case vk.PhysicalDeviceTypeIntegratedGpu:
		return "integrated"
	case vk.PhysicalDeviceTypeCpu:
		return "cpu"
	}
	return "virtual"
}
