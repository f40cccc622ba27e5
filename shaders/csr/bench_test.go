// How fast the CPU's kernel is beside what the machine can do.

package csr_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// random has rows of the given lengths with columns spread at random.
func random(lens []int, k int) *formats.CSR[float32] {
	r := rand.New(rand.NewPCG(3, 4))
	a := &formats.CSR[float32]{Rows: len(lens), Cols: k, RowPtr: []int64{0}}
	for _, n := range lens {
		cols := make([]int32, n)
		for i := range cols {
			cols[i] = r.Int32N(int32(k))
		}
		slices.Sort(cols)
		a.ColIdx = append(a.ColIdx, slices.Compact(cols)...)
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	a.Val = make([]float32, len(a.ColIdx))
	for i := range a.Val {
		a.Val[i] = r.Float32()
	}
	return a
}

// BenchmarkCPU reports GFLOP/s and, as MB/s, the rows of B that are gathered and the C that is
// written; package simd's BenchmarkCopy is the baseline for the latter.
func BenchmarkCPU(b *testing.B) {
	cases := []struct {
		name string
		lens []int
		k    int
	}{
		{"graph", rows(1<<16, 16), 1 << 16},
		{"pruned", rows(2048, 205), 2048},
		{"stencil", rows(1<<17, 5), 1 << 17},
		{"one row", rows(1, 1<<20), 1 << 20},
	}
	for _, c := range cases {
		a := random(c.lens, c.k)
		for _, n := range []int{1, 8, 32, 128} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) { benchmark(b, a, n) })
		}
	}
}

func benchmark(b *testing.B, a *formats.CSR[float32], n int) {
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
	i := slices.IndexFunc(csr.Format.Variants, func(v *spec.Variant) bool { return v.Met(dev.Caps()) && v.In == dtype.F32 })
	v := csr.Format.Variants[i]
	e, err := csr.Format.Encode(a, v)
	must(err)
	ldb := (n + 7) &^ 7
	l, err := csr.Format.Launch(v, e, spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps()})
	must(err)
	var args []backend.Buffer
	alloc := func(size int64) backend.Buffer {
		x, err := dev.Alloc(size)
		must(err)
		args = append(args, x)
		return x
	}
	for _, x := range e.Arrays {
		must(alloc(int64(len(x.Data))).Write(ctx, 0, x.Data))
	}
	alloc(int64(a.Cols*ldb) * 4)
	alloc(int64(a.Rows*n) * 4)
	alloc(l.Workspace)
	launches := shadertest.Launches(b, dev, csr.Format.Program, l, args...)
	b.SetBytes((a.NNZ()*int64(ldb) + int64(a.Rows*n)) * 4)
	for b.Loop() {
		_, err := dev.Run(ctx, launches...)
		must(err)
	}
	b.ReportMetric(2*float64(a.NNZ())*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
