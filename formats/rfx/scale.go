// Alpha and beta, and results that are not finite.

package rfx

import "math"

// Class says what kind of number a result is. The class of a sum is the bitwise or of its terms'.
type Class uint8

// The classes.
const (
	Finite Class = 0
	PosInf Class = 1
	NegInf Class = 2
	NaN    Class = PosInf | NegInf
)

// ProductClass returns the class of x·y by its operands: Finite if both are finite (whatever the product
// rounds to), NaN if either is or if zero meets an infinity.
func ProductClass(x, y float32) Class {
	const inf = 0x7f800000
	bx, by := math.Float32bits(x), math.Float32bits(y)
	ax, ay := bx&0x7fffffff, by&0x7fffffff
	switch {
	case ax < inf && ay < inf:
		return Finite
	case ax > inf || ay > inf || ax == 0 || ay == 0:
		return NaN
	case (bx^by)>>31 == 0:
		return PosInf
	}
	return NegInf
}

// Value returns 0, an infinity, or the NaN with the bits 0x7fc00000.
func (c Class) Value() float32 {
	return math.Float32frombits([...]uint32{0, 0x7f800000, 0xff800000, 0x7fc00000}[c])
}

// Scale returns RNE32(alpha·r + beta·c): the exact value, rounded once; zero is +0. Where beta is 0, c
// counts as 0 whatever it holds. Operands that are not finite decide as in a sum of products.
func Scale(alpha, r, beta, c float32) float32 {
	if beta == 0 {
		c = 0
	}
	if class := ProductClass(alpha, r) | ProductClass(beta, c); class != Finite {
		return class.Value()
	}
	p, ep := product(alpha, r)
	q, eq := product(beta, c)
	if ep < eq {
		p, ep, q, eq = q, eq, p, ep
	}
	if p == 0 {
		return Int(q).Round(eq)
	}
	// p·2^ep + q·2^eq, ep ≥ eq, in units of 2^(ep−d). Past 78 bits apart, |q·2^eq| < 2^(ep−30) tells by
	// its sign alone how a tie is broken: no number that could be rounded to lies so near to p·2^ep.
	d := min(ep-eq, 78)
	if d < ep-eq {
		q = sign(q)
	}
	return Int(p).Shl(uint(d)).Add(Int(q)).Round(ep - d)
}

// product returns x·y = m·2^e, |m| < 2⁴⁸.
func product(x, y float32) (m int64, e int) {
	mx, ex := Decompose(x)
	my, ey := Decompose(y)
	return mx * my, ex + ey
}

func sign(x int64) int64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
