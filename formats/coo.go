// COO to CSR and back.

package formats

import (
	"fmt"
	"slices"
	"sort"

	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// Duplicates says what happens to several entries with the same row and column.
type Duplicates uint8

const (
	// SumDuplicates adds them in float64 in the order they are listed, and rounds once.
	SumDuplicates Duplicates = iota
	// RefuseDuplicates makes them an error.
	RefuseDuplicates
)

// grain is the number of entries worth a goroutine.
const grain = 1 << 15

// ToCSR returns a as CSR: entries sorted by row and column, duplicates treated as dup says. It takes time linear in
// entries and rows, plus a sort of the rows whose columns do not ascend already. The error names the first entry that
// is out of range, or the place of a refused duplicate.
func (a *COO[T]) ToCSR(dup Duplicates) (*CSR[T], error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	out := &CSR[T]{
		Rows: a.Rows, Cols: a.Cols,
		RowPtr: make([]int64, a.Rows+1),
		ColIdx: make([]int32, len(a.Val)),
		Val:    make([]T, len(a.Val)),
	}
	for _, r := range a.Row {
		out.RowPtr[r]++
	}
	rowptr.Starts(out.RowPtr)
	for p, r := range a.Row {
		q := out.RowPtr[r]
		out.RowPtr[r]++
		out.ColIdx[q], out.Val[q] = a.Col[p], a.Val[p]
	}
	rowptr.Ends(out.RowPtr)
	if err := out.sortRows(dup); err != nil {
		return nil, err
	}
	return out, nil
}

// NewCSR makes a matrix of three arrays, which belong to it afterwards. Unlike in a valid CSR, the columns of a row may
// come in any order and more than once: they are sorted, and duplicates treated as dup says. Errors are those of
// Validate.
func NewCSR[T Value](rows, cols int, ptr []int64, idx []int32, val []T, dup Duplicates) (*CSR[T], error) {
	a := &CSR[T]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx, Val: val}
	if err := a.checkShape(); err != nil {
		return nil, err
	}
	for p, c := range idx {
		if c < 0 || int(c) >= cols {
			return nil, fmt.Errorf("row %d, position %d: column %d is outside the %d columns", a.rowOf(int64(p)), p, c, cols)
		}
	}
	if err := a.sortRows(dup); err != nil {
		return nil, err
	}
	return a, nil
}

// rowOf returns the row of the entry at position p.
func (a *CSR[T]) rowOf(p int64) int {
	return sort.Search(a.Rows, func(i int) bool { return a.RowPtr[i+1] > p })
}

// sortRows makes the columns of every row strictly ascending. Entries of one column keep their order
// and are then summed or refused. Row pointers and column indices are in range.
func (a *CSR[T]) sortRows(dup Duplicates) error {
	par.Rows(a.RowPtr, grain, func(lo, hi int) {
		var keys []uint64
		var vals []T
		for i := lo; i < hi; i++ {
			p, q := a.RowPtr[i], a.RowPtr[i+1]
			keys, vals = sortRow(a.ColIdx[p:q], a.Val[p:q], keys, vals)
		}
	})
	row, first := a.firstDuplicate()
	if row < 0 {
		return nil
	}
	if dup == RefuseDuplicates {
		return fmt.Errorf("row %d, column %d (from 0): more than one entry", row, a.ColIdx[first])
	}
	a.sumFrom(row)
	return nil
}

// sortRow sorts one row by column, stably. keys and vals are scratch space, returned for reuse.
func sortRow[T Value](cols []int32, v []T, keys []uint64, vals []T) ([]uint64, []T) {
	if slices.IsSorted(cols) {
		return keys, vals
	}
	if len(cols) <= 24 {
		insertionSort(cols, v)
		return keys, vals
	}
	keys, vals = slices.Grow(keys[:0], len(cols)), append(vals[:0], v...)
	for p, c := range cols {
		keys = append(keys, uint64(c)<<32|uint64(p))
	}
	slices.Sort(keys)
	for p, k := range keys {
		cols[p], v[p] = int32(k>>32), vals[uint32(k)]
	}
	return keys, vals
}

func insertionSort[T Value](cols []int32, v []T) {
	for i := 1; i < len(cols); i++ {
		c, x, j := cols[i], v[i], i
		for ; j > 0 && cols[j-1] > c; j-- {
			cols[j], v[j] = cols[j-1], v[j-1]
		}
		cols[j], v[j] = c, x
	}
}

// firstDuplicate returns the first row that has two entries in one column, and the position of the
// first of the two; -1 if there is none.
func (a *CSR[T]) firstDuplicate() (row int, pos int64) {
	for i := range a.Rows {
		for p := a.RowPtr[i] + 1; p < a.RowPtr[i+1]; p++ {
			if a.ColIdx[p] == a.ColIdx[p-1] {
				return i, p - 1
			}
		}
	}
	return -1, 0
}

// sumFrom sums duplicates in the sorted rows from row on, closing the gaps in place.
func (a *CSR[T]) sumFrom(row int) {
	out := a.RowPtr[row]
	for i, p := row, out; i < a.Rows; i++ {
		for end := a.RowPtr[i+1]; p < end; out++ {
			c, v := a.ColIdx[p], a.Val[p]
			if p++; p < end && a.ColIdx[p] == c {
				sum := number.Float64(v)
				for ; p < end && a.ColIdx[p] == c; p++ {
					sum += number.Float64(a.Val[p])
				}
				v = fromFloat64[T](sum)
			}
			a.ColIdx[out], a.Val[out] = c, v
		}
		a.RowPtr[i+1] = out
	}
	a.ColIdx, a.Val = a.ColIdx[:out], a.Val[:out]
}

// ToCOO returns a as a list of entries in row order. It shares no memory with a.
func (a *CSR[T]) ToCOO() *COO[T] {
	out := &COO[T]{Rows: a.Rows, Cols: a.Cols, Row: make([]int32, len(a.Val)), Col: slices.Clone(a.ColIdx),
		Val: slices.Clone(a.Val)}
	for i := range a.Rows {
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			out.Row[p] = int32(i)
		}
	}
	return out
}
