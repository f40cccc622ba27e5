// Sparse matrices whose element type is known at run time only.

package formats

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// Sparse is a *CSR[T] whose element type T is known at run time only. No other type implements it, except by embedding
// a *CSR[T]. Convert returns it with a static element type, and Dispatch calls a generic function on it.
type Sparse interface {
	Encoded // in format "csr"
	// Pattern returns the row pointers (rows+1) and the column indices (nnz), which must not be changed.
	Pattern() (rowPtr []int64, colIdx []int32)
	// RowRange returns rows lo to hi-1 as a matrix of their own, which shares the column indices and values.
	RowRange(lo, hi int) Sparse
	// Clone returns a copy that shares no memory.
	Clone() Sparse

	sealed()
}

func (a *CSR[T]) sealed() {}

// Dispatch calls the function for a's element type and returns its result. The functions are usually one
// generic function: Dispatch(a, f[half.F16], f[half.BF16], f[float32], f[float64]).
func Dispatch[R any](a Sparse, f16 func(*CSR[half.F16]) R, bf16 func(*CSR[half.BF16]) R, f32 func(*CSR[float32]) R,
	f64 func(*CSR[float64]) R) R {
	if a != nil {
		a = a.Sparse() // a type that embeds a *CSR has its methods
	}
	switch a := a.(type) {
	case *CSR[half.F16]:
		return f16(a)
	case *CSR[half.BF16]:
		return bf16(a)
	case *CSR[float32]:
		return f32(a)
	case *CSR[float64]:
		return f64(a)
	}
	panic(fmt.Sprintf("formats: no matrix: %v", a)) // nil: Sparse is sealed
}

const csrName = "csr"

// Format returns "csr".
func (a *CSR[T]) Format() string { return csrName }

// Dims returns the matrix's numbers of rows and columns.
func (a *CSR[T]) Dims() (rows, cols int) { return a.Rows, a.Cols }

// NNZ returns the number of stored entries.
func (a *CSR[T]) NNZ() int64 { return int64(len(a.Val)) }

// Type returns the element type.
func (a *CSR[T]) Type() dtype.Type { return TypeOf[T]() }

// Sparse returns a itself.
func (a *CSR[T]) Sparse() Sparse { return a }

// Fields names the arrays: "rowptr", "colidx" and "values".
func (a *CSR[T]) Fields() Fields {
	return Fields{
		Version: 1, Rows: &a.Rows, Cols: &a.Cols,
		Arrays: []Field{NewField("rowptr", &a.RowPtr), NewField("colidx", &a.ColIdx), NewField("values", &a.Val)},
	}
}

// PanelRows returns 1: each row fetches its own rows of B.
func (a *CSR[T]) PanelRows() int { return 1 }

// PanelCols appends the columns of row p to dst.
func (a *CSR[T]) PanelCols(dst []uint32, p int) []uint32 {
	for _, c := range a.ColIdx[a.RowPtr[p]:a.RowPtr[p+1]] {
		dst = append(dst, uint32(c))
	}
	return dst
}

// Pattern returns RowPtr and ColIdx.
func (a *CSR[T]) Pattern() (rowPtr []int64, colIdx []int32) { return a.RowPtr, a.ColIdx }

// RowRange returns rows lo to hi-1 as a *CSR[T], which shares a's column indices and values.
func (a *CSR[T]) RowRange(lo, hi int) Sparse { return a.Range(lo, hi) }

// Range is RowRange with a static element type.
func (a *CSR[T]) Range(lo, hi int) *CSR[T] {
	first, last := a.RowPtr[lo], a.RowPtr[hi]
	ptr := make([]int64, hi-lo+1)
	for i := range ptr {
		ptr[i] = a.RowPtr[lo+i] - first
	}
	return &CSR[T]{Rows: hi - lo, Cols: a.Cols, RowPtr: ptr, ColIdx: a.ColIdx[first:last:last],
		Val: a.Val[first:last:last]}
}

// Clone returns a copy of a, a *CSR[T], that shares no memory with it.
func (a *CSR[T]) Clone() Sparse {
	return &CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: slices.Clone(a.RowPtr), ColIdx: slices.Clone(a.ColIdx),
		Val: slices.Clone(a.Val)}
}
