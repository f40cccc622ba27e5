// How fast the kernels are on every device present.

package csr_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// random has rows of the given lengths with columns spread at random.
func random(lens []int, k int) *formats.CSR[float32] {
	r := rand.New(rand.NewPCG(3, 4))
	p := make([][]int32, len(lens))
	for i, n := range lens {
		for range n {
			p[i] = append(p[i], r.Int32N(int32(k)))
		}
		slices.Sort(p[i])
		p[i] = slices.Compact(p[i])
	}
	a := shadertest.Ones[float32](p, k)
	for i := range a.Val {
		a.Val[i] = r.Float32()
	}
	return a
}

// BenchmarkMultiply is graphs and pruned weights in f32; package simd's BenchmarkCopy says what the CPU can do.
func BenchmarkMultiply(b *testing.B) {
	for _, c := range []struct {
		name string
		lens []int
		k    int
	}{
		{"graph", rows(1<<16, 16), 1 << 16},
		{"pruned", rows(2048, 205), 2048},
		{"stencil", rows(1<<17, 5), 1 << 17},
		{"one row", rows(1, 1<<20), 1 << 20},
	} {
		matrix := func() formats.Sparse { return random(c.lens, c.k) }
		shadertest.BenchMultiply(b, c.name, matrix, []int{1, 8, 32, 128},
			func(v *spec.Variant) bool { return v.In == dtype.F32 }, csr.Format)
	}
}
