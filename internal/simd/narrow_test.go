// Rounding held against package half on all hard numbers.

package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/formats/half"
)

// hardFloats are all 16-bit numbers of both kinds, the numbers next to them, those halfway between
// two, and random ones.
func hardFloats() []float32 {
	var x []float32
	for h := range uint32(1 << 16) {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001} {
			x = append(x, math.Float32frombits(h<<16|low))
		}
		f := half.F16(h).Float32()
		tie := (f + half.F16(h+1).Float32()) / 2
		x = append(x, f, tie, math.Nextafter32(tie, 0), math.Nextafter32(tie, 1e9))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1<<16 + 5 {
		x = append(x, math.Float32frombits(r.Uint32()))
	}
	return x
}

func TestNarrow(t *testing.T) {
	x := hardFloats()
	f, b := make([]half.F16, len(x)+1), make([]half.BF16, len(x)+1)
	levels(func(name string) {
		f[len(x)], b[len(x)] = 77, 77
		NarrowF16(f, x)
		NarrowBF16(b, x)
		if f[len(x)] != 77 || b[len(x)] != 77 {
			t.Fatalf("%s: wrote past %d elements", name, len(x))
		}
		for i, v := range x {
			if want := half.F16From(v); f[i] != want && (v == v || f[i].Float32() == f[i].Float32()) {
				t.Fatalf("%s: %v (%#x) as binary16 is %#04x, want %#04x", name, v, math.Float32bits(v), f[i], want)
			}
			if want := half.BF16From(v); b[i] != want && (v == v || b[i].Float32() == b[i].Float32()) {
				t.Fatalf("%s: %v (%#x) as bfloat16 is %#04x, want %#04x", name, v, math.Float32bits(v), b[i], want)
			}
		}
	})
}
