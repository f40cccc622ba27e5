// Numbers: decimal text to integers, to float32 and to float64.

package text

import (
	"bytes"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// Int reads a decimal integer at the start of b and returns its length, 0 if there is none that int64
// holds.
func Int(b []byte) (v int64, n int) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		n++
	}
	start := n
	for n < len(b) {
		d := b[n] - '0'
		if d > 9 {
			break
		}
		v = v*10 + int64(d)
		n++
	}
	if n == start || n-start > 18 {
		return 0, 0
	}
	if b[0] == '-' {
		v = -v
	}
	return v, n
}

// decimal is the number mant·10^exp, with a sign; cut if mant lacks digits other than 0.
type decimal struct {
	mant     uint64
	exp      int
	neg, cut bool
	integer  bool // written without point and exponent
}

// Float32 reads a decimal number at the start of b, rounds it to float64 and that to float32 (both to
// nearest, ties to even: what a program that reads doubles and converts them gets), and returns its
// length, 0 if there is none. integer tells that it has neither a point nor an exponent. Exponents are
// marked by e or, as Fortran does, d. A number too large gives an infinity.
func Float32(b []byte) (x float32, n int, integer bool) {
	d, n := parseDecimal(b)
	if n == 0 {
		return 0, 0, false
	}
	x, ok := d.float32()
	if !ok {
		x = slowFloat32(b[:n])
	}
	if d.neg {
		x = -x
	}
	return x, n, d.integer
}

// maxDigits is how many decimal digits always fit a uint64.
const maxDigits = 19

func parseDecimal(b []byte) (d decimal, n int) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		d.neg = b[0] == '-'
		n++
	}
	digits, any, point := 0, false, false // digits of mant that count, any digit at all
	for ; n < len(b); n++ {
		c := b[n] - '0'
		if c > 9 {
			if b[n] != '.' || point {
				break
			}
			point = true
			continue
		}
		any = true
		switch {
		case digits < maxDigits:
			d.mant = d.mant*10 + uint64(c)
			if d.mant != 0 {
				digits++
			}
			if point {
				d.exp--
			}
		default:
			d.cut = d.cut || c != 0
			if !point {
				d.exp++
			}
		}
	}
	if !any {
		return d, 0
	}
	d.integer = !point
	if n < len(b) && (b[n]|0x20 == 'e' || b[n]|0x20 == 'd') {
		e, length := exponent(b[n+1:])
		if length == 0 {
			return d, 0
		}
		d.integer = false
		d.exp += e
		n += 1 + length
	}
	return d, n
}

// exponent reads a signed integer, held within ±10⁶, and returns its length, 0 if there is none.
func exponent(b []byte) (e, n int) {
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		n++
	}
	start := n
	for ; n < len(b) && b[n]-'0' <= 9; n++ {
		e = min(1e6, e*10+int(b[n]-'0'))
	}
	if n == start {
		return 0, 0
	}
	if neg {
		e = -e
	}
	return e, n
}

// float32 returns |d| rounded to float32, or false if that takes more precision than it works with:
// outside the range of normal numbers, or so near the midpoint of two float32 that the float64 nearest
// to d may be that midpoint (elsewhere, rounding to float64 first changes nothing).
//
// The product of two 64-bit significands, mant and a power of ten rounded down, is at most a few units
// of its 64th bit too small, and the rounding to 24 bits is decided by the 40 bits below.
func (d decimal) float32() (float32, bool) {
	switch {
	case d.mant == 0:
		return 0, !d.cut
	case d.exp == 0 && !d.cut:
		return float32(float64(d.mant)), true
	case d.exp < minPower || d.exp > maxPower:
		return 0, false
	}
	p := powers[d.exp-minPower]
	shift := bits.LeadingZeros64(d.mant)
	hi, lo := bits.Mul64(d.mant<<shift, p.mant)
	exp := p.exp + 64 - shift
	if hi>>63 == 0 {
		hi, exp = hi<<1|lo>>63, exp-1
	}
	// A cut mant has 19 digits, so that shift ≤ 4 and the digits it lacks are worth less than 2⁵
	// units here; the power's error is worth less than 4. Half a unit of a float64 is 2¹⁰.
	const near, midpoint = 1<<10 + 64, 1 << 39
	mant, rest := uint32(hi>>40), hi&(1<<40-1)
	if rest-(midpoint-near) <= 2*near {
		return 0, false
	}
	if rest > midpoint {
		mant++ // to 2²⁴ perhaps, which the sum below carries into the exponent
	}
	biased := exp + 40 + 23 + 127
	if biased < 1 || biased > 253 {
		return 0, false
	}
	return math.Float32frombits(uint32(biased-1)<<23 + mant), true
}

// powers holds 10^minPower to 10^maxPower as mant·2^exp rounded down, mant's top bit set. Beyond them,
// a mant of up to 19 digits gives no normal float32.
var powers = powersOfTen()

const minPower, maxPower = -57, 38

type power struct {
	mant uint64
	exp  int
}

func powersOfTen() (table [maxPower - minPower + 1]power) {
	for i := range table {
		e := i + minPower
		n := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(e, -e))), nil)
		shift := 64 - n.BitLen()
		if e < 0 { // 2^s/n, with s such that the quotient has 64 bits
			shift = 63 + n.BitLen()
			n.Quo(new(big.Int).Lsh(big.NewInt(1), uint(shift)), n)
		} else if shift >= 0 {
			n.Lsh(n, uint(shift))
		} else {
			n.Rsh(n, uint(-shift))
		}
		table[i] = power{n.Uint64(), -shift}
	}
	return table
}

// Float is a type that Decimal reads.
type Float interface{ float32 | float64 }

// Decimal is Float32 or Float64.
func Decimal[V Float](b []byte) (x V, n int, integer bool) {
	switch p := any(&x).(type) {
	case *float32:
		*p, n, integer = Float32(b)
	case *float64:
		*p, n, integer = Float64(b)
	}
	return x, n, integer
}

// Float64 is Float32 without the last rounding.
func Float64(b []byte) (x float64, n int, integer bool) {
	d, n := parseDecimal(b)
	if n == 0 {
		return 0, 0, false
	}
	const exact = 22 // powers of ten up to this one are float64, so that one operation rounds once
	switch {
	case d.cut || d.mant >= 1<<53 || d.exp < -exact || d.exp > exact:
		x = slow(b[:n])
	case d.exp < 0:
		x = float64(d.mant) / math.Pow10(-d.exp)
	default:
		x = float64(d.mant) * math.Pow10(d.exp)
	}
	if d.neg {
		x = -x
	}
	return x, n, d.integer
}

// slowFloat32 is slow, rounded.
func slowFloat32(tok []byte) float32 { return float32(slow(tok)) }

// slow returns the absolute value of a token that parseDecimal accepts.
func slow(tok []byte) float64 {
	tok = bytes.TrimLeft(bytes.ToLower(tok), "+-")
	x, _ := strconv.ParseFloat(string(bytes.Replace(tok, []byte("d"), []byte("e"), 1)), 64) // out of range: infinite
	return x
}
