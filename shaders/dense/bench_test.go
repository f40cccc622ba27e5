// How fast the kernels are on the devices present.

package dense_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
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

var (
	layers  = flag.String("layers", "4096x4096", "rows and columns that BenchmarkLayers takes")
	columns = flag.String("columns", "8,512", "columns of B that BenchmarkLayers takes")
)

// BenchmarkLayers times f16 variants on layers of the sizes asked for.
func BenchmarkLayers(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, size := range strings.Split(*layers, ",") {
			var rows, cols int
			if _, err := fmt.Sscanf(size, "%dx%d", &rows, &cols); err != nil {
				b.Fatal(err)
			}
			a := sync.OnceValue(func() *formats.Dense[half.F16] {
				r, d := rand.New(rand.NewPCG(1, 2)), formats.NewDense[half.F16](rows, cols)
				for i := range d.Data {
					d.Data[i] = half.F16From(r.Float32() - 0.5)
				}
				return d
			})
			for _, v := range shadertest.Variants(dev, dense.Format.Program) {
				for _, columns := range strings.Split(*columns, ",") {
					n, err := strconv.Atoi(columns)
					if err != nil {
						b.Fatal(err)
					}
					if v.In != dtype.F16 || v.Quant != dtype.Invalid {
						continue
					}
					b.Run(fmt.Sprintf("%s/%s/n=%d", size, v.Name, n), func(b *testing.B) {
						e, err := dense.Format.Adopt(a(), v)
						if err != nil {
							b.Fatal(err)
						}
						shadertest.BenchPacked(b, dev, dense.Format, v, e, n)
					})
				}
			}
		}
	})
}
