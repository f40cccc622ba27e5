// Dense matrices: access, equality, layout and element type.

package formats

import (
	"fmt"

	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// NewDense returns a zero row-major matrix without padding.
func NewDense[T Value](rows, cols int) *Dense[T] {
	return &Dense[T]{Rows: rows, Cols: cols, LD: cols, Data: make([]T, rows*cols)}
}

// At returns element (i, j).
func (d *Dense[T]) At(i, j int) T { return d.Data[d.index(i, j)] }

// Set sets element (i, j).
func (d *Dense[T]) Set(i, j int, v T) { d.Data[d.index(i, j)] = v }

func (d *Dense[T]) index(i, j int) int {
	if uint(i) >= uint(d.Rows) || uint(j) >= uint(d.Cols) {
		panic(fmt.Sprintf("formats: element (%d, %d) of a %d×%d matrix", i, j, d.Rows, d.Cols))
	}
	if d.ColMajor {
		return j*d.LD + i
	}
	return i*d.LD + j
}

// Line returns a view of the i-th contiguous line: row i, or column i if d is column-major.
func (d *Dense[T]) Line(i int) []T {
	_, width := d.lines()
	if width == 0 {
		return nil
	}
	return d.Data[i*d.LD : i*d.LD+width : i*d.LD+width]
}

// lines returns the number of contiguous lines (rows, or columns if column-major) and their length.
func (d *Dense[T]) lines() (n, width int) {
	if d.ColMajor {
		return d.Cols, d.Rows
	}
	return d.Rows, d.Cols
}

// Equal reports whether d and b have the same size and the same bits in every element, whatever their
// layouts; padding does not count.
func (d *Dense[T]) Equal(b *Dense[T]) bool {
	if d.Rows != b.Rows || d.Cols != b.Cols {
		return false
	}
	if d.ColMajor != b.ColMajor {
		b = b.Layout(d.ColMajor, 0)
	}
	n, _ := d.lines()
	for i := range n {
		if !sameBits(d.Line(i), b.Line(i)) {
			return false
		}
	}
	return true
}

// Layout returns a copy of d in row- or column-major order with leading dimension ld, or the least
// possible one if that is larger. Padding is zero.
func (d *Dense[T]) Layout(colMajor bool, ld int) *Dense[T] {
	out := &Dense[T]{Rows: d.Rows, Cols: d.Cols, ColMajor: colMajor}
	n, width := out.lines()
	out.LD = max(ld, width)
	out.Data = make([]T, n*out.LD)
	if d.ColMajor == colMajor {
		for i := range n {
			copy(out.Line(i), d.Line(i))
		}
		return out
	}
	par.Range(n, grain/max(1, width), func(lo, hi int) { transposeLines(out, d, lo, hi) })
	return out
}

// transposeLines fills lines lo to hi of out, element p of line i being element i of d's line p, in
// square tiles so that both sides stay in cache.
func transposeLines[T Value](out, d *Dense[T], lo, hi int) {
	const tile = 32
	_, width := out.lines()
	for i0 := lo; i0 < hi; i0 += tile {
		i1 := min(hi, i0+tile)
		for p0 := 0; p0 < width; p0 += tile {
			p1 := min(width, p0+tile)
			for i := i0; i < i1; i++ {
				line := out.Data[i*out.LD:]
				for p := p0; p < p1; p++ {
					line[p] = d.Data[p*d.LD+i]
				}
			}
		}
	}
}

// ConvertDense returns d with elements of type D, in the same order without padding, rounded to
// nearest, ties to even.
func ConvertDense[D, S Value](d *Dense[S]) *Dense[D] {
	out := &Dense[D]{Rows: d.Rows, Cols: d.Cols, ColMajor: d.ColMajor}
	n, width := out.lines()
	out.LD = width
	out.Data = make([]D, n*width)
	par.Range(n, grain/max(1, width), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			ConvertSlice(out.Line(i), d.Line(i))
		}
	})
	return out
}

// ToCSR returns the entries of d that are not 0 as a sparse matrix. A NaN is not 0.
func (d *Dense[T]) ToCSR() *CSR[T] {
	a := &CSR[T]{Rows: d.Rows, Cols: d.Cols, RowPtr: make([]int64, d.Rows+1)}
	if d.ColMajor {
		d = d.Layout(false, 0)
	}
	nonzero := func(v T) bool { return number.Float64(v) != 0 }
	par.Range(d.Rows, grain/max(1, d.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for _, v := range d.Line(i) {
				if nonzero(v) {
					a.RowPtr[i]++
				}
			}
		}
	})
	rowptr.Starts(a.RowPtr)
	a.ColIdx, a.Val = make([]int32, a.RowPtr[d.Rows]), make([]T, a.RowPtr[d.Rows])
	par.Range(d.Rows, grain/max(1, d.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := a.RowPtr[i]
			for j, v := range d.Line(i) {
				if nonzero(v) {
					a.ColIdx[at], a.Val[at] = int32(j), v
					at++
				}
			}
		}
	})
	return a
}
