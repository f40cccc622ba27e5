// How fast the kernels are on every device present.

package jigsaw_test

import (
	"testing"

	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// cvse is the baseline.
func BenchmarkMultiply(b *testing.B) {
	shadertest.BenchVectors(b, []int{512}, cvse.Format, jigsaw.Format)
}
