// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package jigsaw

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coops are the variants on cooperative matrices.
var coops = []coop{
	// NVIDIA.
	{MatrixUnit: spec.NVIDIA, swap: true, subs: 4, cols: 256},
	{MatrixUnit: spec.Turing, swap: true, subs: 4, cols: 256},
	// AMD, in waves of 32 and of 64.
	{MatrixUnit: spec.AMD32, subs: 4, cols: 256},
	{MatrixUnit: spec.AMD64, subs: 4, cols: 256},
	// Intel.
	{MatrixUnit: spec.Intel16, subs: 8, cols: 256},
	{MatrixUnit: spec.Intel8, swap: true, subs: 8, cols: 128},
	// Mesa's driver for CPUs.
	{MatrixUnit: spec.MesaCPU, swap: true, subs: 4, cols: 64},
}

func vulkanVariants() []*spec.Variant {
	vs := []*spec.Variant{lanes()}
	for _, c := range coops {
		vs = append(vs, c.variant())
	}
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, scalarVulkan(t))
	}
	return vs
}

// coop is a variant of kernel_coop.comp.
type coop struct {
	spec.MatrixUnit
	swap bool   // Cᵀ = Bᵀ·Aᵀ
	subs uint32 // subgroups of a workgroup
	cols uint32 // columns of a workgroup
}

// sharedWords is the uvec4 of shared memory: two stages, or the block of C, the rows of each a uvec4
// longer than they are wide. Both are largest with as many slices as there are subgroups.
func (c coop) sharedWords() uint32 {
	const rows, cols, pitch = jigsaw.StripRows, jigsaw.TileCols, 3 // of a tile
	stage := c.subs * (cols*(c.cols/c.subs/8+1) + rows*pitch)
	return max(2*stage, rows*c.subs*(c.cols/c.subs/4+1))
}

func (c coop) variant() *spec.Variant {
	return packing{block: jigsaw.StripRows}.sized(c.Variant(fmt.Sprintf("vulkan_%v", c.MatrixUnit), c.subs,
		16*c.sharedWords(), spec.Variant{
			Consts: []spec.Const{
				{Name: "TM", ID: 1, Value: c.M}, {Name: "TN", ID: 2, Value: c.N}, {Name: "TK", ID: 3, Value: c.K},
				{Name: "SWAP", ID: 4, Value: spec.Flag(c.swap)}, {Name: "COLS", ID: 5, Value: c.cols},
				{Name: "SUBS", ID: 6, Value: c.subs},
				{Name: "SHARED", ID: 7, Value: c.sharedWords()}, spec.Define("BLOCK", jigsaw.StripRows),
			},
			Unit: spec.Unit{Source: "kernel_coop.comp", Blob: "coop.spv"},
		}), coopKind, c.cols)
}

// lanes is lanes.comp.
func lanes() *spec.Variant {
	return packing{block: jigsaw.StripRows}.sized(spec.LanesVariant("vulkan_lanes", 1, 16*jigsaw.StripRows*17,
		spec.Variant{
			Consts: []spec.Const{spec.Define("BLOCK", jigsaw.StripRows), spec.Define("COLS", 64)},
			Unit:   spec.Unit{Source: "lanes.comp", Blob: "lanes.spv"},
		}), lanesKind, 64)
}

// The scalar kernels' workgroup: enough for 256 columns.
const (
	scalarLocal = 64
	scalarStage = 2 // steps
)

// scalarShared is the shared memory of a scalar kernel: a stage's values and columns, and sums.
const scalarShared = 4*scalarStage*jigsaw.StepCols*(jigsaw.StripRows+1) + 16*scalarLocal

func scalarVulkan(t dtype.Type) *spec.Variant {
	return packing{block: jigsaw.StripRows}.sized(spec.SPIRV("vulkan_"+t.String(), spec.Variant{
		In: t, Need: spec.Need{Shared: scalarShared}, Local: spec.Line(scalarLocal),
		Consts: []spec.Const{
			{Name: "LOCAL", ID: 0, Value: scalarLocal}, {Name: "STAGE", ID: 1, Value: scalarStage},
			spec.Define("BLOCK", jigsaw.StripRows), spec.Define("COLS", 4*scalarLocal),
		},
		Unit: spec.GLSL("kernel.comp", "scalar", t),
	}), scalarKind, 4*scalarLocal)
}
