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
	a := &formats.CSR[T]{Rows: m.Rows, Cols: m.Cols, RowPtr: make([]int64, m.Rows+1)}
	par.Each(m.Strips(), 1, func(s int) {
		for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
			m.entries(int(n), func(r, _, _ int) { a.RowPtr[s*StripRows+r+1]++ })
		}
	})
	for i := range m.Rows {
		a.RowPtr[i+1] += a.RowPtr[i]
	}
	nnz := a.RowPtr[m.Rows]
	a.ColIdx, a.Val = make([]int32, nnz), make([]T, nnz)
	par.Each(m.Strips(), 1, func(s int) {
		for r, row := range m.rows(s) {
			at := a.RowPtr[min(s*StripRows+r, m.Rows)]
			for i, e := range row {
				a.ColIdx[at+int64(i)], a.Val[at+int64(i)] = int32(m.columns(s)[e.pos]), m.Values[e.slot]
			}
		}
	})
	return a
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
