// An exact accumulator of float32 products.

package oracle

import (
	"math"
	"math/bits"
)

// Accumulator is the exact sum of products of finite float32 numbers (and so of f16 and bf16 ones): a
// fixed-point number that spans every such product, 2⁻²⁹⁸ to 2²⁵⁶ and 2⁶² of them. The zero value is 0.
//
// As long as a float64 holds the sum exactly, which is looked at in each addition, it is one. From then on it is digits,
// base 2³² and signed; each addition touches three, and carries wait until a result is read or a digit could overflow.
type Accumulator struct {
	sum    float64
	digits *digits // nil as long as sum is exact
}

type digits struct {
	of      [limbs]int64
	pending int // additions since the last carry
}

const (
	limbs   = 20   // 640 bits
	lowest  = -298 // the exponent of digit 0's unit
	maxAdds = 1 << 29
)

// split returns x = m·2^e, m an integer below 2²⁴ in magnitude. x is finite.
func split(x float32) (m int64, e int) {
	b := math.Float32bits(x)
	m, e = int64(b&0x7fffff), int(b>>23&0xff)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << 23
	}
	if b>>31 != 0 {
		m = -m
	}
	return m, e - 150
}

// AddProduct adds x·y, both finite.
func (a *Accumulator) AddProduct(x, y float32) {
	if a.digits == nil {
		t := float64(x) * float64(y) // exact: 48 bits, far from the ends of float64's range, as all sums are
		s := a.sum + t
		part := s - a.sum
		if lost := (a.sum - (s - part)) + (t - part); lost == 0 { // what rounding took (Knuth's TwoSum)
			a.sum = s
			return
		}
		a.spill()
	}
	mx, ex := split(x)
	my, ey := split(y)
	a.digits.add(mx*my, ex+ey-lowest)
}

// spill turns the sum into digits.
func (a *Accumulator) spill() {
	a.digits = &digits{}
	frac, e := math.Frexp(a.sum)
	m, at := int64(frac*(1<<53)), e-53-lowest
	if at < 0 { // the sum is a multiple of 2^lowest: what goes is zeros
		m, at = m>>-at, 0
	}
	const low = 1<<24 - 1
	a.digits.add(m&low, at)
	a.digits.add(m>>24, at+24)
}

// add adds p·2^(at+lowest), |p| < 2⁴⁸.
func (d *digits) add(p int64, at int) {
	i, s := at>>5, uint(at&31)
	lo := uint64(p) << s
	d.of[i] += int64(lo & 0xffffffff)
	d.of[i+1] += int64(lo >> 32)
	d.of[i+2] += p >> (64 - s)
	if d.pending++; d.pending == maxAdds {
		d.carry()
	}
}

// carry brings every digit but the last into [0, 2³²); the last keeps the sign.
func (d *digits) carry() {
	for i := range limbs - 1 {
		d.of[i+1] += d.of[i] >> 32
		d.of[i] &= 0xffffffff
	}
	d.pending = 0
}

// magnitude returns the sign and the absolute value's digits, each below 2³².
func (a *digits) magnitude() (neg bool, d [limbs]uint32) {
	a.carry()
	neg = a.of[limbs-1] < 0
	borrow := uint64(0)
	for i, x := range a.of {
		d[i] = uint32(x)
		if neg {
			s := uint64(^d[i]) + pick(i == 0, 1, borrow)
			d[i], borrow = uint32(s), s>>32
		}
	}
	return neg, d
}

func pick(c bool, a, b uint64) uint64 {
	if c {
		return a
	}
	return b
}

// round returns the value with precision bits, to nearest even, as m·2^e with m < 2^precision; least is
// the smallest exponent e may have (gradual underflow).
func (a *digits) round(precision, least int) (neg bool, m uint64, e int) {
	neg, d := a.magnitude()
	top := limbs - 1
	for top >= 0 && d[top] == 0 {
		top--
	}
	if top < 0 {
		return false, 0, 0
	}
	length := top*32 + bits.Len32(d[top])
	drop := max(length-precision, least-lowest, 0)
	m = field(&d, drop, precision)
	if drop > 0 && bit(&d, drop-1) == 1 && (m&1 == 1 || anyBelow(&d, drop-1)) {
		m++ // may reach 2^precision, which scales the same
	}
	return neg, m, drop + lowest
}

// field returns n (≤ 53) bits from bit at.
func field(d *[limbs]uint32, at, n int) uint64 {
	var m uint64
	for i := range n {
		m |= bit(d, at+i) << i
	}
	return m
}

func bit(d *[limbs]uint32, at int) uint64 {
	if at>>5 >= limbs {
		return 0
	}
	return uint64(d[at>>5] >> (at & 31) & 1)
}

func anyBelow(d *[limbs]uint32, at int) bool {
	for i := range at >> 5 {
		if d[i] != 0 {
			return true
		}
	}
	return d[at>>5]&(1<<(at&31)-1) != 0
}

// Float32 returns the sum correctly rounded, to nearest even; zero is +0, overflow an infinity.
func (a *Accumulator) Float32() float32 {
	if a.digits == nil {
		return float32(a.sum)
	}
	neg, m, e := a.digits.round(24, -149)
	x := math.Ldexp(float64(m), e) // exact: m ≤ 2²⁴, e ≥ -149
	if x > math.MaxFloat32 {
		x = math.Inf(1)
	}
	if neg {
		x = -x
	}
	return float32(x)
}

// Float64 returns the sum rounded to 53 bits.
func (a *Accumulator) Float64() float64 {
	if a.digits == nil {
		return a.sum
	}
	neg, m, e := a.digits.round(53, lowest)
	x := math.Ldexp(float64(m), e)
	if neg {
		return -x
	}
	return x
}
