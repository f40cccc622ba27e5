// From the arrays back to CSR.

package jigsaw

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: m.Rows, Cols: m.Cols, RowPtr: m.rowPtr()}
	nnz := a.RowPtr[m.Rows]
	a.ColIdx, a.Val = make([]int32, nnz), make([]T, nnz)
	m.eachEntry(a.RowPtr, func(i int64, s int, e entry) {
		a.ColIdx[i], a.Val[i] = int32(m.columns(s)[e.pos]), m.Values[e.slot]
	})
	return a
}

// WithoutValues returns the matrix without its values, which is not valid: it serves WithValues alone. It shares all other
// arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded {
	out := *m
	out.Values = nil
	return &out
}

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := *m
	out.Values = make([]T, m.Steps()*StepSlots)
	m.eachEntry(m.rowPtr(), func(i int64, _ int, e entry) { out.Values[e.slot] = values[i] })
	return &out
}

// rowPtr returns the row pointers of the decoded matrix.
func (m *Matrix[T]) rowPtr() []int64 {
	ptr := make([]int64, m.Rows+1)
	par.Each(m.Strips(), 1, func(s int) {
		for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
			m.entries(int(n), func(r, _, _ int) { ptr[s*StripRows+r+1]++ })
		}
	})
	for i := range m.Rows {
		ptr[i+1] += ptr[i]
	}
	return ptr
}

// eachEntry calls f for each stored entry: its number in the decoded matrix, its strip and where it is in that. It uses
// all cores.
func (m *Matrix[T]) eachEntry(ptr []int64, f func(i int64, s int, e entry)) {
	par.Each(m.Strips(), 1, func(s int) {
		for r, row := range m.rows(s) {
			at := ptr[min(s*StripRows+r, m.Rows)]
			for i, e := range row {
				f(at+int64(i), s, e)
			}
		}
	})
}

// entry is a stored entry: the position of its column and its place in Values.
type entry struct {
	pos  uint32
	slot int
}

// rows returns the entries of each row of strip s by ascending position.
func (m *Matrix[T]) rows(s int) (rows [StripRows][]entry) {
	for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
		m.entries(int(n), func(r, k, i int) {
			rows[r] = append(rows[r], entry{m.BlockColIdx[int(n)*StepCols+k], i})
		})
	}
	for _, row := range rows {
		slices.SortFunc(row, func(x, y entry) int { return cmp.Compare(x.pos, y.pos) })
	}
	return rows
}

// entries calls f for each stored entry of step n: its row in the strip, its column in the step and its
// place in Values.
func (m *Matrix[T]) entries(n int, f func(r, k, i int)) {
	for w, word := range m.Mask[n*maskWords:][:maskWords] {
		for ; word != 0; word &= word - 1 {
			i := 32*w + bits.TrailingZeros32(word)
			x := slotAt(i)
			f(x.r, m.column(n, x), n*StepSlots+i)
		}
	}
}
