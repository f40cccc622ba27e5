// How fast the kernels are on every device present.

package nm_test

import (
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is 4096×4096 in f16 on every device: 2:4 and 4:16 of single entries, and vectors at 75 % and 90 %
// zeros, times one column to 4096; by each variant that takes the pattern.
func BenchmarkMultiply(b *testing.B) {
	for _, p := range []format.Pattern{
		{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 16, V: 1, W: 1},
		{N: 4, M: 16, V: 32, W: 1}, {N: 4, M: 16, V: 64, W: 1}, {N: 4, M: 16, V: 128, W: 1},
		{N: 2, M: 20, V: 32, W: 1}, {N: 2, M: 20, V: 64, W: 1}, {N: 2, M: 20, V: 128, W: 1},
		{N: 1, M: 4, V: 32, W: 32},
	} {
		matrix := func() formats.Sparse { return shadertest.Ones[half.F16](pattern(4096, 4096, p, 1), 4096) }
		takes := func(v *spec.Variant) bool { return shadertest.OfF16(v) && suits(v, p) }
		shadertest.BenchMultiply(b, p.String(), matrix, []int{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, takes, nm.Format)
	}
}

// suits tells whether a variant is for matrices of a pattern.
func suits(v *spec.Variant, p format.Pattern) bool {
	tall := int(v.Const("V"))
	return tall == p.V && (!nm.Is24(v) || p.M == 4) || tall == 8 && p.V > 8
}
