// The variants for CUDA: kernel.cu (the paper's mapping, rows of B gathered from the caches), staged.cu
// (B staged in shared memory, for panels that share most rows), tf32.cu and scalar.cu.

package cvse

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

var cuda = cudaVariants()

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs,
			panel.Overlapping(gathered(t, 8, 16, 1)),
			gathered(t, 8, 16, 1),
			panel.Hopper("cvse", t, 8),
			panel.Hopper("cvse", t, 16),
			panel.Staged("cvse", t, 512, 16, 2, 2, 4),
			gathered(t, 8, 8, 1),
			panel.Overlapping(gathered(t, 16, 16, 4)),
			gathered(t, 16, 16, 4),
		)
	}
	return append(vs, panel.TF32("cvse", 8), panel.Scalar("cvse", 8, panel.Unroll), panel.Scalar("cvse", 16, panel.Unroll))
}

// gathered is kernel.cu for panels of v rows and an instruction of k = step.
func gathered(t dtype.Type, v, step, warps uint32) *spec.Variant {
	return panel.Gathered("cvse", fmt.Sprintf("cuda_v%d_k%d_%v", v, step, t), t, v, step, 2, warps, step)
}
