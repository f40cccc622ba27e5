// Package half stores 16-bit floating-point numbers: IEEE binary16 and bfloat16.
package half

import (
	"math"

	"github.com/x448/float16"
)

// F16 is the bits of an IEEE 754 binary16.
type F16 uint16

// BF16 is the bits of a bfloat16: the upper half of a binary32.
type BF16 uint16

// F16From rounds x to the nearest binary16, ties to even; out of range gives an infinity.
func F16From(x float32) F16 { return F16(float16.Fromfloat32(x)) }

// Float32 returns h as a float32, which is exact.
func (h F16) Float32() float32 { return float16.Float16(h).Float32() }

// BF16From rounds x to the nearest bfloat16, ties to even. A NaN stays a NaN.
func BF16From(x float32) BF16 {
	b := math.Float32bits(x)
	if x != x {
		return BF16(b>>16 | 0x40)
	}
	return BF16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns h as a float32, which is exact.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }
