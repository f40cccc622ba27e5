// What becomes of a row of sums.

package host_test

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
)

// C is read only where beta is not 0, and nothing outside the row is written.
func TestStore(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct{ alpha, beta, old, want float32 }{{2, 0, nan, 6}, {2, -1, 0.5, 5.5}, {0, 1, 0.5, 0.5}} {
		f16, bf16, f32 := make([]half.F16, 5), make([]half.BF16, 5), make([]float32, 5)
		for i := range f32 {
			f16[i], bf16[i], f32[i] = half.F16From(c.old), half.BF16From(c.old), c.old
		}
		acc, tmp := []float32{3, 3, 3}, make([]float32, 3)
		for elem, m := range [][]byte{include.F32: backend.Bytes(f32), include.F16: backend.Bytes(f16),
			include.BF16: backend.Bytes(bf16)} {
			o := host.Out{C: m, Store: uint32(elem), LDC: 1, Alpha: c.alpha, Beta: c.beta}
			o.Row(0, 1, acc, tmp)
		}
		for i := range f32 {
			want := c.want
			if i == 0 || i == 4 {
				want = c.old
			}
			for typ, got := range map[dtype.Type]float32{dtype.F16: f16[i].Float32(), dtype.BF16: bf16[i].Float32(),
				dtype.F32: f32[i]} {
				if got != want && (got == got || want == want) {
					t.Errorf("%v: %g·3 + %g·%g is stored as %g at %d, want %g", typ, c.alpha, c.beta, c.old, got, i, want)
				}
			}
		}
	}
}

// Sums that are finite stay; others are those of the entries, in whatever order they stand.
func TestRepair(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		sum     float32
		entries [][2]float32
		want    float32
	}{
		{7, [][2]float32{{1, 1}}, 7},
		{nan, nil, 0},
		{nan, [][2]float32{{2, 3}, {1, -1}}, 5},
		{nan, [][2]float32{{2, inf}, {1, -1}}, inf},
		{inf, [][2]float32{{1, 1}, {-2, inf}}, -inf},
		{inf, [][2]float32{{1, inf}, {-1, inf}}, nan},
		{inf, [][2]float32{{0, inf}}, nan},
		{nan, [][2]float32{{3e38, 3e38}, {-3e38, 3e38}, {1, inf}}, inf},
		{nan, [][2]float32{{nan, 1}}, nan},
	} {
		acc := []float32{1, c.sum}
		host.Repair(acc, func(i int, add func(x, y float32)) {
			if i != 1 {
				t.Errorf("sum %d, which is finite, is computed again", i)
			}
			for _, e := range c.entries {
				add(e[0], e[1])
			}
		})
		if got := acc[1]; acc[0] != 1 || got != c.want && (got == got || c.want == c.want) {
			t.Errorf("%v with entries %v becomes %v, want %v", c.sum, c.entries, acc, c.want)
		}
	}
}

func TestFor(t *testing.T) {
	for typ, want := range map[dtype.Type]int{dtype.F16: 1, dtype.BF16: 2, dtype.F32: 3, dtype.TF32: 3} {
		if got := host.For(typ, 1, 2, 3); got != want {
			t.Errorf("for %v: %d, want %d", typ, got, want)
		}
	}
}
