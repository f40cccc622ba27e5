// From lane streams back to CSR.

package lanestream

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Decode returns exactly the matrix that was encoded. The arrays must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] { return m.entries().CSR() }

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// all other arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded {
	out := *m
	out.Values = nil
	return &out
}

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := *m
	out.Values = make([]T, m.Slots()+len(m.RemainderCol))
	out.entries().Set(values)
	return &out
}

// entries collects the matrix's entries by row.
func (m *Matrix[T]) entries() entries.Of[T] {
	groups := make([][GroupRows][]placed, m.Groups())
	par.Each(len(groups), 1, func(g int) { m.rows(g, &groups[g]) })
	return entries.Of[T]{
		Rows: m.Rows, Cols: m.Cols, Panels: m.Rows, Grain: 256,
		Panel: func(i int, f func(row, col int, v *T)) {
			for _, e := range groups[i/GroupRows][i%GroupRows] {
				f(i, int(e.col), &m.Values[e.at])
			}
		},
		Count: func(i int, n []int64) { n[i] = int64(len(groups[i/GroupRows][i%GroupRows])) },
	}
}

// placed is an entry's column, and its place in Values.
type placed struct {
	col int32
	at  int
}

// rows collects the entries of group g's rows.
func (m *Matrix[T]) rows(g int, out *[GroupRows][]placed) {
	m.each(g, func(r, col, at int) { out[r] = append(out[r], placed{int32(col), at}) })
	for r := range min(GroupRows, m.Rows-g*GroupRows) {
		cols, _ := m.Remainder(g*GroupRows + r)
		n := len(out[r])
		for k, c := range cols {
			out[r] = append(out[r], placed{int32(c), m.Slots() + int(m.RemainderPtr[g*GroupRows+r]) + k})
		}
		merge(out[r], n)
	}
}

// merge sorts entries, which are two sorted runs. The second run begins at n.
func merge(entries []placed, n int) {
	second := slices.Clone(entries[n:])
	i, k := n-1, len(second)-1
	for to := len(entries) - 1; k >= 0; to-- {
		if i >= 0 && entries[i].col > second[k].col {
			entries[to] = entries[i]
			i--
		} else {
			entries[to] = second[k]
			k--
		}
	}
}

// Remainder returns the entries of row i that are in the COO remainder: their columns, ascending, and their values.
func (m *Matrix[T]) Remainder(i int) (cols []uint32, vals []T) {
	begin, end := int(m.RemainderPtr[i]), int(m.RemainderPtr[i+1])
	return m.RemainderCol[begin:end], m.Values[m.Slots():][begin:end]
}

// Each calls f with each entry of group g that is in a stream, not in the COO remainder: its row in the group, its
// column and its value. Columns ascend within each row.
func (m *Matrix[T]) Each(g int, f func(r, col int, v T)) {
	m.each(g, func(r, col, at int) { f(r, col, m.Values[at]) })
}

// each is Each with the index in Values in place of the value.
func (m *Matrix[T]) each(g int, f func(r, col, at int)) {
	if m.Layout == Pairs {
		m.eachPair(g, f)
		return
	}
	for q := range m.Splits {
		s := m.stream(g, q)
		var next [Chains]int // place of each chain's next value
		for c := range next {
			next[c] = Chains*int(m.StreamPtr[g*m.Splits+q]) + c
		}
		for n := range s.count * m.SegmentSteps {
			for w := range chainWords {
				for rows := range 8 {
					col := (s.first*m.SegmentSteps + n) * StepCols
					m.eachOfWord(s.mask[n*stepWords(Places)+w:], rows, next[8*rows:][:8], func(r, c, at int) { f(r, col+16*w+c, at) })
				}
			}
		}
	}
}

// eachOfWord visits one word of the eight chains that have rows g, g + 8, g + 16 and so on, in the order of columns.
func (m *Matrix[T]) eachOfWord(mask []uint32, g int, next []int, f func(r, col, at int)) {
	var places [GroupRows / 8][16]int
	var has [GroupRows / 8]uint16
	for c := range next {
		for x := gather(mask[(8*g+c)/2*chainWords] >> (c % 2)); x != 0; x &= x - 1 {
			at := next[c]
			next[c] += Chains
			if m.isStored(at) {
				r, col := Place(8*g+c, 0, bits.TrailingZeros32(x))
				places[r/8][col] = at
				has[r/8] |= 1 << col
			}
		}
	}
	for r, x := range has {
		for ; x != 0; x &= x - 1 {
			col := bits.TrailingZeros16(x)
			f(8*r+g, col, places[r][col])
		}
	}
}

// checkRows checks that the entries of group g are within the matrix, and that none is stored twice.
func (m *Matrix[T]) checkRows(g int) error {
	var rows [GroupRows][]placed
	m.rows(g, &rows)
	for r, entries := range rows {
		i, last := g*GroupRows+r, int32(-1)
		if len(entries) > 0 && i >= m.Rows {
			return fmt.Errorf("lanestream: group %d has an entry in row %d: the matrix has %d", g, i, m.Rows)
		}
		for _, e := range entries {
			if e.col <= last {
				return fmt.Errorf("lanestream: row %d has an entry in column %d among the values and in the COO remainder", i, e.col)
			}
			last = e.col
		}
		if int(last) >= m.Cols {
			return fmt.Errorf("lanestream: row %d has an entry in column %d: the matrix has %d", i, last, m.Cols)
		}
	}
	return nil
}
