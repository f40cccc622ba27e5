// The variants for CUDA.

package tiledcsr

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs, gathered(t, 1, 1, 3), gathered(t, 4, 4, 3))
	}
	return append(vs, tf32Variant(), scalarVariant())
}

// gathered is kernel.cu: blocks of so many warps, of which share copy tiles together, so many stages deep.
func gathered(t dtype.Type, warps, share, stages uint32) *spec.Variant {
	const chunks = 2
	x := panel.CUDA("tiledcsr", "kernel.cu", fmt.Sprintf("cuda_v8_share%d_%v", share, t), t, warps, []spec.Const{
		panel.Define("V", 8), panel.Define("STEP", 16), panel.Define("CHUNKS", chunks), panel.Define("WARPS", warps),
		panel.Define("SHARE", share), panel.Define("STAGES", stages), panel.Define("COLS", 64*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{{M: 16, N: 8, K: 16, A: t, B: t, C: dtype.F32, D: dtype.F32}}
	return x
}

func tf32Variant() *spec.Variant {
	const warps, chunks = 4, 2
	x := panel.CUDA("tiledcsr", "tf32.cu", "cuda_v8_tf32", dtype.TF32, warps, []spec.Const{
		panel.Define("V", 8), panel.Define("STEP", 8), panel.Define("CHUNKS", chunks), panel.Define("WARPS", warps),
		panel.Define("COLS", 32*chunks),
	})
	x.Need.Shapes = []backend.MatrixShape{{M: 16, N: 8, K: 8, A: dtype.TF32, B: dtype.TF32, C: dtype.F32, D: dtype.F32}}
	return x
}

func scalarVariant() *spec.Variant {
	const warps, unroll = 4, 4
	return panel.CUDA("tiledcsr", "scalar.cu", "cuda_v8_f32", dtype.F32, warps, []spec.Const{
		panel.Define("V", 8), panel.Define("STEP", 8), panel.Define("CHUNKS", 1), panel.Define("UNROLL", unroll),
		panel.Define("WARPS", warps), panel.Define("COLS", 128),
	})
}
