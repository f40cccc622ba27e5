// Plain Go images of the structures that the binding's headers do not know, for chains that the API
// fills or reads (pNext). Field names follow the specification.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

//lint:file-ignore U1000 fields that nobody reads keep the others in their places

package vulkan

import (
	"runtime"
	"unsafe"
)

// Structure types (VkStructureType).
const (
	typeVulkan11Features        = 49
	typeVulkan12Features        = 51
	typeVulkan13Features        = 53
	typeFeatures2               = 1000059000
	typeProperties2             = 1000059001
	typeSubgroupProperties      = 1000094000
	typeBFloat16Features        = 1000141000
	typeSMBuiltinsProperties    = 1000154001
	typeMaintenance3Properties  = 1000168000
	typeShaderCoreProperties    = 1000185000
	typeDriverProperties        = 1000196000
	typeSubgroupSizeProperties  = 1000225000
	typeSubgroupSizeFeatures    = 1000225002
	typeShaderCore2Properties   = 1000227000
	typeDotProductFeatures      = 1000280000
	typeDotProductProperties    = 1000280001
	typeWorkgroupLayoutFeatures = 1000336000
	typeMaintenance4Properties  = 1000413001
	typeCoopMatrixFeatures      = 1000506000
	typeCoopMatrixProperties    = 1000506001 // an entry of the list
	typeCoopMatrixStages        = 1000506002
)

// bool32 is VkBool32.
type bool32 uint32

// header begins every chained structure.
type header struct {
	sType uint32
	_     uint32
	next  unsafe.Pointer
}

// chain links structures for one call. They stay where they are until release.
type chain struct {
	pin  runtime.Pinner
	head unsafe.Pointer
	tail *header
}

// add appends a structure, given by its header, its first field.
func (c *chain) add(h *header, sType uint32) {
	h.sType, h.next = sType, nil
	c.pin.Pin(h)
	if c.tail == nil {
		c.head = unsafe.Pointer(h)
	} else {
		c.tail.next = unsafe.Pointer(h)
	}
	c.tail = h
}

func (c *chain) release() { c.pin.Unpin() }

type features2 struct {
	header
	_             [39]bool32
	shaderFloat64 bool32
	shaderInt64   bool32
	shaderInt16   bool32
	_             [2]bool32
	sparseBinding bool32
	_             [10]bool32
}

type vulkan11Features struct {
	header
	storageBuffer16BitAccess           bool32
	uniformAndStorageBuffer16BitAccess bool32
	_                                  [10]bool32
}

type vulkan12Features struct {
	header
	_                                 [2]bool32
	storageBuffer8BitAccess           bool32
	uniformAndStorageBuffer8BitAccess bool32
	_                                 [3]bool32
	shaderFloat16                     bool32
	shaderInt8                        bool32
	_                                 [22]bool32
	scalarBlockLayout                 bool32
	_                                 [2]bool32
	shaderSubgroupExtendedTypes       bool32
	_                                 [3]bool32
	bufferDeviceAddress               bool32
	_                                 [2]bool32
	vulkanMemoryModel                 bool32
	vulkanMemoryModelDeviceScope      bool32
	_                                 [4]bool32
}

type vulkan13Features struct {
	header
	_                       [7]bool32
	subgroupSizeControl     bool32
	computeFullSubgroups    bool32
	_                       [4]bool32
	shaderIntegerDotProduct bool32
	maintenance4            bool32
	_                       bool32
}

type subgroupSizeFeatures struct {
	header
	subgroupSizeControl  bool32
	computeFullSubgroups bool32
}

type dotProductFeatures struct {
	header
	shaderIntegerDotProduct bool32
}

type coopMatrixFeatures struct {
	header
	cooperativeMatrix                   bool32
	cooperativeMatrixRobustBufferAccess bool32
}

type bfloat16Features struct {
	header
	shaderBFloat16Type              bool32
	shaderBFloat16DotProduct        bool32
	shaderBFloat16CooperativeMatrix bool32
	_                               bool32
}

type workgroupLayoutFeatures struct {
	header
	workgroupMemoryExplicitLayout                  bool32
	workgroupMemoryExplicitLayoutScalarBlockLayout bool32
	workgroupMemoryExplicitLayout8BitAccess        bool32
	workgroupMemoryExplicitLayout16BitAccess       bool32
}

// properties2 leaves VkPhysicalDeviceProperties (824 bytes) to the binding.
type properties2 struct {
	header
	_ [824]byte
}

type driverProperties struct {
	header
	driverID    uint32
	driverName  [256]byte
	driverInfo  [256]byte
	conformance [4]uint8
}

type maintenance3Properties struct {
	header
	maxPerSetDescriptors    uint32
	_                       uint32
	maxMemoryAllocationSize uint64
}

type maintenance4Properties struct {
	header
	maxBufferSize uint64
}

type subgroupProperties struct {
	header
	subgroupSize              uint32
	supportedStages           uint32
	supportedOperations       uint32
	quadOperationsInAllStages bool32
}

type subgroupSizeProperties struct {
	header
	minSubgroupSize              uint32
	maxSubgroupSize              uint32
	maxComputeWorkgroupSubgroups uint32
	requiredSubgroupSizeStages   uint32
}

type dotProductProperties struct {
	header
	_                             [4]bool32
	packed4x8BitSignedAccelerated bool32
	_                             [25]bool32
}

type coopMatrixStages struct {
	header
	supportedStages uint32
	_               uint32
}

type smBuiltinsProperties struct {
	header
	shaderSMCount    uint32
	shaderWarpsPerSM uint32
}

type shaderCoreProperties struct {
	header
	shaderEngineCount          uint32
	shaderArraysPerEngineCount uint32
	computeUnitsPerShaderArray uint32
	_                          [11]uint32
}

type shaderCore2Properties struct {
	header
	shaderCoreFeatures     uint32
	activeComputeUnitCount uint32
}

// coopMatrixShape is VkCooperativeMatrixPropertiesKHR.
type coopMatrixShape struct {
	header
	m, n, k    uint32
	a, b, c, d uint32 // VkComponentTypeKHR
	saturating bool32
	scope      uint32
	_          uint32
}

// Not chained.

type extensionProperties struct {
	name        [256]byte
	specVersion uint32
}

type queueFamily struct {
	flags         uint32
	count         uint32
	timestampBits uint32
	_             [3]uint32
}
