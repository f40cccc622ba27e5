// The definition: precisions, quantising, the product of a row and a column.

package rfx

import (
	"fmt"
	"math"
	"math/bits"
)

// P is a precision: the bits that the largest element of a row or column keeps, sign included at p = 15.
type P int

// The precisions.
const (
	P15 P = 15
	P23 P = 23
	P31 P = 31
	P47 P = 47
)

// All lists the precisions, ascending.
var All = [...]P{P15, P23, P31, P47}

// Check refuses what is not a precision.
func (p P) Check() error {
	for _, q := range All {
		if p == q {
			return nil
		}
	}
	return fmt.Errorf("reproducible precision %d: 15, 23, 31 and 47 are possible", int(p))
}

// Bytes returns (p+1)/8, the balanced base-256 digits of a quantised element.
func (p P) Bytes() int { return (int(p) + 1) / 8 }

// Max returns the largest magnitude of a quantised element: 2039·2^(p−11).
func (p P) Max() int64 { return 2039 << (p - 11) }

// L returns the exponent of the unit that a row or column with this E is quantised to.
func (p P) L(e int) int { return e - int(p-1) }

// Decompose returns x = m·2^e with |m| < 2²⁴, for a finite x.
func Decompose(x float32) (m int64, e int) {
	b := math.Float32bits(x)
	m, e = int64(b&0x7fffff), int(b>>23&0xff)
	if e == 0 {
		e = 1 // zero, or subnormal
	} else {
		m |= 1 << 23
	}
	if b>>31 != 0 {
		m = -m
	}
	return m, e - 150
}

// IsFinite reports whether x is neither infinite nor NaN.
func IsFinite(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }

// E returns the least e with |x| ≤ (2039/1024)·2^e, for a finite x other than zero. It grows with |x|:
// the E of a row or column is the largest of its elements'.
func E(x float32) int {
	m, e := Decompose(x)
	if m < 0 {
		m = -m
	}
	n := bits.Len64(uint64(m))
	e += n - 1 // |x| = (m/2^(n-1))·2^e, the first factor in [1, 2)
	if m<<(24-n) > 2039<<13 {
		e++
	}
	return e
}

// Quantise returns RNE(x·2^−l), for a finite x. With the l of a row or column that x is in, the result
// is at most P.Max in magnitude.
func Quantise(x float32, l int) int64 {
	m, e := Decompose(x)
	shift := l - e
	if shift <= 0 {
		return m << -shift
	}
	if shift > 25 {
		return 0 // below half a unit
	}
	q := m >> shift // rounded down
	rest, half := m-q<<shift, int64(1)<<(shift-1)
	if rest > half || rest == half && q&1 == 1 {
		q++
	}
	return q
}

// Dot is the definition of an output: the product of a row of A, given its stored entries a and the
// elements b of a column of B that they meet, with the ranges of the whole row and the whole column.
func Dot(p P, row, col Range, a, b []float32) float32 {
	la, lb := p.L(row.E()), p.L(col.E())
	var sum Int128
	var class Class
	for k, x := range a {
		y := b[k]
		if c := ProductClass(x, y); c != Finite {
			class |= c
			continue
		}
		sum = sum.AddProduct(Quantise(x, la), Quantise(y, lb))
	}
	if class != Finite {
		return class.Value()
	}
	return sum.Round(la + lb)
}
