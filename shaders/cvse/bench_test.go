// How fast the kernels are on every device present.

package cvse_test

import (
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is 4096×4096 in f16, of 8-row vectors, times 512 columns, on every device; csr is
// the baseline.
func BenchmarkMultiply(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, zeros := range []int{70, 80, 90, 95, 98} {
			a := matrix(4096, 8, float64(100-zeros)/100)
			for _, k := range []*spec.Format{csr.Format, cvse.Format} {
				for _, v := range k.Variants {
					if v.In == dtype.F16 && v.Met(dev.Caps()) {
						for _, n := range []int{64, 128, 512, 2048} {
							b.Run(fmt.Sprintf("%s/%d/N=%d/%s", k.Name, zeros, n, v.Name), func(b *testing.B) { shadertest.Bench(b, dev, k, v, a, n) })
						}
					}
				}
			}
		}
	})
}

func matrix(n, v int, density float64) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: n, Cols: n, RowPtr: []int64{0}}
	for _, cols := range vectors(n, n, v, density) {
		for _, c := range cols {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, half.F16From(1))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}
