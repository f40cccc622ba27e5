// Sums before they are rounded: products of which several processes have some of the columns each.

package rfx

import (
	"math"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/internal/simd"
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
	a      *formats.CSR[T]
	rows   []Range
	p      P
	lo, hi []int32 // digits of entries; hi where cut says so
}

// cut returns the bits of the lower digit of A's integers, and whether B's are cut too: then they have 24 bits. Products of
// digits are at most 2⁴⁶ in magnitude. With 0 bits nothing is cut.
func (p P) cut() (bits int, both bool) {
	switch p {
	case P31:
		return 16, false
	case P47:
		return 24, true
	}
	return 0, false
}

// NewSlice quantises entries; rows are the ranges of the rows that they are part of.
func NewSlice[T formats.Value](a *formats.CSR[T], rows []Range, p P) *Slice[T] {
	bits, _ := p.cut()
	s := &Slice[T]{a: a, rows: rows, p: p, lo: make([]int32, len(a.Val)), hi: digits(nil, len(a.Val), bits > 0)}
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			l := p.L(rows[i].E())
			quantiseInto(s.lo, s.hi, bits, int(a.RowPtr[i]), a.Val[a.RowPtr[i]:a.RowPtr[i+1]], func(int) int { return l })
		}
	})
	return s
}

// digits returns n of them, in memory that is there if it suffices; none unless they are wanted.
func digits(have []int32, n int, wanted bool) []int32 {
	if !wanted {
		return nil
	}
	if cap(have) < n {
		return make([]int32, n)
	}
	return have[:n]
}

// quantiseInto quantises elements in units of 2^unit(i) and writes their digits from at on; what is not finite becomes 0.
func quantiseInto[T formats.Value](lo, hi []int32, bits, at int, v []T, unit func(i int) int) {
	var buf [256]float32
	for from := 0; from < len(v); from += len(buf) {
		x := buf[:min(len(v)-from, len(buf))]
		formats.ConvertSlice(x, v[from:from+len(x)])
		for i, x := range x {
			var q int64
			if IsFinite(x) {
				q = Quantise(x, unit(from+i))
			}
			if hi == nil {
				lo[at+from+i] = int32(q)
				continue
			}
			var d [2]int32
			Digits(d[:], q, bits)
			lo[at+from+i], hi[at+from+i] = d[0], d[1]
		}
	}
}

// Fixed is scratch for Slice.Multiply: a B in fixed point.
type Fixed struct {
	lo, hi []int32
	ld     int
}

// set quantises b by the ranges of its columns.
func (f *Fixed) set(rows, n int, both bool, line func(lo, hi []int32, k, at int)) {
	f.ld = (n + simd.Width - 1) / simd.Width * simd.Width
	f.lo, f.hi = digits(f.lo, rows*f.ld, true), digits(f.hi, rows*f.ld, both)
	par.Range(rows, 1+(1<<14)/max(1, n), func(begin, end int) {
		for k := begin; k < end; k++ {
			line(f.lo, f.hi, k, k*f.ld)
		}
	})
}

// Multiply writes the sums of the slice's products with b, row-major, len(cols) of them for each row. b has the rows
// that the slice's columns number, row-major; cols are the ranges of the columns that they are part of.
func (s *Slice[T]) Multiply(sums []Sum, b *formats.Dense[T], cols []Range, f *Fixed) {
	n := len(cols)
	bits, both := s.p.cut()
	units, wild := make([]int, n), false
	for j, r := range cols {
		units[j], wild = s.p.L(r.E()), wild || r.NonFinite()
	}
	f.set(b.Rows, n, both, func(lo, hi []int32, k, at int) {
		quantiseInto(lo, hi, bits, at, b.Line(k), func(j int) int { return units[j] })
	})
	par.Rows(s.a.RowPtr, 1+(1<<16)/max(1, n), func(lo, hi int) {
		acc := newAccumulators(f.ld)
		for i := lo; i < hi; i++ {
			row := sums[i*n : (i+1)*n]
			s.multiplyRow(row, f, acc, i)
			if wild || s.rows[i].NonFinite() {
				s.classify(row, b, cols, i)
			}
		}
	})
}

// accumulators are those of one row: sums[d] has the products of digits whose places add up to d.
type accumulators struct {
	sums [3][]int64
	tmp  []int64
}

func newAccumulators(n int) *accumulators {
	all := make([]int64, 4*n)
	return &accumulators{[3][]int64{all[:n], all[n : 2*n], all[2*n : 3*n]}, all[3*n:]}
}

// add adds products of digits of some entries and of the rows of B that they meet to sum d.
func (acc *accumulators) add(d int, digits []int32, cols []uint32, b []int32, ld int) {
	simd.RowInt32(acc.tmp, digits, cols, b, ld)
	sum := acc.sums[d]
	for j, x := range acc.tmp {
		sum[j] += x
	}
}

// most is how many entries the accumulators hold: one adds up at most two products of each.
const most = 1 << 15

// multiplyRow computes row i's sums.
func (s *Slice[T]) multiplyRow(row []Sum, f *Fixed, acc *accumulators, i int) {
	clear(row)
	bits, both := s.p.cut()
	last := s.a.RowPtr[i+1]
	for begin := s.a.RowPtr[i]; begin < last; begin += most {
		end := min(last, begin+most)
		for d := range acc.sums {
			clear(acc.sums[d])
		}
		cols, lo := unsigned(s.a.ColIdx[begin:end]), s.lo[begin:end]
		acc.add(0, lo, cols, f.lo, f.ld)
		if bits > 0 {
			acc.add(1, s.hi[begin:end], cols, f.lo, f.ld)
		}
		if both {
			acc.add(1, lo, cols, f.hi, f.ld)
			acc.add(2, s.hi[begin:end], cols, f.hi, f.ld)
		}
		for j := range row {
			t := Int(acc.sums[0][j])
			if bits > 0 {
				t = Combine([]int64{acc.sums[0][j], acc.sums[1][j], acc.sums[2][j]}, bits)
			}
			row[j] = Sum(Int128(row[j]).Add(t))
		}
	}
}

// unsigned returns numbers that are not negative as package simd takes them, in the same memory.
func unsigned(x []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
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
