// Features: what a device offers of what kernels may use, and the chain that enables exactly that.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

// features holds the device's answers, and then only what is to be enabled. It is pinned in whole when
// a part is chained, so it holds no other pointers.
type features struct {
	base    features2
	v11     vulkan11Features
	v12     vulkan12Features
	v13     vulkan13Features     // Vulkan 1.3
	sizes   subgroupSizeFeatures // of 1.2 devices with VK_EXT_subgroup_size_control
	dots    dotProductFeatures   // of 1.2 devices with VK_KHR_shader_integer_dot_product
	matrix  coopMatrixFeatures
	bf16    bfloat16Features
	layouts workgroupLayoutFeatures
}

// features asks the device and drops all that kernels have no use for.
func (a *adapter) features() (*features, error) {
	if a.api < version12 {
		return nil, fmt.Errorf("vulkan: %s: Vulkan %s, 1.2 is needed: %w", a.info.Name, versionString(a.api),
			backend.ErrUnsupported)
	}
	f := &features{}
	var c chain
	defer c.release()
	f.link(&c, a)
	a.query("vkGetPhysicalDeviceFeatures2", &c)
	if f.v12.bufferDeviceAddress == 0 {
		return nil, fmt.Errorf("vulkan: %s: its driver (%s) lacks the feature bufferDeviceAddress: %w", a.info.Name, a.info.Driver, backend.ErrUnsupported)
	}
	return f.wanted(a), nil
}

// link chains the structures that the device knows and returns the extensions they belong to.
func (f *features) link(c *chain, a *adapter) (extensions []string) {
	c.add(&f.base.header, typeFeatures2)
	c.add(&f.v11.header, typeVulkan11Features)
	c.add(&f.v12.header, typeVulkan12Features)
	if a.api >= version13 {
		c.add(&f.v13.header, typeVulkan13Features)
	}
	extension := func(have bool, name string, h *header, sType uint32) {
		if have && a.extends[name] {
			c.add(h, sType)
			extensions = append(extensions, name)
		}
	}
	extension(a.api < version13, "VK_EXT_subgroup_size_control", &f.sizes.header, typeSubgroupSizeFeatures)
	extension(a.api < version13, "VK_KHR_shader_integer_dot_product", &f.dots.header, typeDotProductFeatures)
	extension(true, "VK_KHR_cooperative_matrix", &f.matrix.header, typeCoopMatrixFeatures)
	extension(true, "VK_KHR_shader_bfloat16", &f.bf16.header, typeBFloat16Features)
	extension(true, "VK_KHR_workgroup_memory_explicit_layout", &f.layouts.header, typeWorkgroupLayoutFeatures)
	return extensions
}

// wanted copies what kernels may use.
func (f *features) wanted(a *adapter) *features {
	w := &features{}
	w.base.shaderFloat64 = f.base.shaderFloat64
	w.base.shaderInt64 = f.base.shaderInt64
	w.base.shaderInt16 = f.base.shaderInt16
	w.base.sparseBinding = f.base.sparseBinding
	w.v11.storageBuffer16BitAccess = f.v11.storageBuffer16BitAccess
	w.v12.storageBuffer8BitAccess = f.v12.storageBuffer8BitAccess
	w.v12.shaderFloat16 = f.v12.shaderFloat16
	w.v12.shaderInt8 = f.v12.shaderInt8
	w.v12.scalarBlockLayout = f.v12.scalarBlockLayout
	w.v12.shaderSubgroupExtendedTypes = f.v12.shaderSubgroupExtendedTypes
	w.v12.bufferDeviceAddress = f.v12.bufferDeviceAddress
	w.v12.vulkanMemoryModel = f.v12.vulkanMemoryModel
	w.v12.vulkanMemoryModelDeviceScope = f.v12.vulkanMemoryModelDeviceScope
	w.v13.subgroupSizeControl = f.v13.subgroupSizeControl
	w.v13.computeFullSubgroups = f.v13.computeFullSubgroups
	w.v13.shaderIntegerDotProduct = f.v13.shaderIntegerDotProduct
	w.v13.maintenance4 = f.v13.maintenance4
	w.sizes.subgroupSizeControl = f.sizes.subgroupSizeControl
	w.sizes.computeFullSubgroups = f.sizes.computeFullSubgroups
	w.dots.shaderIntegerDotProduct = f.dots.shaderIntegerDotProduct
	if f.v12.vulkanMemoryModel != 0 { // cooperative matrices require it
		w.matrix.cooperativeMatrix = f.matrix.cooperativeMatrix
	}
	w.bf16.shaderBFloat16Type = f.bf16.shaderBFloat16Type
	if w.matrix.cooperativeMatrix != 0 {
		w.bf16.shaderBFloat16CooperativeMatrix = f.bf16.shaderBFloat16CooperativeMatrix
	}
	w.layouts.workgroupMemoryExplicitLayout = f.layouts.workgroupMemoryExplicitLayout
	w.layouts.workgroupMemoryExplicitLayout8BitAccess = f.layouts.workgroupMemoryExplicitLayout8BitAccess
	w.layouts.workgroupMemoryExplicitLayout16BitAccess = f.layouts.workgroupMemoryExplicitLayout16BitAccess
	return w
}

// pinsSubgroups reports whether a kernel may require a subgroup size and full subgroups.
func (f *features) pinsSubgroups() bool {
	return f.v13.subgroupSizeControl != 0 && f.v13.computeFullSubgroups != 0 ||
		f.sizes.subgroupSizeControl != 0 && f.sizes.computeFullSubgroups != 0
}

// dotProducts reports whether kernels may use dot products of integers.
func (f *features) dotProducts() bool {
	return f.v13.shaderIntegerDotProduct != 0 || f.dots.shaderIntegerDotProduct != 0
}

// caps are the capabilities by which kernels are chosen.
func (a *adapter) caps(f *features, p *properties) backend.Caps {
	const computeStage = 0x20
	c := backend.Caps{
		Code:        backend.CodeSPIRV,
		SubgroupMin: p.subgroup.subgroupSize, SubgroupMax: p.subgroup.subgroupSize,
		SharedBytes: a.limits.shared, MaxInvocations: a.limits.invocations,
		MaxLocal: a.limits.local, MaxGroups: a.limits.groups,
		F16:  f.v12.shaderFloat16 != 0 && f.v11.storageBuffer16BitAccess != 0,
		Int8: f.v12.shaderInt8 != 0 && f.v12.storageBuffer8BitAccess != 0,
		F64:  f.base.shaderFloat64 != 0 && a.limits.pushBytes >= 8*backend.MaxArgs+backend.MaxParams,
		Dot4: f.dotProducts(), Dot4Emulated: p.dots.packed4x8BitSignedAccelerated == 0,
		Units: p.units,
	}
	if p.size.minSubgroupSize > 0 {
		c.SubgroupMin, c.SubgroupMax = p.size.minSubgroupSize, p.size.maxSubgroupSize
	}
	c.SubgroupPinned = f.pinsSubgroups() && p.size.requiredSubgroupSizeStages&computeStage != 0
	if f.matrix.cooperativeMatrix != 0 && p.coopStages&computeStage != 0 {
		c.Matrix = a.matrixShapes(f.bf16.shaderBFloat16CooperativeMatrix != 0)
	}
	return c
}
