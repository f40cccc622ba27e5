// What must be known of a row or column before it is quantised, and which precision loses nothing.

package rfx

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Range tells of a set of elements, such as a row or column: E of the largest finite one, the exponent
// of the lowest bit set in any finite one, and whether there is one that is not finite. It is packed
// into a word as kernels have it,
//
//	bits 0–9 E + 512, 10–19 512 − lowest exponent, 20 there is an element that is not finite
//
// where bits 0–19 are 0 if no finite element differs from zero. So the range of two sets together has
// the greater of each field. The zero Range is that of no elements. Where ranges are stored, the bit Mark is the
// owner's: it means nothing here, and no method but those of integers keeps it.
type Range uint32

// Mark is a bit that no range has.
const Mark Range = 1 << 31

const (
	rangeBias   = 512
	rangeMask   = 1<<10 - 1
	lowestShift = 10
	wild        = 1 << 20
)

// RangeOf returns the range of one element.
func RangeOf(x float32) Range {
	if !IsFinite(x) {
		return wild
	}
	m, e := Decompose(x)
	if m == 0 {
		return 0
	}
	lowest := e + bits.TrailingZeros64(uint64(m))
	return RangeFrom(x, lowest)
}

// RangeFrom returns the range of finite elements: largest is their largest magnitude, not 0, and lowest the exponent of
// the lowest bit that is set in any.
func RangeFrom(largest float32, lowest int) Range {
	return Range(E(largest)+rangeBias) | Range(rangeBias-lowest)<<lowestShift
}

// RangeTo is RangeFrom without the lowest bit, which nothing but Lossless and Auto depends on.
func RangeTo(largest float32) Range { return Range(E(largest) + rangeBias) }

// Join returns the range of both sets of elements together.
func (r Range) Join(s Range) Range {
	const lowest = rangeMask << lowestShift
	return max(r&rangeMask, s&rangeMask) | max(r&lowest, s&lowest) | (r|s)&wild
}

// Zero reports whether no finite element differs from zero.
func (r Range) Zero() bool { return r&rangeMask == 0 }

// NonFinite reports whether some element is infinite or NaN.
func (r Range) NonFinite() bool { return r&wild != 0 }

// E returns the E of the finite elements, 0 if all are zero.
func (r Range) E() int {
	if r.Zero() {
		return 0
	}
	return int(r&rangeMask) - rangeBias
}

// Lossless reports whether quantising with p loses no bit of any finite element.
func (r Range) Lossless(p P) bool {
	return r.Zero() || p.L(r.E()) <= rangeBias-int(r>>lowestShift&rangeMask)
}

// Auto returns the least precision that loses nothing of any of the sets, and true; or, if none is
// enough, the largest and false. It depends on the elements alone. Where it is lossless, finite outputs
// of these rows and columns are the correctly rounded exact dot products.
func Auto(sets ...[]Range) (p P, lossless bool) {
	for _, p = range All {
		if lossless = all(p, sets); lossless {
			break
		}
	}
	return p, lossless
}

func all(p P, sets [][]Range) bool {
	for _, set := range sets {
		for _, r := range set {
			if !r.Lossless(p) {
				return false
			}
		}
	}
	return true
}

// Rows returns the range of each row's stored entries.
func Rows[T formats.Value](a *formats.CSR[T]) []Range {
	rs := make([]Range, a.Rows)
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) {
		var buf [256]float32
		for i := lo; i < hi; i++ {
			var r Range
			for v := a.Val[a.RowPtr[i]:a.RowPtr[i+1]]; len(v) > 0; {
				x := buf[:min(len(v), len(buf))]
				formats.ConvertSlice(x, v[:len(x)])
				v = v[len(x):]
				for _, x := range x {
					r = r.Join(RangeOf(x))
				}
			}
			rs[i] = r
		}
	})
	return rs
}

// Cols returns the range of each column of b.
func Cols[T formats.Value](b *formats.Dense[T]) []Range {
	rs := make([]Range, b.Cols)
	par.Range(b.Cols, 1+(1<<14)/max(1, b.Rows), func(lo, hi int) {
		var buf [1]float32
		for k := range b.Rows {
			for j := lo; j < hi; j++ {
				x := [1]T{b.At(k, j)}
				formats.ConvertSlice(buf[:], x[:])
				rs[j] = rs[j].Join(RangeOf(buf[0]))
			}
		}
	})
	return rs
}

// RowsToZero returns how many finite entries of a other than 0 are 0 when quantised with p, given the ranges of a's
// rows.
func RowsToZero[T formats.Value](a *formats.CSR[T], rows []Range, p P) int64 {
	var total atomic.Int64
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) {
		var buf [256]float32
		n := int64(0)
		for i := lo; i < hi; i++ {
			for v := a.Val[a.RowPtr[i]:a.RowPtr[i+1]]; len(v) > 0; {
				x := buf[:min(len(v), len(buf))]
				formats.ConvertSlice(x, v[:len(x)])
				v = v[len(x):]
				for _, x := range x {
					n += p.toZero(x, rows[i])
				}
			}
		}
		total.Add(n)
	})
	return total.Load()
}

// ColsToZero is RowsToZero for the columns of b.
func ColsToZero[T formats.Value](b *formats.Dense[T], cols []Range, p P) int64 {
	var total atomic.Int64
	par.Range(b.Cols, 1+(1<<14)/max(1, b.Rows), func(lo, hi int) {
		var buf [1]float32
		n := int64(0)
		for k := range b.Rows {
			for j := lo; j < hi; j++ {
				x := [1]T{b.At(k, j)}
				formats.ConvertSlice(buf[:], x[:])
				n += p.toZero(buf[0], cols[j])
			}
		}
		total.Add(n)
	})
	return total.Load()
}

// toZero returns 1 if a finite x other than 0 is 0 when quantised among elements of range r, else 0. Half a unit goes
// to the even 0.
func (p P) toZero(x float32, r Range) int64 {
	if x != 0 && math.Abs(float64(x)) <= math.Ldexp(1, p.L(r.E())-1) {
		return 1
	}
	return 0
}
