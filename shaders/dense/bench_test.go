// How fast the kernels are on the devices present.

package dense_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

var (
	layers  = flag.String("layers", "1024x1024", "rows and columns that BenchmarkMultiply takes")
	columns = flag.String("columns", "16,128,512", "columns of B that BenchmarkMultiply takes")
)

// BenchmarkMultiply times f16 variants on layers of the sizes asked for.
func BenchmarkMultiply(b *testing.B) {
	var ns []int
	for _, s := range strings.Split(*columns, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		ns = append(ns, n)
	}
	for _, size := range strings.Split(*layers, ",") {
		var rows, cols int
		if _, err := fmt.Sscanf(size, "%dx%d", &rows, &cols); err != nil {
			b.Fatal(err)
		}
		shadertest.BenchMultiply(b, size, func() formats.Sparse {
			r, d := rand.New(rand.NewPCG(1, 2)), formats.NewDense[half.F16](rows, cols)
			for i := range d.Data {
				d.Data[i] = half.F16From(r.Float32() - 0.5)
			}
			return d.Sparse()
		}, ns, shadertest.OfF16, dense.Format)
	}
}
