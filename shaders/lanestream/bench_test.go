// How fast the kernels are on every device present.

package lanestream_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

var size = flag.String("size", "4096x4096", "rows and columns that BenchmarkMultiply takes")

// BenchmarkMultiply is a matrix of f16 with scattered zeros times few columns and many, on every device.
func BenchmarkMultiply(b *testing.B) {
	var rows, cols int
	if _, err := fmt.Sscanf(*size, "%dx%d", &rows, &cols); err != nil {
		b.Fatal(err)
	}
	for _, zeros := range []int{50, 70, 90} {
		shadertest.BenchMultiply(b, fmt.Sprintf("%d/zeros=%d", rows, zeros), func() formats.Sparse {
			a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%v", rows, cols, float64(100-zeros)/100))
			if err != nil {
				b.Fatal(err)
			}
			return formats.Convert[half.F16](a)
		}, []int{8, 16, 32, 128, 512}, shadertest.OfF16, lanestream.Format)
	}
}
