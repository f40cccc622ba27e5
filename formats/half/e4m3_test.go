// 8-bit numbers, held against their definition.

package half_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats/half"
)

// TestE4M3 looks at some numbers of the specification's table, and that all are their own nearest and those of F16 and
// BF16.
func TestE4M3(t *testing.T) {
	for bits, want := range map[half.E4M3]float32{
		0: 0, 1: 0x1p-9, 7: 0.875 * 0x1p-6, 8: 0x1p-6, 0x38: 1, 0x39: 1.125, 0x7e: 448, 0xfe: -448, 0x81: -0x1p-9,
	} {
		if got := bits.Float32(); got != want {
			t.Errorf("%#x is %g, want %g", uint8(bits), got, want)
		}
	}
	for i := range 256 {
		h := half.E4M3(i)
		x := h.Float32()
		if h.NaN() {
			if x == x || !half.E4M3From(float64(x)).NaN() {
				t.Errorf("%#x is %g, want NaN", i, x)
			}
			continue
		}
		if got := half.E4M3From(float64(x)); got != h {
			t.Errorf("%#x, %g, becomes %#x", i, x, uint8(got))
		}
		if half.F16From(x).Float32() != x || half.BF16From(x).Float32() != x {
			t.Errorf("%#x, %g, is no F16 or no BF16", i, x)
		}
	}
}

// TestE4M3From: no other number is nearer, and of two that are as near the even one is taken.
func TestE4M3From(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-500, 500).Draw(t, "x")
		if rapid.Bool().Draw(t, "small") {
			x = rapid.Float64Range(-0x1p-5, 0x1p-5).Draw(t, "small x")
		}
		if rapid.Bool().Draw(t, "tie") { // half way between two
			i := rapid.IntRange(0, 0x7d).Draw(t, "number")
			x = (float64(half.E4M3(i).Float32()) + float64(half.E4M3(i+1).Float32())) / 2
		}
		got := half.E4M3From(x)
		near := math.Abs(float64(got.Float32()) - x)
		for i := range 256 {
			h := half.E4M3(i)
			d := math.Abs(float64(h.Float32()) - x)
			if d < near || d == near && h.Float32() != got.Float32() && got&1 == 1 {
				t.Fatalf("%g becomes %g, but %g is as near", x, got.Float32(), h.Float32())
			}
		}
	})
}
