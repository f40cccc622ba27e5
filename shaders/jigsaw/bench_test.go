// How fast the kernels are on every device present.

package jigsaw_test

import (
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// BenchmarkMultiply is 4096×4096 in f16, of 8-row vectors, times 512 columns, on every device; cvse is the baseline.
func BenchmarkMultiply(b *testing.B) {
	for _, zeros := range []int{70, 80, 90, 95, 98} {
		matrix := func() formats.Sparse {
			return shadertest.Ones[half.F16](shadertest.Alike(4096, 4096, 8, float64(100-zeros)/100), 4096)
		}
		shadertest.BenchMultiply(b, fmt.Sprintf("zeros=%d", zeros), matrix, []int{512}, shadertest.OfF16, cvse.Format, jigsaw.Format)
	}
}
