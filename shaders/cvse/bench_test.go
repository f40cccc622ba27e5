// How fast the kernels are on every device present.

package cvse_test

import (
	"testing"

	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// csr is the baseline.
func BenchmarkMultiply(b *testing.B) {
	shadertest.BenchVectors(b, []int{64, 128, 512, 2048}, csr.Format, cvse.Format)
}
