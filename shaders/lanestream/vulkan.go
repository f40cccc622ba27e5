// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// gpuBlocks is the number of workgroups that a large GPU works on at a time.
const gpuBlocks = 528

// scalarTeams is the streams that a workgroup of the scalar kernels takes at a time, with 64 invocations each.
const scalarTeams = 4

// scalarShared is their shared memory: 16 columns of 64 rows in f32 for each.
const scalarShared = scalarTeams * 16 * lanestream.GroupRows * 4

// packing is the constants by which the portable variants have matrices packed: in as many streams a group as a large GPU
// has work for.
func packing() []spec.Const {
	return []spec.Const{spec.Define("WARPS", scalarTeams), spec.Define("CLUSTER", 1), spec.Define("BLOCKS", gpuBlocks)}
}

var types = []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}

// vulkan is the variants.
var vulkan = vulkanVariants()

func vulkanVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		vs = append(vs, c.variant(32), c.variant(128))
	}
	for _, t := range types {
		vs = append(vs, scalarVulkan(t))
	}
	return vs
}

// coop is a matrix unit of coop.comp.
type coop struct {
	spec.MatrixUnit
	subs uint32 // subgroups of a workgroup: a multiple of 4, of 64 invocations or more
}

// coops are those of NVIDIA, AMD in waves of 32 and of 64, Intel, and Mesa's driver for CPUs.
var coops = []coop{
	{spec.NVIDIA, 4}, {spec.Turing, 4}, {spec.AMD32, 4}, {spec.AMD64, 4}, {spec.Intel16, 8}, {spec.Intel8, 8}, {spec.MesaCPU, 8},
}

// variant is for few columns, of which every subgroup has all, or for many, of which it has some.
func (c coop) variant(cols uint32) *spec.Variant {
	const tile = 2 * lanestream.GroupRows * (lanestream.StepCols + 8) // bytes of A
	down := uint32(2)
	if cols <= 32 {
		down = min(c.subs, lanestream.GroupRows/c.M)
	}
	local := c.Sub * c.subs
	teams := min(2, local/64)
	octets := max(teams*lanestream.StepCols*(cols/8+1), 32*(cols/4+1)) // of B, or of 32 rows of C
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_%v_n%d", c.MatrixUnit, cols), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need:  spec.Need{F16: true, Shared: 16*octets + tile*teams, Shapes: []backend.MatrixShape{c.Shape(dtype.F16)}},
		Local: [3]uint32{local, 1, 1}, Sub: c.Sub, Matrix: true,
		Consts: append([]spec.Const{
			{Name: "LOCAL", ID: 0, Value: local}, {Name: "TM", ID: 1, Value: c.M}, {Name: "TN", ID: 2, Value: c.N}, {Name: "TK", ID: 3, Value: c.K},
			{Name: "WIDE", ID: 4, Value: cols}, {Name: "SUBS", ID: 5, Value: c.subs}, {Name: "DOWN", ID: 6, Value: down}, {Name: "TEAMS", ID: 7, Value: teams},
			{Name: "SHARED", ID: 8, Value: octets}, spec.Define("COLS", cols), spec.Define("STREAMS", 1),
		}, packing()...),
		Unit: spec.Unit{Source: "coop.comp", Blob: "coop.spv"},
		Out:  []dtype.Type{dtype.F16},
	}
}

// scalarVulkan is scalar.comp.
func scalarVulkan(t dtype.Type) *spec.Variant {
	return &spec.Variant{
		Name: "vulkan_" + t.String(), In: t, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{Shared: scalarShared}, Local: [3]uint32{64 * scalarTeams, 1, 1},
		Consts: append([]spec.Const{{Name: "LOCAL", ID: 0, Value: 64 * scalarTeams}, spec.Define("COLS", 64)}, packing()...),
		Unit:   spec.Unit{Source: "scalar.comp", Defines: map[string]string{"ELEM": include.Define(t)}, Blob: "scalar_" + t.String() + ".spv"},
	}
}

// vulkanFor returns the variant of v's kind that is wide enough for a problem.
func vulkanFor(v *spec.Variant, p spec.Problem) *spec.Variant {
	if v.Need.Shapes == nil {
		return v
	}
	for _, x := range vulkan { // the narrowest first
		if x.Need.Shapes != nil && x.Need.Shapes[0] == v.Need.Shapes[0] && x.Sub == v.Sub {
			if v = x; int(x.Const("COLS")) >= p.N {
				break
			}
		}
	}
	return v
}
