// The variants for CUDA: kernel.cu (the paper's), staged.cu (B in shared memory once for many groups, which is
// faster where groups use much of B), tf32.cu and scalar.cu.

package tiledcsr

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

var cuda = append(append(halves(dtype.F16), halves(dtype.BF16)...), panel.TF32("tiledcsr", 0),
	panel.Scalar("tiledcsr", 8, 0))

// halves are the variants for a type of 16 bits.
func halves(t dtype.Type) []*spec.Variant {
	return []*spec.Variant{
		panel.Overlapping(gathered(t)), gathered(t), panel.Hopper("tiledcsr", t, 8),
		panel.Staged("tiledcsr", t, 512, 16, 2, 2, 4),
	}
}

// gathered is kernel.cu with one warp a block. (Four warps that share the copies, as in the paper, are no faster: see
// docs/history/tiledcsr.md.)
func gathered(t dtype.Type) *spec.Variant {
	return panel.Gathered("tiledcsr", "cuda_v8_"+t.String(), t, 8, 16, 2, 1, 0)
}
