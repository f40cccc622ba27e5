// All 16-bit numbers, and rounding to them held against float64.

package half_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/formats/half"
)

// value is an independent decoding of a 16-bit float with the given number of fraction bits.
func value(h uint16, frac int) float64 {
	expBits := 15 - frac
	bias := 1<<(expBits-1) - 1
	e, m := int(h>>frac)&(1<<expBits-1), int(h)&(1<<frac-1)
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case e == 1<<expBits-1 && m != 0:
		return math.NaN()
	case e == 1<<expBits-1:
		return math.Inf(int(sign))
	case e == 0:
		return sign * math.Ldexp(float64(m), 1-bias-frac)
	}
	return sign * math.Ldexp(float64(m+1<<frac), e-bias-frac)
}

// nearest reports whether h is the value of its kind nearest to x, ties to even. It looks at the two
// neighbours' midpoints, which float64 holds exactly.
func nearest(h uint16, x float32, frac int) bool {
	v := value(h, frac)
	if x != x {
		return v != v
	}
	if v != v || math.Signbit(v) != math.Signbit(float64(x)) {
		return false
	}
	abs, m := math.Abs(float64(x)), h&0x7fff
	inf := uint16(1<<15 - 1<<frac)
	at := func(m uint16) float64 { // infinity counts as the next power of two
		if m == inf {
			return 2*value(m-1, frac) - value(m-2, frac)
		}
		return value(m, frac)
	}
	if math.IsInf(abs, 1) {
		return m == inf
	}
	even := m&1 == 0
	if m > 0 {
		mid := (at(m-1) + at(m)) / 2
		if abs < mid || abs == mid && !even {
			return false
		}
	}
	if m < inf {
		mid := (at(m) + at(m+1)) / 2
		if abs > mid || abs == mid && !even {
			return false
		}
	}
	return true
}

func all[T half.F16 | half.BF16]() []T {
	s := make([]T, 1<<16)
	for i := range s {
		s[i] = T(i)
	}
	return s
}

func TestDecodeAll(t *testing.T) {
	f16, bf16 := make([]float32, 1<<16), make([]float32, 1<<16)
	half.Decode(f16, all[half.F16]())
	half.Decode(bf16, all[half.BF16]())
	for i := range 1 << 16 {
		checkDecode(t, "f16", uint16(i), f16[i], half.F16(i).Float32(), value(uint16(i), 10))
		checkDecode(t, "bf16", uint16(i), bf16[i], half.BF16(i).Float32(), value(uint16(i), 7))
	}
}

func checkDecode(t *testing.T, name string, h uint16, bulk, single float32, want float64) {
	t.Helper()
	if math.Float32bits(bulk) != math.Float32bits(single) {
		t.Fatalf("%s %#04x: Decode gives %#x, Float32 %#x", name, h, math.Float32bits(bulk), math.Float32bits(single))
	}
	if w := float32(want); w == w && math.Float32bits(bulk) != math.Float32bits(w) || w != w && bulk == bulk {
		t.Fatalf("%s %#04x decodes to %v, want %v", name, h, bulk, want)
	}
}

// hard returns float32 values around every number that 16-bit floats hold and around every midpoint
// of two, and random ones of all magnitudes.
func hard(frac int) []float32 {
	var out []float32
	add := func(x float32) {
		b := math.Float32bits(x)
		for _, n := range []uint32{b - 1, b, b + 1} {
			out = append(out, math.Float32frombits(n), math.Float32frombits(n|1<<31))
		}
	}
	for h := range uint16(1<<15 - 1) {
		v, next := value(h, frac), value(h+1, frac)
		if next != next {
			break
		}
		add(float32(v))
		if math.IsInf(next, 0) {
			next = 2*v - value(h-1, frac)
		}
		add(float32((v + next) / 2))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1 << 20 {
		out = append(out, math.Float32frombits(r.Uint32()))
	}
	return append(out, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.Float32frombits(0x7f800001), math.Float32frombits(0xffffffff))
}

func TestEncodeRoundsToNearestEven(t *testing.T) {
	for frac, name := range map[int]string{10: "f16", 7: "bf16"} {
		xs := hard(frac)
		f16, bf16 := make([]half.F16, len(xs)), make([]half.BF16, len(xs))
		half.Encode(f16, xs)
		half.Encode(bf16, xs)
		for i, x := range xs {
			bulk, single := uint16(f16[i]), uint16(half.F16From(x))
			if frac == 7 {
				bulk, single = uint16(bf16[i]), uint16(half.BF16From(x))
			}
			if bulk != single {
				t.Fatalf("%s of %v (%#x): Encode gives %#04x, From %#04x", name, x, math.Float32bits(x), bulk, single)
			}
			if !nearest(bulk, x, frac) {
				t.Fatalf("%s of %v (%#x) is %#04x (%v), not the nearest", name, x, math.Float32bits(x), bulk, value(bulk, frac))
			}
		}
	}
}

func ExampleF16From() {
	h := half.F16From(1.0 / 3)
	fmt.Printf("%#04x %v\n", uint16(h), h.Float32())
	// Output: 0x3555 0.33325195
}

func ExampleDecode() {
	dst := make([]float32, 3)
	half.Decode(dst, []half.BF16{0x3f80, 0xc000, 0x7f80})
	fmt.Println(dst)
	// Output: [1 -2 +Inf]
}

func BenchmarkDecodeF16(b *testing.B) {
	src, dst := make([]half.F16, 1<<14), make([]float32, 1<<14)
	for i := range src {
		src[i] = half.F16From(float32(i)/100 - 50)
	}
	b.SetBytes(int64(2 * len(src)))
	for b.Loop() {
		half.Decode(dst, src)
	}
}

func BenchmarkEncodeF16(b *testing.B) {
	src, dst := make([]float32, 1<<14), make([]half.F16, 1<<14)
	for i := range src {
		src[i] = float32(i)/100 - 50
	}
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		half.Encode(dst, src)
	}
}
