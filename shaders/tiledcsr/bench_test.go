// How fast the kernels are on every device present.

package tiledcsr_test

import (
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/tiledcsr"
)

// BenchmarkMultiply is 4096×4096 in f16 with scattered entries, times 512 columns, on every device; csr and cvse
// are the baselines.
func BenchmarkMultiply(b *testing.B) {
	for _, mask := range []string{"sparsity=0.5", "sparsity=0.7", "sparsity=0.8", "sparsity=0.9",
		"sparsity=0.9,jitter=0.9", "sparsity=0.95", "sparsity=0.98"} {
		shadertest.BenchMultiply(b, mask, func() formats.Sparse {
			a, err := gen.CSR("gen:uniform,rows=4096," + mask)
			if err != nil {
				b.Fatal(err)
			}
			return formats.Convert[half.F16](a)
		}, []int{512}, shadertest.OfF16, csr.Format, cvse.Format, tiledcsr.Format)
	}
}
