// The variants for GPUs.

package hrpb

import (
	"slices"
	"strconv"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// gpuWorkers is the number of parts that a large GPU works on at a time.
const gpuWorkers = 1024

func variants() []*spec.Variant {
	return slices.Concat(vulkanVariants(), webgpuVariants(), cpuVariants())
}

// The scalar kernels' workgroup: enough for 256 columns.
const (
	scalarLocal = 64
	scalarBlock = 16
)

// scalarShared is the shared memory of a scalar kernel: a block's values and columns, and sums.
const scalarShared = 4*scalarBlock*(16+1) + 16*scalarLocal

func vulkanVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, &spec.Variant{
			Name: "vulkan_" + t.String(), In: t, Code: backend.CodeSPIRV, Entry: "main",
			Need: spec.Need{Shared: scalarShared}, Local: [3]uint32{scalarLocal, 1, 1},
			Consts: []spec.Const{
				{Name: "LOCAL", ID: 0, Value: scalarLocal}, {Name: "BLOCK", ID: 1, Value: scalarBlock},
				{Name: "WORKERS", ID: -1, Value: gpuWorkers}, {Name: "COLS", ID: -1, Value: 4 * scalarLocal},
			},
			Unit: spec.Unit{Source: "kernel.comp", Defines: map[string]string{"ELEM": elem(t)}, Blob: "zscalar_" + t.String() + ".spv"},
		})
	}
	return vs
}

func webgpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, &spec.Variant{
			Name: "webgpu_" + t.String(), In: t, Code: backend.CodeWGSL, Entry: "main",
			Need: spec.Need{Shared: scalarShared}, Local: [3]uint32{scalarLocal, 1, 1},
			Consts: []spec.Const{
				{Name: "BLOCK", ID: -1, Value: scalarBlock}, {Name: "SLOTS", ID: -1, Value: 16 * scalarBlock}, {Name: "ROWS", ID: -1, Value: 16}, {Name: "PATTERNS", ID: -1, Value: scalarBlock / 2},
				{Name: "WORKERS", ID: -1, Value: gpuWorkers}, {Name: "COLS", ID: -1, Value: 4 * scalarLocal},
			},
			Unit: spec.Unit{Source: "kernel.wgsl", Defines: map[string]string{"ELEM": elem(t), "HALF": include.HalfWGSL}},
		})
	}
	return vs
}

// elem is the define ELEM for elements of type t.
func elem(t dtype.Type) string {
	return strconv.Itoa(map[dtype.Type]int{dtype.F16: include.F16, dtype.BF16: include.BF16}[t])
}
