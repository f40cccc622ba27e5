// The variants for GPUs.

package hrpb

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// gpuWorkers is the number of parts that a large GPU works on at a time.
const gpuWorkers = 1024

func variants() []*spec.Variant {
	return slices.Concat(cudaVariants(), vulkanVariants(), webgpuVariants(), cpuVariants())
}

// coops are the matrix operations that kernel_coop.comp uses, each in f16.
var coops = []coop{
	{MatrixUnit: spec.NVIDIA, subs: 1, cols: 64},
	{MatrixUnit: spec.Turing, subs: 1, cols: 64},
	{MatrixUnit: spec.AMD32, subs: 1, cols: 64},
	{MatrixUnit: spec.AMD64, subs: 1, cols: 64},
	{MatrixUnit: spec.Intel16, subs: 2, cols: 64},
	{MatrixUnit: spec.Intel8, subs: 4, cols: 64},
	{MatrixUnit: spec.MesaCPU, subs: 4, cols: 64},
}

// coop is a variant of kernel_coop.comp.
type coop struct {
	spec.MatrixUnit
	subs uint32 // subgroups of a workgroup
	cols uint32 // columns of a workgroup
}

// coopBlock is the active columns of a block.
const coopBlock = 16

// gpuSizes are those of the kernels for bricks on Vulkan and WebGPU.
var gpuSizes = sizes{block: coopBlock, workers: gpuWorkers, ordered: true}

// shared is the uvec4 of shared memory: two stages, or the tile of C.
func (c coop) shared() uint32 { return max(2*coopBlock*(c.cols/8+1+2), 16*(c.cols/4+1)) }

func (c coop) variant(t dtype.Type) *spec.Variant {
	shared := 16*c.shared() + 4*(16+c.cols) // and the scales
	return gpuSizes.sized(c.Variant(fmt.Sprintf("vulkan_%v_%v", c.MatrixUnit, t), c.subs, shared, spec.Variant{
		In: t,
		Consts: []spec.Const{
			{Name: "BLOCK", ID: 1, Value: coopBlock}, {Name: "TM", ID: 2, Value: c.M},
			{Name: "TN", ID: 3, Value: c.N}, {Name: "TK", ID: 4, Value: c.K},
			{Name: "COLS", ID: 5, Value: c.cols}, {Name: "SUBS", ID: 6, Value: c.subs},
			{Name: "SHARED", ID: 7, Value: c.shared()},
			spec.Define("WORKERS", gpuWorkers), spec.Define("ORDER", 1),
		},
		Unit: spec.GLSL("kernel_coop.comp", "coop", t),
	}), coopKind, hrpb.PanelRows, c.cols)
}

// lanes is lanes.comp: workgroups of a number of subgroups, with 64 columns each. Those of one type differ in nothing
// else.
func lanes(name string, t dtype.Type, subs uint32) *spec.Variant {
	shared := subs * max(2*32, 4*17) // uvec4: two rounds, or four rows of C
	scales := 16 + 64*subs + 1
	return gpuSizes.sized(spec.LanesVariant(fmt.Sprintf("vulkan_%s_%v", name, t), subs, 16*shared+4*scales, spec.Variant{
		In: t,
		Consts: []spec.Const{
			{Name: "SUBS", ID: 1, Value: subs}, {Name: "SHARED", ID: 2, Value: shared},
			spec.Define("BLOCK", coopBlock), spec.Define("COLS", 64*subs), spec.Define("WORKERS", gpuWorkers),
			spec.Define("ORDER", 1),
		},
		Unit: spec.GLSL("lanes.comp", "lanes", t),
	}), lanesKind, hrpb.PanelRows, 64*subs)
}

// lanesVariants is the variants of lanes.comp, those of a type from the widest on.
var lanesVariants = []*spec.Variant{
	lanes("lanes", dtype.TF32, 2), lanes("lanes_n64", dtype.TF32, 1),
	lanes("lanes", dtype.F16, 8), lanes("lanes_n256", dtype.F16, 4), lanes("lanes_n128", dtype.F16, 2),
	lanes("lanes_n64", dtype.F16, 1),
}

// lanesFor returns the narrowest variant of v's type that has all columns, or the widest.
func lanesFor(v *spec.Variant, n int) *spec.Variant {
	best := v
	for _, x := range lanesVariants {
		if x.In == v.In && x.Tile.Cols >= n {
			best = x
		}
	}
	return best
}

// The scalar kernels' workgroup: enough for 256 columns.
const (
	scalarLocal = 64
	scalarBlock = 16
)

// scalarShared is the shared memory of a scalar kernel: a block's values and columns, and sums.
const scalarShared = 4*scalarBlock*(16+1) + 16*scalarLocal

func vulkanVariants() []*spec.Variant {
	vs := slices.Concat(lanesVariants, vulkanStrips)
	for _, c := range coops {
		vs = append(vs, c.variant(dtype.TF32), c.variant(dtype.F16))
	}
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, gpuSizes.sized(spec.SPIRV("vulkan_"+t.String(), spec.Variant{
			In: t, Need: spec.Need{Shared: scalarShared}, Local: spec.Line(scalarLocal),
			Consts: []spec.Const{
				{Name: "LOCAL", ID: 0, Value: scalarLocal}, {Name: "BLOCK", ID: 1, Value: scalarBlock},
				spec.Define("WORKERS", gpuWorkers), spec.Define("ORDER", 1), spec.Define("COLS", 4*scalarLocal),
			},
			Unit: spec.GLSL("kernel.comp", "scalar", t),
		}), scalarKind, hrpb.PanelRows, 4*scalarLocal))
	}
	return vs
}

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, gpuSizes.sized(spec.WGSL("webgpu_"+t.String(), spec.Variant{
			In: t, Need: spec.Need{Shared: scalarShared}, Local: spec.Line(scalarLocal),
			Consts: []spec.Const{
				spec.Define("BLOCK", scalarBlock), spec.Define("SLOTS", 16*scalarBlock), spec.Define("ROWS", 16),
				spec.Define("PATTERNS", scalarBlock/2),
				spec.Define("WORKERS", gpuWorkers), spec.Define("ORDER", 1), spec.Define("COLS", 4*scalarLocal),
			},
			Unit: spec.Unit{Defines: include.WGSL(t)},
		}), scalarKind, hrpb.PanelRows, 4*scalarLocal))
	}
	return vs
}
