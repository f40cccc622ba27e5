// Package entries visits the entries of an encoded matrix in CSR's order, to decode it and to give it other values.
package entries

import (
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// Of are the entries of a matrix that is encoded in panels. All entries of a row are in one panel.
type Of[T formats.Value] struct {
	Rows, Cols    int
	Panels, Grain int // a core takes Grain panels at a time
	// Panel calls f with each entry of a panel: its row, its column and its value. Columns ascend within each row.
	Panel func(p int, f func(row, col int, v *T))
	// Count counts the entries of each row of a panel in n. Nil means by Panel, where that takes no longer.
	Count func(p int, n []int64)
}

// CSR returns the matrix of the entries.
func (e Of[T]) CSR() *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: e.Rows, Cols: e.Cols, RowPtr: e.rowPtr()}
	nnz := a.RowPtr[e.Rows]
	a.ColIdx, a.Val = make([]int32, nnz), make([]T, nnz)
	e.each(a.RowPtr, func(i int64, col int, v *T) { a.ColIdx[i], a.Val[i] = int32(col), *v })
	return a
}

// Set gives the entries other values, in the order of CSR.
func (e Of[T]) Set(values []T) {
	e.each(e.rowPtr(), func(i int64, _ int, v *T) { *v = values[i] })
}

// rowPtr counts the entries.
func (e Of[T]) rowPtr() []int64 {
	ptr := make([]int64, e.Rows+1)
	count := e.Count
	if count == nil {
		count = func(p int, ptr []int64) { e.Panel(p, func(row, _ int, _ *T) { ptr[row]++ }) }
	}
	par.Each(e.Panels, e.Grain, func(p int) { count(p, ptr) })
	rowptr.Starts(ptr)
	return ptr
}

// each calls f with each entry: its number in the order of CSR, its column and its value. It uses all cores.
func (e Of[T]) each(ptr []int64, f func(i int64, col int, v *T)) {
	next := slices.Clone(ptr)
	par.Each(e.Panels, e.Grain, func(p int) {
		e.Panel(p, func(row, col int, v *T) {
			f(next[row], col, v)
			next[row]++
		})
	})
}
