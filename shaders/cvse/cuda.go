// The variants for CUDA: kernel.cu (the paper's mapping, rows of B gathered from the caches), staged.cu
// (B staged in shared memory, for panels that share most rows), tf32.cu and scalar.cu.

package cvse

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

var cuda = cudaVariants()

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs,
			panel.Overlapping(gathered(t, 8, 16, 2, 1, 3)),
			gathered(t, 8, 16, 2, 1, 3),
			panel.Hopper("cvse", t, 8),
			panel.Hopper("cvse", t, 16),
			panel.Staged("cvse", t, 512, 16, 2, 2, 4),
			gathered(t, 8, 8, 2, 1, 3),
			panel.Overlapping(gathered(t, 16, 16, 2, 4, 3)),
			gathered(t, 16, 16, 2, 4, 3),
		)
	}
	return append(vs, tf32Variant(), scalarVariant(8), scalarVariant(16))
}

// gathered is kernel.cu: panels of v rows, an instruction of k = step, 64·chunks columns, warps a
// block, stages of copies in flight.
func gathered(t dtype.Type, v, step, chunks, warps, stages uint32) *spec.Variant {
	x := panel.CUDA("cvse", "kernel.cu", fmt.Sprintf("cuda_v%d_k%d_%v", v, step, t), t, warps, []spec.Const{
		spec.Define("V", v), spec.Define("ALIGN", step), spec.Define("STEP", step), spec.Define("CHUNKS", chunks),
		spec.Define("WARPS", warps), spec.Define("STAGES", stages), spec.Define("COLS", 64*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, step, t)}
	return x
}

func tf32Variant() *spec.Variant {
	const warps, chunks = 4, 2
	x := panel.CUDA("cvse", "tf32.cu", "cuda_v8_tf32", dtype.TF32, warps, []spec.Const{
		spec.Define("V", 8), spec.Define("ALIGN", 8), spec.Define("STEP", 8), spec.Define("CHUNKS", chunks), spec.Define("WARPS", warps), spec.Define("COLS", 32*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 8, dtype.TF32)}
	return x
}

func scalarVariant(v uint32) *spec.Variant {
	const warps, unroll = 4, 4
	x := panel.CUDA("cvse", "scalar.cu", fmt.Sprintf("cuda_v%d_f32", v), dtype.F32, warps, []spec.Const{
		spec.Define("V", v), spec.Define("ALIGN", unroll), spec.Define("STEP", 8), spec.Define("CHUNKS", 1), spec.Define("UNROLL", unroll),
		spec.Define("WARPS", warps), spec.Define("COLS", 128),
	})
	x.Unit.Defines["EPILOGUE"] = "1" // it is faster with that code than without: ptxas
	return x
}
