// The variants for CUDA: kernel.cu (the paper's), staged.cu (B in shared memory once for many groups, which is
// faster where groups use much of B), tf32.cu and scalar.cu.

package tiledcsr

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

var cuda = cudaVariants()

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs, panel.Overlapping(gathered(t)), gathered(t), panel.Hopper("tiledcsr", t, 8), panel.Staged("tiledcsr", t, 512, 16, 2, 2, 4))
	}
	return append(vs, tf32Variant(), scalarVariant())
}

// gathered is kernel.cu: one warp a block, three stages of copies in flight. (Four warps that share the copies,
// as in the paper, are no faster: see docs/history/2026-11.md.)
func gathered(t dtype.Type) *spec.Variant {
	const warps, chunks, stages = 1, 2, 3
	x := panel.CUDA("tiledcsr", "kernel.cu", "cuda_v8_"+t.String(), t, warps, []spec.Const{
		spec.Define("V", 8), spec.Define("STEP", 16), spec.Define("CHUNKS", chunks), spec.Define("WARPS", warps),
		spec.Define("STAGES", stages), spec.Define("COLS", 64*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	return x
}

func tf32Variant() *spec.Variant {
	const warps, chunks = 4, 2
	x := panel.CUDA("tiledcsr", "tf32.cu", "cuda_v8_tf32", dtype.TF32, warps, []spec.Const{
		spec.Define("V", 8), spec.Define("STEP", 8), spec.Define("CHUNKS", chunks), spec.Define("WARPS", warps),
		spec.Define("COLS", 32*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 8, dtype.TF32)}
	return x
}

func scalarVariant() *spec.Variant {
	const warps, unroll = 4, 4
	x := panel.CUDA("tiledcsr", "scalar.cu", "cuda_v8_f32", dtype.F32, warps, []spec.Const{
		spec.Define("V", 8), spec.Define("STEP", 8), spec.Define("CHUNKS", 1), spec.Define("UNROLL", unroll),
		spec.Define("WARPS", warps), spec.Define("COLS", 128),
	})
	x.Unit.Defines["EPILOGUE"] = "1" // it is faster with that code than without: ptxas
	return x
}
