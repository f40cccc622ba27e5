// Transposes of sparse matrices.

package formats

import (
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// Transpose returns the transpose of a matrix in any format: of a *Dense as a *Dense, else in CSR. The transposes of a
// *CSC and of a *Dense share its arrays. A *CSR is transposed by CSR.Transpose; any other matrix is decoded first. The
// arrays must be valid.
func Transpose(a Encoded) Encoded {
	if c, ok := a.(interface{ transposed() Encoded }); ok {
		return c.transposed()
	}
	return Dispatch(a.Sparse(), transposed[half.F16], transposed[half.BF16], transposed[float32], transposed[float64])
}

func transposed[T Value](a *CSR[T]) Encoded { return a.Transpose() }

// Transpose returns aᵀ. It uses all cores and takes time linear in entries, rows and columns. Besides the result it
// needs 4 bytes for each column and core, or for each column if columns have few entries.
func (a *CSR[T]) Transpose() *CSR[T] {
	out := &CSR[T]{
		Rows: a.Cols, Cols: a.Rows,
		RowPtr: make([]int64, a.Cols+1),
		ColIdx: make([]int32, len(a.Val)),
		Val:    make([]T, len(a.Val)),
	}
	// Each part of the rows counts its entries in each column. A column has one of a row at most.
	cuts := par.Cuts(a.RowPtr, par.Parts(len(a.Val), max(grain, 2*a.Cols)))
	parts := len(cuts) - 1
	next := make([][]uint32, parts)
	par.Each(parts, 1, func(i int) {
		next[i] = make([]uint32, a.Cols)
		for _, c := range a.ColIdx[a.RowPtr[cuts[i]]:a.RowPtr[cuts[i+1]]] {
			next[i][c]++
		}
	})
	// A part's entries in a column lie behind those of the parts before it.
	par.Range(a.Cols, grain, func(lo, hi int) {
		for c := lo; c < hi; c++ {
			sum := uint32(0)
			for _, n := range next {
				n[c], sum = sum, sum+n[c]
			}
			out.RowPtr[c] = int64(sum)
		}
	})
	rowptr.Starts(out.RowPtr)
	par.Each(parts, 1, func(i int) {
		for r := cuts[i]; r < cuts[i+1]; r++ {
			for p := a.RowPtr[r]; p < a.RowPtr[r+1]; p++ {
				c := a.ColIdx[p]
				q := out.RowPtr[c] + int64(next[i][c])
				next[i][c]++
				out.ColIdx[q], out.Val[q] = int32(r), a.Val[p]
			}
		}
	})
	return out
}
