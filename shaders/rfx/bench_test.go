package rfx_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// BenchmarkCPU multiplies a pruned 2048×2048 matrix of f16 by 1 and by 128 columns; that of kernel csr
// is the baseline.
func BenchmarkCPU(b *testing.B) {
	const size = 2048
	r := rand.New(rand.NewPCG(1, 2))
	lens := make([]int, size)
	for i := range lens {
		lens[i] = 205
	}
	a := formats.Convert[half.F16](matrix(r, size, normal, lens...))
	for _, p := range rfx.All {
		for _, n := range []int{1, 128} {
			b.Run(fmt.Sprintf("p=%d/n=%d", p, n), func(b *testing.B) { benchmark(b, a, p, n) })
		}
	}
}

func benchmark(b *testing.B, a *formats.CSR[half.F16], p rfx.P, n int) {
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	d, err := backend.Find("cpu")
	must(err)
	infos, err := d.Devices(ctx)
	must(err)
	dev, err := d.Open(ctx, infos[0])
	must(err)
	defer dev.Close()
	alloc := func(data []byte) backend.Buffer {
		x, err := dev.Alloc(int64(len(data)))
		must(err)
		must(x.Write(ctx, 0, data))
		return x
	}
	ldb := (n + 7) &^ 7
	layout := quantise.NewLayout(a.Cols, n, p)
	x, q := alloc(make([]byte, 2*a.Cols*ldb)), alloc(make([]byte, layout.Bytes()))
	qv, err := quantise.Variant(dev.Caps())
	must(err)
	ql, err := quantise.Launch(qv, layout, dtype.F16, ldb)
	must(err)
	v, err := kernel.Variant(dev.Caps(), p, kernel.Rows)
	must(err)
	e, err := kernel.Format.Encode(a, v)
	must(err)
	l, err := kernel.Format.Launch(v, e, spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()})
	must(err)
	var args []backend.Buffer
	for _, y := range e.Arrays {
		args = append(args, alloc(y.Data))
	}
	args = append(args, x, q, alloc(make([]byte, 4*a.Rows*n)), alloc(make([]byte, l.Workspace)))
	launches := append(shadertest.Launches(b, dev, quantise.Program, ql, x, q), shadertest.Launches(b, dev, kernel.Format.Program, l, args...)...)
	for b.Loop() {
		_, err := dev.Run(ctx, launches...)
		must(err)
	}
	b.ReportMetric(2*float64(a.NNZ())*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
