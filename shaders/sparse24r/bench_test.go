// How fast the kernels are on every device present.

package sparse24r_test

import (
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/sparse24r"
)

// BenchmarkMultiply is 4096×4096 with scattered entries in f16, on every device and by each variant.
func BenchmarkMultiply(b *testing.B) {
	for _, zeros := range []float64{0.5, 0.8, 0.85, 0.9, 0.95, 0.98} {
		matrix := func() formats.Sparse {
			return shadertest.Ones[half.F16](shadertest.Scattered(4096, 4096, 1-zeros), 4096)
		}
		columns := []int{8, 64, 128, 256, 512, 1024, 2048, 4096}
		shadertest.BenchMultiply(b, fmt.Sprintf("zeros=%v", zeros), matrix, columns, shadertest.OfF16, sparse24r.Format)
	}
}
