// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package panel

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coops are the variants on cooperative matrices.
var coops = []coop{
	// NVIDIA: the panel on the instruction's n = 8.
	{v: 8, m: 16, n: 8, k: 16, swap: true, sub: 32, subs: 1, cols: 64, stage: 16}, // see docs/history/2026-11.md
	{v: 16, m: 16, n: 8, k: 16, swap: true, sub: 32, subs: 4, cols: 256, stage: 16},
	{v: 8, m: 16, n: 8, k: 8, swap: true, sub: 32, subs: 4, cols: 256, stage: 16},
	{v: 16, m: 16, n: 8, k: 8, swap: true, sub: 32, subs: 4, cols: 256, stage: 16},
	// AMD, in waves of 32 and of 64.
	{v: 16, m: 16, n: 16, k: 16, sub: 32, subs: 4, cols: 256, stage: 16},
	{v: 16, m: 16, n: 16, k: 16, sub: 64, subs: 4, cols: 256, stage: 16},
	// Intel.
	{v: 8, m: 8, n: 16, k: 16, sub: 16, subs: 8, cols: 256, stage: 16},
	{v: 16, m: 8, n: 16, k: 16, sub: 16, subs: 8, cols: 256, stage: 16},
	{v: 8, m: 8, n: 8, k: 16, swap: true, sub: 8, subs: 8, cols: 128, stage: 16},
	// Mesa's driver for CPUs.
	{v: 8, m: 8, n: 8, k: 8, swap: true, sub: 8, subs: 4, cols: 128, stage: 16},
	{v: 16, m: 8, n: 8, k: 8, swap: true, sub: 8, subs: 4, cols: 128, stage: 16},
}

// Vulkan returns the variants for Vulkan, with constants of the kernel's own. Its sources are
// kernel_coop.comp and kernel.comp.
func Vulkan(own ...spec.Const) []*spec.Variant {
	vs := []*spec.Variant{lanes(8, 1), windowLanes(256, 16), lanes(16, 1)}
	for _, c := range coops {
		vs = append(vs, c.variant(own))
	}
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, scalarVulkan(v, t, own))
		}
	}
	return vs
}

// Coops returns the cooperative-matrix variants made over for a subgroup size, so that a driver that
// computes any tile can run those of all vendors.
func Coops(sub uint32, own ...spec.Const) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.sub = sub
		vs = append(vs, c.variant(own))
	}
	return vs
}

// coop is a variant of kernel_coop.comp.
type coop struct {
	v       uint32 // rows of a panel
	m, n, k uint32 // the matrix operation
	swap    bool   // Cᵀ = Bᵀ·Aᵀ
	sub     uint32 // subgroup size
	subs    uint32 // subgroups of a workgroup
	cols    uint32 // columns of a workgroup
	stage   uint32 // vectors staged at a time
}

// sharedWords is the uvec4 of shared memory: two stages, or the block of C, the rows of each a uvec4
// longer than they are wide. Both are largest with as many slices as there are subgroups.
func (c coop) sharedWords() uint32 {
	stage := c.stage * c.subs * (c.cols/c.subs/8 + 1 + c.v/8)
	return max(2*stage, c.v*c.subs*(c.cols/c.subs/4+1))
}

func (c coop) variant(own []spec.Const) *spec.Variant {
	swap := uint32(0)
	if c.swap {
		swap = 1
	}
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_v%d_%dx%dx%d_sub%d", c.v, c.m, c.n, c.k, c.sub), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{
			F16:    true,
			Shared: 16 * c.sharedWords(),
			Shapes: []backend.MatrixShape{{M: c.m, N: c.n, K: c.k, A: dtype.F16, B: dtype.F16, C: dtype.F32, D: dtype.F32}},
		},
		Local: [3]uint32{c.sub * c.subs, 1, 1}, Sub: c.sub, Matrix: true,
		Consts: append([]spec.Const{
			{Name: "LOCAL", ID: 0, Value: c.sub * c.subs}, {Name: "V", ID: 1, Value: c.v},
			{Name: "TM", ID: 2, Value: c.m}, {Name: "TN", ID: 3, Value: c.n}, {Name: "TK", ID: 4, Value: c.k},
			{Name: "SWAP", ID: 5, Value: swap}, {Name: "COLS", ID: 6, Value: c.cols}, {Name: "SUBS", ID: 7, Value: c.subs},
			{Name: "STAGE", ID: 8, Value: c.stage}, {Name: "SHARED", ID: 9, Value: c.sharedWords()},
		}, own...),
		Unit: spec.Unit{Source: "kernel_coop.comp", Blob: "coop.spv"},
		Out:  []dtype.Type{dtype.F16},
	}
}

// lanes is kernel_lanes.comp: panels of v rows by 64·chunks columns.
func lanes(v, chunks uint32) *spec.Variant {
	shared := v * (16*chunks + 1)
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_v%d_lanes%d", v, 64*chunks), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{
			F16: true, Lanes: true,
			Shared: 16 * shared,
			Shapes: []backend.MatrixShape{{M: 16, N: 8, K: 16, A: dtype.F16, B: dtype.F16, C: dtype.F32, D: dtype.F32}},
		},
		Local: [3]uint32{32, 1, 1}, Sub: 32, Matrix: true,
		Consts: []spec.Const{
			{Name: "LOCAL", ID: 0, Value: 32}, {Name: "V", ID: 1, Value: v}, {Name: "CHUNKS", ID: 2, Value: chunks},
			{Name: "SHARED", ID: 3, Value: shared}, Define("COLS", 64*chunks), Define("ALIGN", dealStep), Define("LANES", 1),
		},
		Unit: spec.Unit{Source: "kernel_lanes.comp", Blob: "lanes.spv"},
		Out:  []dtype.Type{dtype.F16},
	}
}

// windowLanes is kernel_window.comp: windows of so many rows of B, subgroups of two panels, of 8 rows.
func windowLanes(window, warps uint32) *spec.Variant {
	const v, pitch, panels = 8, 10, 2
	shared := max(window*pitch, warps*v*(16+1))
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_v%d_window%d", v, window), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{
			F16: true, Lanes: true,
			Shared: 16 * shared,
			Shapes: []backend.MatrixShape{{M: 16, N: 8, K: 16, A: dtype.F16, B: dtype.F16, C: dtype.F32, D: dtype.F32}},
		},
		Local: [3]uint32{32 * warps, 1, 1}, Sub: 32, Matrix: true,
		Consts: []spec.Const{
			{Name: "LOCAL", ID: 0, Value: 32 * warps}, {Name: "V", ID: 1, Value: v}, {Name: "WARPS", ID: 2, Value: warps},
			Define("PANELS", panels), {Name: "SHARED", ID: 4, Value: shared}, {Name: "WINDOW", ID: 5, Value: window},
			Define("COLS", 64), Define("ALIGN", dealStep), Define("LANES", 1),
		},
		Unit: spec.Unit{Source: "kernel_window.comp", Blob: "window.spv"},
		Out:  []dtype.Type{dtype.F16},
	}
}

// The scalar kernels' workgroup: enough for 256 columns.
const (
	scalarLocal = 64
	scalarStage = 64 // vectors
)

// scalarShared is the shared memory of a scalar kernel: a stage's values and columns, and sums.
func scalarShared(v uint32) uint32 { return 4*scalarStage*(v+1) + 16*scalarLocal }

func scalarVulkan(v uint32, t dtype.Type, own []spec.Const) *spec.Variant {
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_v%d_%v", v, t), In: t, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{Shared: scalarShared(v)}, Local: [3]uint32{scalarLocal, 1, 1},
		Consts: append([]spec.Const{
			{Name: "LOCAL", ID: 0, Value: scalarLocal}, {Name: "V", ID: 1, Value: v}, {Name: "STAGE", ID: 2, Value: scalarStage},
			Define("COLS", 4*scalarLocal),
		}, own...),
		Unit: spec.Unit{Source: "kernel.comp", Defines: map[string]string{"ELEM": include.Define(t)}, Blob: "scalar_" + t.String() + ".spv"},
	}
}
