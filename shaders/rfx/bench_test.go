// How fast the kernel is on every device present.

package rfx_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is a pruned 2048×2048 matrix of f16 times 1 and 128 columns, on every device; that of kernel csr is the
// baseline.
func BenchmarkMultiply(b *testing.B) {
	const size = 2048
	a := formats.Convert[half.F16](matrix(rand.New(rand.NewPCG(1, 2)), size, normal, slices.Repeat([]int{205}, size)...))
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, p := range rfx.All {
			for _, n := range []int{1, 128} {
				b.Run(fmt.Sprintf("%s/p=%d/n=%d", dev.Info().Backend, p, n), func(b *testing.B) { benchmark(b, dev, a, p, n) })
			}
		}
	})
}

func benchmark(b *testing.B, dev backend.Device, a *formats.CSR[half.F16], p rfx.P, n int) {
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	alloc := func(data []byte) backend.Buffer {
		x, err := dev.Alloc(int64(len(data)))
		must(err)
		b.Cleanup(func() { x.Close() })
		must(x.Write(ctx, 0, data))
		return x
	}
	v, err := kernel.Variant(dev.Caps(), p, kernel.Rows)
	must(err)
	e, err := kernel.Format.Encode(a, v)
	must(err)
	ldb := (n + 7) &^ 7
	l, err := kernel.Format.Launch(v, e, spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()})
	must(err)
	layout := kernel.Layout(v, a.Cols, n)
	qv, err := quantise.Variant(dev.Caps())
	must(err)
	ql, err := quantise.Launch(qv, layout, dtype.F16, ldb)
	must(err)
	x, q := alloc(make([]byte, 2*a.Cols*ldb)), alloc(make([]byte, layout.Bytes()))
	var args []backend.Buffer
	for _, y := range e.Arrays {
		args = append(args, alloc(y.Data))
	}
	args = append(args, x, q, alloc(make([]byte, 16)), alloc(make([]byte, 4*a.Rows*n)), alloc(make([]byte, max(spec.NoWorkspace, l.Workspace))))
	launches := append(shadertest.Launches(b, dev, quantise.Program, ql, x, q), shadertest.Launches(b, dev, kernel.Format.Program, l, args...)...)
	for b.Loop() {
		_, err := dev.Run(ctx, launches...)
		must(err)
	}
	b.ReportMetric(2*float64(a.NNZ())*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
