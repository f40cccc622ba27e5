// Floating-point numbers of 8 bits.

package half

import "math"

// E4M3 is the bits of an OCP 8-bit floating-point number with 4 exponent and 3 significand bits ("OCP 8-bit Floating
// Point Specification", 2023): a sign, an exponent biased by 7, and subnormal numbers. There are no infinities; 0x7f
// and 0xff are NaN. The largest number is MaxE4M3, the least 2⁻⁹. Every number is one of F16 and BF16, too.
type E4M3 uint8

// MaxE4M3 is the largest E4M3.
const MaxE4M3 = 448

// NaN reports whether the number is NaN.
func (h E4M3) NaN() bool { return h&0x7f == 0x7f }

// Float32 returns h as a float32, which is exact.
func (h E4M3) Float32() float32 {
	exp, frac := int(h>>3&15), int(h&7)
	var x float64
	switch {
	case h.NaN():
		x = math.NaN()
	case exp == 0:
		x = math.Ldexp(float64(frac), -9)
	default:
		x = math.Ldexp(float64(8+frac), exp-10)
	}
	if h&0x80 != 0 {
		x = -x
	}
	return float32(x)
}

// E4M3From rounds x to the nearest E4M3, ties to even. Numbers beyond MaxE4M3 become MaxE4M3 with the sign of x; NaN
// stays NaN.
func E4M3From(x float64) E4M3 {
	sign := E4M3(math.Float64bits(x) >> 63 << 7)
	x = math.Abs(x)
	switch {
	case x != x:
		return sign | 0x7f
	case x >= MaxE4M3:
		return sign | 0x7e
	case x < 0x1p-6: // in units of the least number; what rounds to 8 of them is the least normal number's bits
		return sign | E4M3(math.RoundToEven(x*0x1p9))
	}
	_, exp := math.Frexp(x)                     // x in [2^(exp-1), 2^exp)
	m := math.RoundToEven(math.Ldexp(x, 4-exp)) // 8 to 16
	return sign | E4M3(8*(exp+5)+int(m))        // a carry goes on into the exponent
}
