// How fast the kernels are on the devices present.

package dense_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// BenchmarkVariants times f16 variants on a layer of 2048×2048, on the CPU a quarter of it.
func BenchmarkVariants(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		size := 2048
		if dev.Caps().Code == backend.CodeGo {
			size = 1024
		}
		r := rand.New(rand.NewPCG(1, 2))
		d := formats.NewDense[half.F16](size, size)
		for i := range d.Data {
			d.Data[i] = half.F16From(r.Float32() - 0.5)
		}
		a := d.Sparse().(*formats.CSR[half.F16])
		for _, v := range shadertest.Variants(dev, dense.Format.Program) {
			if v.In != dtype.F16 {
				continue
			}
			for _, n := range []int{16, 128, 512} {
				b.Run(fmt.Sprintf("%s/n=%d", v.Name, n), func(b *testing.B) { shadertest.Bench(b, dev, dense.Format, v, a, n) })
			}
		}
	})
}
