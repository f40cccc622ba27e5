// The variants for CUDA: kernel.cu (the paper's), staged.cu (B in shared memory once for many groups, which is
// faster where groups use much of B), tf32.cu and scalar.cu.

package tiledcsr

import (
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
	return append(vs, panel.TF32("tiledcsr"), panel.Scalar("tiledcsr", 8))
}

// gathered is kernel.cu with one warp a block. (Four warps that share the copies, as in the paper, are no faster: see
// docs/history/2026-11.md.)
func gathered(t dtype.Type) *spec.Variant {
	return panel.Gathered("tiledcsr", "cuda_v8_"+t.String(), t, 8, 16, 2, 1)
}
