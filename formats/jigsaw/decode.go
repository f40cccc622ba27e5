// From the arrays back to CSR.

package jigsaw

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
)

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] { return m.all().CSR() }

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// all other arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded { return m.with(nil) }

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := m.with(make([]T, m.Steps()*StepSlots))
	out.all().Set(values)
	return out
}

// all are the entries of all strips.
func (m *Matrix[T]) all() entries.Of[T] {
	return entries.Of[T]{Rows: m.Rows, Cols: m.Cols, Panels: m.Strips(), Panel: m.strip, Count: m.count}
}

// strip calls f for each stored entry of strip s: its row, its column and its value.
func (m *Matrix[T]) strip(s int, f func(row, col int, v *T)) {
	cols := m.columns(s)
	for r, row := range m.rows(s) {
		for _, e := range row {
			f(s*StripRows+r, int(cols[e.pos]), &m.Values[e.slot])
		}
	}
}

// count counts the entries of each row of strip s, in the order of steps, which needs no sorting.
func (m *Matrix[T]) count(s int, of []int64) {
	for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
		m.entries(int(n), func(r, _, _ int) { of[s*StripRows+r]++ })
	}
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

// with returns the matrix with other slots.
func (m *Matrix[T]) with(values []T) *Matrix[T] {
	out := *m
	out.Values = values
	return &out
}
