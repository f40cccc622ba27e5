// Sums before they are rounded: products of which several processes have some of the columns each.

package rfx

import (
	"math"

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

// Narrow tells whether 64 bits hold every Sum of a row with so many entries: products are at most p.Max()² each, and
// their sums must stay below 2⁶² in magnitude.
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

// Slice is some rows' entries in some of the columns, quantised by the ranges of the whole rows.
type Slice[T formats.Value] struct {
	a    *formats.CSR[T]
	rows []Range
	p    P
	q    []int64
}

// NewSlice quantises entries; rows are the ranges of the rows that they are part of.
func NewSlice[T formats.Value](a *formats.CSR[T], rows []Range, p P) *Slice[T] {
	s := &Slice[T]{a: a, rows: rows, p: p, q: make([]int64, len(a.Val))}
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			begin, end := a.RowPtr[i], a.RowPtr[i+1]
			quantiseInto(s.q[begin:end], a.Val[begin:end], func(int) int { return p.L(rows[i].E()) })
		}
	})
	return s
}

// quantiseInto quantises elements in units of 2^unit(i); what is not finite becomes 0.
func quantiseInto[T formats.Value](q []int64, v []T, unit func(i int) int) {
	var buf [256]float32
	for at := 0; at < len(v); at += len(buf) {
		x := buf[:min(len(v)-at, len(buf))]
		formats.ConvertSlice(x, v[at:at+len(x)])
		for i, x := range x {
			q[at+i] = 0
			if IsFinite(x) {
				q[at+i] = Quantise(x, unit(at+i))
			}
		}
	}
}

// Multiply writes the sums of the slice's products with b, row-major, len(cols) of them for each row. b has the rows
// that the slice's columns number, row-major; cols are the ranges of the columns that they are part of. qb is scratch
// of as many numbers as b has elements.
func (s *Slice[T]) Multiply(sums []Sum, b *formats.Dense[T], cols []Range, qb []int64) {
	n := len(cols)
	par.Range(b.Rows, 1+(1<<14)/max(1, n), func(lo, hi int) {
		for k := lo; k < hi; k++ {
			quantiseInto(qb[k*n:(k+1)*n], b.Line(k), func(j int) int { return s.p.L(cols[j].E()) })
		}
	})
	wild := false
	for _, r := range cols {
		wild = wild || r.NonFinite()
	}
	par.Rows(s.a.RowPtr, 1+(1<<16)/max(1, n), func(lo, hi int) {
		acc := make([]int64, n)
		for i := lo; i < hi; i++ {
			row := sums[i*n : (i+1)*n]
			s.multiplyRow(row, qb, acc, i)
			if wild || s.rows[i].NonFinite() {
				s.classify(row, b, cols, i)
			}
		}
	})
}

// multiplyRow computes row i's sums. Products below 2⁴⁶ are added up by 2¹⁵ in 64 bits.
func (s *Slice[T]) multiplyRow(row []Sum, qb, acc []int64, i int) {
	n := len(row)
	clear(row)
	begin, end := s.a.RowPtr[i], s.a.RowPtr[i+1]
	if s.p > P23 {
		for e := begin; e < end; e++ {
			x := s.q[e]
			for j, y := range qb[int(s.a.ColIdx[e])*n:][:n] {
				row[j] = Sum(Int128(row[j]).AddProduct(x, y))
			}
		}
		return
	}
	for ; begin < end; begin += 1 << 15 {
		clear(acc)
		for e := begin; e < min(end, begin+1<<15); e++ {
			x, line := s.q[e], qb[int(s.a.ColIdx[e])*n:][:n]
			for j, y := range line {
				acc[j] += x * y
			}
		}
		for j, x := range acc {
			row[j] = Sum(Int128(row[j]).Add(Int(x)))
		}
	}
}

// classify replaces those of row i's sums that have a product which is not finite.
func (s *Slice[T]) classify(row []Sum, b *formats.Dense[T], cols []Range, i int) {
	begin, end := s.a.RowPtr[i], s.a.RowPtr[i+1]
	x, y := make([]float32, end-begin), make([]float32, 1)
	formats.ConvertSlice(x, s.a.Val[begin:end])
	for j := range row {
		if !cols[j].NonFinite() && !s.rows[i].NonFinite() {
			continue
		}
		var c Class
		for e, k := range s.a.ColIdx[begin:end] {
			formats.ConvertSlice(y, b.Line(int(k))[j:j+1])
			c |= ProductClass(x[e], y[0])
		}
		if c != Finite {
			row[j] = ofClass(c)
		}
	}
}

// RoundSums calls f with every output, given what its sum is: at(i, j) for row i and column j. Several goroutines call f
// and at, each for rows of its own.
func RoundSums(rows, cols []Range, p P, at func(i, j int) Sum, f func(i, j int, y float32)) {
	par.Range(len(rows), 1+(1<<12)/max(1, len(cols)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range cols {
				f(i, j, at(i, j).Round(p.L(rows[i].E())+p.L(cols[j].E())))
			}
		}
	})
}
