// How fast the kernels are on every device present.

package tiledcsr_test

import (
	"fmt"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/tiledcsr"
)

// BenchmarkMultiply is 4096×4096 in f16 with scattered entries, times 512 columns, on every device; csr and cvse
// are the baselines.
func BenchmarkMultiply(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, mask := range []string{"sparsity=0.5", "sparsity=0.7", "sparsity=0.8", "sparsity=0.9", "sparsity=0.9,jitter=0.9", "sparsity=0.95", "sparsity=0.98"} {
			x, err := gen.CSR("gen:uniform,rows=4096," + mask)
			if err != nil {
				b.Fatal(err)
			}
			a := formats.Convert[half.F16](x)
			for _, k := range []*spec.Format{csr.Format, cvse.Format, tiledcsr.Format} {
				for _, v := range k.Variants {
					if v.In == dtype.F16 && v.Met(dev.Caps()) {
						name := fmt.Sprintf("%s/%s/%s/%s", dev.Info().Backend, mask, k.Name, v.Name)
						b.Run(name, func(b *testing.B) { shadertest.Bench(b, dev, k, v, a, 512) })
					}
				}
			}
		}
	})
}
