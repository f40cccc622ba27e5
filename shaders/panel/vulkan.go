// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package panel

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coops are the variants on cooperative matrices.
var coops = []coop{
	// NVIDIA: the panel on the instruction's n = 8.
	{v: 8, MatrixUnit: spec.NVIDIA, swap: true, subs: 1, cols: 64, stage: 16}, // see docs/history/vulkan.md
	{v: 16, MatrixUnit: spec.NVIDIA, swap: true, subs: 4, cols: 256, stage: 16},
	{v: 8, MatrixUnit: spec.Turing, swap: true, subs: 4, cols: 256, stage: 16},
	{v: 16, MatrixUnit: spec.Turing, swap: true, subs: 4, cols: 256, stage: 16},
	// AMD, in waves of 32 and of 64.
	{v: 16, MatrixUnit: spec.AMD32, subs: 4, cols: 256, stage: 16},
	{v: 16, MatrixUnit: spec.AMD64, subs: 4, cols: 256, stage: 16},
	// Intel.
	{v: 8, MatrixUnit: spec.Intel16, subs: 8, cols: 256, stage: 16},
	{v: 16, MatrixUnit: spec.Intel16, subs: 8, cols: 256, stage: 16},
	{v: 8, MatrixUnit: spec.Intel8, swap: true, subs: 8, cols: 128, stage: 16},
	// Mesa's driver for CPUs.
	{v: 8, MatrixUnit: spec.MesaCPU, swap: true, subs: 4, cols: 64, stage: 16},
	{v: 16, MatrixUnit: spec.MesaCPU, swap: true, subs: 4, cols: 64, stage: 16},
}

// Vulkan returns the variants for Vulkan, with vectors padded to a multiple, where the format does not say it. Its
// sources are kernel_coop.comp and kernel.comp.
func Vulkan(align uint32) []*spec.Variant {
	vs := []*spec.Variant{lanes(8, 1), windowLanes(256, 16), gathered(spec.AMD32, 128), gathered(spec.MesaCPU, 64)}
	for _, c := range coops {
		vs = append(vs, c.variant(align))
	}
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, scalarVulkan(v, t, align))
		}
	}
	return vs
}

// Coops returns the cooperative-matrix variants made over for a subgroup size, so that a driver that
// computes any tile can run those of all vendors.
func Coops(sub, align uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.Sub = sub
		vs = append(vs, c.variant(align))
	}
	return vs
}

// coop is a variant of kernel_coop.comp.
type coop struct {
	v uint32 // rows of a panel
	spec.MatrixUnit
	swap  bool   // Cᵀ = Bᵀ·Aᵀ
	subs  uint32 // subgroups of a workgroup
	cols  uint32 // columns of a workgroup
	stage uint32 // vectors staged at a time
}

// sharedWords is the uvec4 of shared memory: two stages, or the block of C, the rows of each a uvec4
// longer than they are wide. Both are largest with as many slices as there are subgroups.
func (c coop) sharedWords() uint32 {
	stage := c.stage * c.subs * (c.cols/c.subs/8 + 1 + c.v/8)
	return max(2*stage, c.v*c.subs*(c.cols/c.subs/4+1))
}

func (c coop) variant(align uint32) *spec.Variant {
	return Shape{Packing: Packing{V: int(c.v), Align: int(align)}}.sized(c.Variant(fmt.Sprintf("vulkan_v%d_%v", c.v,
		c.MatrixUnit), c.subs, 16*c.sharedWords(), spec.Variant{
		Consts: append([]spec.Const{
			{Name: "V", ID: 1, Value: c.v}, {Name: "TM", ID: 2, Value: c.M}, {Name: "TN", ID: 3, Value: c.N},
			{Name: "TK", ID: 4, Value: c.K},
			{Name: "SWAP", ID: 5, Value: spec.Flag(c.swap)}, {Name: "COLS", ID: 6, Value: c.cols},
			{Name: "SUBS", ID: 7, Value: c.subs},
			{Name: "STAGE", ID: 8, Value: c.stage}, {Name: "SHARED", ID: 9, Value: c.sharedWords()},
		}, aligned(align)...),
		Unit: spec.Unit{Source: "kernel_coop.comp", Blob: "coop.spv"},
	}), coopKind, c.cols)
}

// lanes is kernel_lanes.comp: panels of v rows by 64·chunks columns.
func lanes(v, chunks uint32) *spec.Variant {
	shared := v * (16*chunks + 1)
	of := Packing{V: int(v), Align: stepVectors, Lanes: true}
	return Shape{Packing: of}.sized(spec.LanesVariant(fmt.Sprintf("vulkan_v%d_lanes%d", v, 64*chunks), 1, 16*shared, spec.Variant{
		Consts: []spec.Const{
			{Name: "V", ID: 1, Value: v}, {Name: "CHUNKS", ID: 2, Value: chunks},
			{Name: "SHARED", ID: 3, Value: shared},
			spec.Define("COLS", 64*chunks), spec.Define("ALIGN", stepVectors), spec.Define("LANES", 1),
		},
		Unit: spec.Unit{Source: "kernel_lanes.comp", Blob: "lanes.spv"},
	}), lanesKind, 64*chunks)
}

// gathered is kernel_gather.comp: panels of 16 rows by cols columns.
func gathered(u spec.MatrixUnit, cols uint32) *spec.Variant {
	const v = 16
	shared := max(stepVectors*(v/8+1+cols/8+1), v*(cols/8+1)) // see panel_gather.glsl
	of := Packing{V: v, Align: stepVectors}
	return Shape{Packing: of}.sized(u.Variant(fmt.Sprintf("vulkan_v%d_gather_%v", v, u), 1, 16*shared, spec.Variant{
		Need: spec.Need{Lanes: u != spec.MesaCPU}, // measured on such devices alone
		Consts: []spec.Const{
			{Name: "V", ID: 1, Value: v}, {Name: "TM", ID: 2, Value: u.M}, {Name: "TN", ID: 3, Value: u.N},
			{Name: "TK", ID: 4, Value: u.K}, {Name: "COLS", ID: 5, Value: cols}, {Name: "SHARED", ID: 6, Value: shared},
			spec.Define("SUBS", 1), spec.Define("STAGE", stepVectors), spec.Define("ALIGN", stepVectors),
		},
		Unit: spec.Unit{Source: "kernel_gather.comp", Blob: "gather.spv"},
	}), gatheredKind, cols)
}

// windowLanes is kernel_window.comp: windows of `window` rows of B, subgroups of two panels, of 8 rows.
func windowLanes(window, warps uint32) *spec.Variant {
	const v, pitch, panels = 8, 10, 2
	shared := max(window*pitch, warps*v*(16+1))
	of := Packing{V: v, Align: stepVectors, Window: int(window), Lanes: true}
	return Shape{Packing: of, Warps: int(warps), Panels: panels}.sized(spec.LanesVariant(fmt.Sprintf("vulkan_v%d_window%d", v, window), warps, 16*shared, spec.Variant{
		Consts: []spec.Const{
			{Name: "V", ID: 1, Value: v}, {Name: "WARPS", ID: 2, Value: warps}, spec.Define("PANELS", panels),
			{Name: "SHARED", ID: 4, Value: shared}, {Name: "WINDOW", ID: 5, Value: window},
			spec.Define("COLS", 64), spec.Define("ALIGN", stepVectors), spec.Define("LANES", 1),
		},
		Unit: spec.Unit{Source: "kernel_window.comp", Blob: "window.spv"},
	}), windowKind, 64)
}

// The scalar kernels' workgroup: enough for 256 columns.
const (
	scalarLocal = 64
	scalarStage = 64 // vectors
)

// scalarShared is the shared memory of a scalar kernel: a stage's values and columns, and sums.
func scalarShared(v uint32) uint32 { return 4*scalarStage*(v+1) + 16*scalarLocal }

func scalarVulkan(v uint32, t dtype.Type, align uint32) *spec.Variant {
	return Shape{Packing: Packing{V: int(v), Align: int(align)}}.sized(spec.SPIRV(fmt.Sprintf("vulkan_v%d_%v", v, t),
		spec.Variant{
			In: t, Need: spec.Need{Shared: scalarShared(v)}, Local: spec.Line(scalarLocal),
			Consts: append([]spec.Const{
				{Name: "LOCAL", ID: 0, Value: scalarLocal}, {Name: "V", ID: 1, Value: v},
				{Name: "STAGE", ID: 2, Value: scalarStage},
				spec.Define("COLS", 4*scalarLocal),
			}, aligned(align)...),
			Unit: spec.GLSL("kernel.comp", "scalar", t),
		}), scalarKind, 4*scalarLocal)
}
