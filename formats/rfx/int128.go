// 128-bit integers: enough for the sum of 2³² products at p = 47, each below 2⁹⁴.

package rfx

import (
	"math"
	"math/bits"
)

// Int128 is a signed integer Hi·2⁶⁴ + Lo.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Int returns x as an Int128.
func Int(x int64) Int128 { return Int128{x >> 63, uint64(x)} }

// Add returns t + u.
func (t Int128) Add(u Int128) Int128 {
	lo, carry := bits.Add64(t.Lo, u.Lo, 0)
	hi, _ := bits.Add64(uint64(t.Hi), uint64(u.Hi), carry)
	return Int128{int64(hi), lo}
}

// Neg returns −t.
func (t Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, t.Lo, 0)
	return Int128{-t.Hi - int64(borrow), lo}
}

// Shl returns t·2^n.
func (t Int128) Shl(n uint) Int128 {
	if n >= 64 {
		return Int128{int64(t.Lo << (n - 64)), 0}
	}
	return Int128{t.Hi<<n | int64(t.Lo>>(64-n)), t.Lo << n}
}

// AddProduct returns t + x·y.
func (t Int128) AddProduct(x, y int64) Int128 {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	hi -= uint64(x>>63)&uint64(y) + uint64(y>>63)&uint64(x) // the operands are signed
	return t.Add(Int128{int64(hi), lo})
}

// Round returns t·2^scale as the nearest float32, ties to even: with gradual underflow, overflow to
// an infinity, and +0 for zero.
func (t Int128) Round(scale int) float32 {
	sign := uint32(0)
	if t.Hi < 0 {
		sign, t = 1<<31, t.Neg()
	}
	unit := max(t.len()-24+scale, -149) // exponent of the result's last bit
	m := t.shiftRounded(unit - scale)   // at most 2²⁴
	switch {
	case m == 0:
		return 0
	case unit > 127-23:
		return math.Float32frombits(sign | 0x7f800000)
	}
	// A full significand's leading bit, or a carry, adds one to the exponent field.
	return math.Float32frombits(sign | min(uint32(unit+149)<<23+m, 0x7f800000))
}

// len returns the bits of a t ≥ 0.
func (t Int128) len() int {
	if t.Hi != 0 {
		return 64 + bits.Len64(uint64(t.Hi))
	}
	return bits.Len64(t.Lo)
}

// shiftRounded returns RNE(t·2^−n) for 0 ≤ t. The result is below 2³².
func (t Int128) shiftRounded(n int) uint32 {
	hi, lo := uint64(t.Hi), t.Lo
	if n <= 0 {
		return uint32(lo << -n)
	}
	if n > 127 {
		return 0 // t < 2¹²⁷ is at most half, and half goes to the even 0
	}
	var whole, half, low uint64 // half is the bit below whole, low those below that
	if s := n - 1; s < 64 {
		x := lo>>s | hi<<1<<(63-s) // t >> (n-1)
		whole, half, low = x>>1, x&1, lo&(1<<s-1)
	} else {
		x := hi >> (s - 64)
		whole, half, low = x>>1, x&1, hi&(1<<(s-64)-1)|lo
	}
	if half == 1 && (low != 0 || whole&1 == 1) {
		whole++
	}
	return uint32(whole)
}
