// A sparse matrix as gonum's functions read it.

package gonum

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/number"
)

// Matrix is a sparse matrix as a mat.Matrix. It reads the CSR that it was made of, which must stay valid.
type Matrix[T formats.Value] struct{ a *formats.CSR[T] }

var (
	_ mat.Matrix         = Matrix[float32]{}
	_ mat.NonZeroDoer    = Matrix[float32]{}
	_ mat.RowNonZeroDoer = Matrix[float32]{}
	_ mat.Matrix         = Transposed[float32]{}
	_ mat.Untransposer   = Transposed[float32]{}
	_ mat.NonZeroDoer    = Transposed[float32]{}
	_ mat.ColNonZeroDoer = Transposed[float32]{}
)

// View returns a, which must be valid (see Validate), as a matrix that gonum's functions read. It shares a's arrays.
// Most of gonum calls At for every element, which looks for it in its row; DoNonZero is the way through the entries.
func View[T formats.Value](a *formats.CSR[T]) Matrix[T] { return Matrix[T]{a} }

// Dims returns the matrix's numbers of rows and columns.
func (m Matrix[T]) Dims() (rows, cols int) { return m.a.Rows, m.a.Cols }

// At returns element (i, j), 0 where there is no entry, in time logarithmic in the entries of the row. It panics
// outside the matrix, as gonum's matrices do.
func (m Matrix[T]) At(i, j int) float64 {
	if uint(i) >= uint(m.a.Rows) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(m.a.Cols) {
		panic(mat.ErrColAccess)
	}
	lo := m.a.RowPtr[i]
	p, ok := slices.BinarySearch(m.a.ColIdx[lo:m.a.RowPtr[i+1]], int32(j))
	if !ok {
		return 0
	}
	return number.Float64(m.a.Val[lo+int64(p)])
}

// T returns the transpose, which reads the same arrays.
func (m Matrix[T]) T() mat.Matrix { return Transposed[T]{m} }

// DoNonZero calls fn for each entry that is not 0, row by row.
func (m Matrix[T]) DoNonZero(fn func(i, j int, v float64)) {
	for i := range m.a.Rows {
		m.DoRowNonZero(i, fn)
	}
}

// DoRowNonZero calls fn for each entry of row i that is not 0, in ascending columns.
func (m Matrix[T]) DoRowNonZero(i int, fn func(i, j int, v float64)) {
	if uint(i) >= uint(m.a.Rows) {
		panic(mat.ErrRowAccess)
	}
	for p := m.a.RowPtr[i]; p < m.a.RowPtr[i+1]; p++ {
		if v := number.Float64(m.a.Val[p]); v != 0 {
			fn(i, int(m.a.ColIdx[p]), v)
		}
	}
}

// Transposed is the transpose of a Matrix.
type Transposed[T formats.Value] struct{ m Matrix[T] }

// Dims returns the transpose's size.
func (t Transposed[T]) Dims() (rows, cols int) { return t.m.a.Cols, t.m.a.Rows }

// At returns element (i, j), as Matrix.At does.
func (t Transposed[T]) At(i, j int) float64 {
	if uint(i) >= uint(t.m.a.Cols) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(t.m.a.Rows) {
		panic(mat.ErrColAccess)
	}
	return t.m.At(j, i)
}

// T returns the matrix that this is the transpose of.
func (t Transposed[T]) T() mat.Matrix { return t.m }

// Untranspose returns the matrix that this is the transpose of.
func (t Transposed[T]) Untranspose() mat.Matrix { return t.m }

// DoNonZero calls fn for each entry that is not 0, column by column.
func (t Transposed[T]) DoNonZero(fn func(i, j int, v float64)) {
	for j := range t.m.a.Rows {
		t.DoColNonZero(j, fn)
	}
}

// DoColNonZero calls fn for each entry of column j that is not 0, in ascending rows.
func (t Transposed[T]) DoColNonZero(j int, fn func(i, j int, v float64)) {
	if uint(j) >= uint(t.m.a.Rows) {
		panic(mat.ErrColAccess)
	}
	t.m.DoRowNonZero(j, func(i, j int, v float64) { fn(j, i, v) })
}
