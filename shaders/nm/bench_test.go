package nm_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is 4096×4096 in f16 on every device: 2:4 and 4:16 of single entries, and vectors at 75 % and 90 %
// zeros, times one column to 4096; by each variant that takes the pattern.
func BenchmarkMultiply(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, p := range []format.Pattern{
			{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 16, V: 1, W: 1},
			{N: 4, M: 16, V: 32, W: 1}, {N: 4, M: 16, V: 64, W: 1}, {N: 4, M: 16, V: 128, W: 1},
			{N: 2, M: 20, V: 32, W: 1}, {N: 2, M: 20, V: 64, W: 1}, {N: 2, M: 20, V: 128, W: 1},
			{N: 1, M: 4, V: 32, W: 32},
		} {
			a := sync.OnceValue(func() *formats.CSR[half.F16] { return matrix(4096, p) })
			for _, v := range nm.Format.Variants {
				if v.In != dtype.F16 || !v.Met(dev.Caps()) || !suits(v, p) {
					continue
				}
				for _, n := range []int{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096} {
					b.Run(fmt.Sprintf("%v/%s/n=%d", p, v.Name, n), func(b *testing.B) { shadertest.Bench(b, dev, nm.Format, v, a(), n) })
				}
			}
		}
	})
}

// suits tells whether a variant is for matrices of a pattern.
func suits(v *spec.Variant, p format.Pattern) bool {
	tall := int(v.Const("V"))
	return tall == p.V && (!nm.Is24(v) || p.M == 4) || tall == 8 && p.V > 8
}

func matrix(n int, p format.Pattern) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: n, Cols: n, RowPtr: []int64{0}}
	for _, cols := range pattern(n, n, p, 1) {
		for _, c := range cols {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, half.F16From(1))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}
