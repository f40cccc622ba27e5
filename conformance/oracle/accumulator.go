// An exact accumulator of products.

package oracle

import (
	"math"
	"math/bits"
)

// Accumulator is the exact sum of products of finite float64 numbers: a fixed-point number that spans every such
// product, and 2⁶² of them. The zero value is 0.
//
// As long as a float64 holds the sum exactly, which is looked at in each addition, it is one. From then on it is
// digits, base 2³² and signed; each addition touches three, and carries wait until a result is read or a digit could
// overflow. Sums of products of float32 numbers (and so of f16 and bf16 ones), 2⁻²⁹⁸ to 2²⁵⁶, have fewer digits than
// others.
type Accumulator struct {
	sum    float64
	digits *digits // nil as long as sum is exact
}

type digits struct {
	of      []int64
	lowest  int // the exponent of digit 0's unit
	pending int // additions since the last carry
}

// Digits of sums of products of float32 numbers, and of float64 ones: 640 and 4384 bits.
const (
	limbs, lowest         = 20, -298
	limbsWide, lowestWide = 137, -2148
	maxAdds               = 1 << 29
)

// AddProduct adds x·y, both finite.
func (a *Accumulator) AddProduct(x, y float64) {
	narrow := float64(float32(x)) == x && float64(float32(y)) == y
	if a.digits == nil {
		t := x * y // of float32 numbers exact: 48 bits, far from the ends of float64's range, as all sums of them are
		if narrow || math.FMA(x, y, -t) == 0 && (t == 0 && (x == 0 || y == 0) || math.Abs(t) > 0x1p-900 &&
			math.Abs(t) < 0x1p900) {
			s := a.sum + t
			part := s - a.sum
			if lost := (a.sum - (s - part)) + (t - part); lost == 0 { // what rounding took (Knuth's TwoSum)
				a.sum = s
				return
			}
		}
		a.spill(narrow)
	}
	if !narrow {
		a.digits.widen()
	}
	mx, ex := split(x)
	my, ey := split(y)
	at := ex + ey - a.digits.lowest
	if narrow {
		a.digits.add(mx*my, at)
		return
	}
	const low = 1<<27 - 1 // both in halves, so that products have at most 54 bits
	a.digits.add((mx&low)*(my&low), at)
	a.digits.add((mx&low)*(my>>27), at+27)
	a.digits.add((mx>>27)*(my&low), at+27)
	a.digits.add((mx>>27)*(my>>27), at+54)
}

// split returns x = m·2^e, m an integer below 2⁵³ in magnitude, and below 2²⁴ if a float32 is x. x is finite.
func split(x float64) (m int64, e int) {
	if f := float32(x); float64(f) == x {
		b := math.Float32bits(f)
		m, e = int64(b&0x7fffff), int(b>>23&0xff)
		if e == 0 {
			e = 1
		} else {
			m |= 1 << 23
		}
		e -= 150
	} else {
		b := math.Float64bits(x)
		m, e = int64(b&(1<<52-1)), int(b>>52&0x7ff)
		if e == 0 {
			e = 1
		} else {
			m |= 1 << 52
		}
		e -= 1075
	}
	if x < 0 {
		m = -m
	}
	return m, e
}

// spill turns the sum into digits; narrow tells whether all products so far are of float32 numbers.
func (a *Accumulator) spill(narrow bool) {
	a.digits = &digits{of: make([]int64, limbs), lowest: lowest}
	if !narrow {
		a.digits = &digits{of: make([]int64, limbsWide), lowest: lowestWide}
	}
	m, e := split(a.sum)
	if at := e - a.digits.lowest; at >= 0 && at+53 < 32*(len(a.digits.of)-2) {
		a.digits.add(m, at)
		return
	} else if at < 0 && at > -53 && m&(1<<-at-1) == 0 { // a multiple of 2^lowest: what goes is zeros
		a.digits.add(m>>-at, 0)
		return
	}
	a.digits.widen() // earlier products were not
	a.digits.add(m, e-a.digits.lowest)
}

// widen gives the sum the digits that products of float64 numbers need.
func (d *digits) widen() {
	if d.lowest == lowestWide {
		return
	}
	old := *d
	*d = digits{of: make([]int64, limbsWide), lowest: lowestWide}
	old.carry()
	for i, x := range old.of {
		d.add(x, 32*i+old.lowest-lowestWide)
	}
}

// add adds p·2^(at+lowest).
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
	for i := range len(d.of) - 1 {
		d.of[i+1] += d.of[i] >> 32
		d.of[i] &= 0xffffffff
	}
	d.pending = 0
}

// magnitude returns the sign and the absolute value's digits, each below 2³².
func (a *digits) magnitude() (neg bool, d []uint32) {
	a.carry()
	d = make([]uint32, len(a.of))
	neg = a.of[len(a.of)-1] < 0
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
	top := len(d) - 1
	for top >= 0 && d[top] == 0 {
		top--
	}
	if top < 0 {
		return false, 0, 0
	}
	length := top*32 + bits.Len32(d[top])
	drop := max(length-precision, least-a.lowest, 0)
	m = field(d, drop, precision)
	if drop > 0 && bit(d, drop-1) == 1 && (m&1 == 1 || anyBelow(d, drop-1)) {
		m++ // may reach 2^precision, which scales the same
	}
	return neg, m, drop + a.lowest
}

// field returns n (≤ 53) bits from bit at.
func field(d []uint32, at, n int) uint64 {
	var m uint64
	for i := range n {
		m |= bit(d, at+i) << i
	}
	return m
}

func bit(d []uint32, at int) uint64 {
	if at>>5 >= len(d) {
		return 0
	}
	return uint64(d[at>>5] >> (at & 31) & 1)
}

func anyBelow(d []uint32, at int) bool {
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

// Float64 returns the sum correctly rounded, to nearest even; overflow is an infinity.
func (a *Accumulator) Float64() float64 {
	if a.digits == nil {
		return a.sum
	}
	neg, m, e := a.digits.round(53, -1074)
	x := math.Ldexp(float64(m), e) // exact, or an infinity: e ≥ -1074
	if neg {
		return -x
	}
	return x
}
