// Sums before they are rounded, where several processes each have some of A's columns.

package rfx

import (
	"math"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Sum is the exact sum of some of the products of a row and a column, or the class of one that is not finite. A row
// has at most 2³¹ entries there: no sum reaches 2¹²⁶ in magnitude, and −2¹²⁷ to −2¹²⁷+3 stand for the classes.
type Sum Int128

// ofClass returns the Sum of a class other than Finite.
func ofClass(c Class) Sum { return Sum{math.MinInt64, uint64(c)} }

// Class returns the sum's class.
func (s Sum) Class() Class {
	if s.Hi == math.MinInt64 {
		return Class(s.Lo)
	}
	return Finite
}

// Add returns the sum of both's products. It does not depend on the order in which sums are added.
func (s Sum) Add(t Sum) Sum {
	if c := s.Class() | t.Class(); c != Finite {
		return ofClass(c)
	}
	return Sum(Int128(s).Add(Int128(t)))
}

// Round returns the output: the sum in units of 2^scale, rounded once.
func (s Sum) Round(scale int) float32 {
	if c := s.Class(); c != Finite {
		return c.Value()
	}
	return Int128(s).Round(scale)
}

// Narrow tells whether 64 bits hold every Sum of a row with nnz entries: products are at most p.Max()² each, and their
// sums must stay below 2⁶² in magnitude.
func (p P) Narrow(entries int64) bool {
	if p > P23 {
		return false
	}
	return entries <= (1<<62-1)/(p.Max()*p.Max())
}

// Pack64 returns a Sum that 64 bits hold, as P.Narrow tells, in these.
func (s Sum) Pack64() int64 {
	if c := s.Class(); c != Finite {
		return math.MinInt64 + int64(c)
	}
	return int64(s.Lo)
}

// Unpack64 returns the Sum that Pack64 packed.
func Unpack64(x int64) Sum {
	if x < math.MinInt64+4 {
		return ofClass(Class(x - math.MinInt64))
	}
	return Sum(Int(x))
}

// Classify gives those of the sums of some rows' entries their class that have a product which is not finite:
// row-major, len(cols) of them for each of a's rows. b has the rows that a's columns number, row-major; rows and cols
// are the ranges of the rows and columns that a and b have a part of.
func Classify[T formats.Value](sums []Sum, a *formats.CSR[T], rows []Range, b *formats.Dense[T], cols []Range) {
	n, wild := len(cols), slices.ContainsFunc(cols, Range.NonFinite)
	par.Rows(a.RowPtr, 1+(1<<16)/max(1, n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if wild || rows[i].NonFinite() {
				classify(sums[i*n:(i+1)*n], a, rows[i], b, cols, i)
			}
		}
	})
}

// classify is Classify for row i.
func classify[T formats.Value](sums []Sum, a *formats.CSR[T], r Range, b *formats.Dense[T], cols []Range, i int) {
	begin, end := a.RowPtr[i], a.RowPtr[i+1]
	x, y := make([]float32, end-begin), make([]float32, 1)
	formats.ConvertSlice(x, a.Val[begin:end])
	for j := range sums {
		if !cols[j].NonFinite() && !r.NonFinite() {
			continue
		}
		var c Class
		for e, k := range a.ColIdx[begin:end] {
			formats.ConvertSlice(y, b.Line(int(k))[j:j+1])
			c |= ProductClass(x[e], y[0])
		}
		if c != Finite {
			sums[j] = ofClass(c)
		}
	}
}

// RoundSums calls f with every output, given what its sum is: at(i, j) for row i and column j. Several goroutines call
// f and at, each for rows of its own.
func RoundSums(rows, cols []Range, p P, at func(i, j int) Sum, f func(i, j int, y float32)) {
	par.Range(len(rows), 1+(1<<12)/max(1, len(cols)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range cols {
				f(i, j, at(i, j).Round(p.L(rows[i].E())+p.L(cols[j].E())))
			}
		}
	})
}
