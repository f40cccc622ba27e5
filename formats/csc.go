// Compressed sparse columns: how files and other programs may hold a matrix.

package formats

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
)

// CSC is a sparse matrix in compressed sparse columns: the entries of column j are RowIdx and Val at ColPtr[j] to
// ColPtr[j+1], their rows strictly ascending. These are the arrays of its transpose in CSR. Kernels read rows, so a CSC
// only holds a matrix that is stored by columns: Sparse makes a CSR of it, and its transpose needs no work.
type CSC[T Value] struct {
	Rows, Cols int
	ColPtr     []int64 // Cols+1 offsets, the first 0, the last len(Val)
	RowIdx     []int32 // len(Val) row numbers
	Val        []T
}

// ByColumns reports whether a matrix is a *CSC of some type.
func ByColumns(a Encoded) bool { return a.Format() == cscName }

const cscName = "csc"

// Format returns "csc".
func (a *CSC[T]) Format() string { return cscName }

// Dims returns the matrix's numbers of rows and columns.
func (a *CSC[T]) Dims() (rows, cols int) { return a.Rows, a.Cols }

// NNZ returns the number of stored entries.
func (a *CSC[T]) NNZ() int64 { return int64(len(a.Val)) }

// Type returns the element type.
func (a *CSC[T]) Type() dtype.Type { return TypeOf[T]() }

// Transpose returns aᵀ as CSR, sharing a's arrays.
func (a *CSC[T]) Transpose() *CSR[T] {
	return &CSR[T]{Rows: a.Cols, Cols: a.Rows, RowPtr: a.ColPtr, ColIdx: a.RowIdx, Val: a.Val}
}

func (a *CSC[T]) transposed() Encoded { return a.Transpose() }

// CSR returns a in CSR: the transpose of its transpose.
func (a *CSC[T]) CSR() *CSR[T] { return a.Transpose().Transpose() }

// Sparse returns the result of CSR.
func (a *CSC[T]) Sparse() Sparse { return a.CSR() }

// Validate reports the first thing wrong with a. The error calls columns rows, because it is that of the transpose in
// CSR.
func (a *CSC[T]) Validate() error {
	if err := a.Transpose().Validate(); err != nil {
		return fmt.Errorf("transposed, as csc is stored: %w", err)
	}
	return nil
}

// Fields names the arrays: "colptr", "rowidx" and "values".
func (a *CSC[T]) Fields() Fields {
	return Fields{
		Version: 1, Rows: &a.Rows, Cols: &a.Cols,
		Arrays: []Field{NewField("colptr", &a.ColPtr), NewField("rowidx", &a.RowIdx), NewField("values", &a.Val)},
	}
}

// PanelRows returns the number of rows, at least 1: all rows are one panel.
func (a *CSC[T]) PanelRows() int { return max(1, a.Rows) }

// PanelCols appends the columns that have entries to dst.
func (a *CSC[T]) PanelCols(dst []uint32, _ int) []uint32 {
	for j := range a.Cols {
		if a.ColPtr[j] < a.ColPtr[j+1] {
			dst = append(dst, uint32(j))
		}
	}
	return dst
}
