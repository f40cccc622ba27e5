// How fast the kernels are on every device present.

package cvse_test

import (
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// BenchmarkMultiply is 4096×4096 in f16, of 8-row vectors, times 64 columns and more, on every device; csr is the baseline.
func BenchmarkMultiply(b *testing.B) {
	for _, zeros := range []int{70, 80, 90, 95, 98} {
		shadertest.BenchMultiply(b, fmt.Sprintf("zeros=%d", zeros), func() formats.Sparse {
			return shadertest.Ones[half.F16](shadertest.Alike(4096, 4096, 8, float64(100-zeros)/100), 4096)
		}, []int{64, 128, 512, 2048}, shadertest.OfF16, csr.Format, cvse.Format)
	}
}
