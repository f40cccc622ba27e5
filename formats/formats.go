// Package formats holds matrices: COO and CSR are sparse, Dense is dense. Kernels also multiply by a Dense, as format
// "dense".
//
// The package is pure Go and needs no GPU. Each sparse format that kernels read has a package below this one, such as
// cvse, and so has each file format: mtx, smtx, npy, safetensors.
package formats

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

// Value is an element type that matrices are stored in.
type Value interface {
	half.F16 | half.BF16 | float32 | float64
}

// TypeOf returns the dtype of T.
func TypeOf[T Value]() dtype.Type {
	var t T
	switch any(t).(type) {
	case half.F16:
		return dtype.F16
	case half.BF16:
		return dtype.BF16
	case float64:
		return dtype.F64
	}
	return dtype.F32
}

// CSR is a sparse matrix in compressed sparse rows: the entries of row i are ColIdx and Val at
// RowPtr[i] to RowPtr[i+1], their columns strictly ascending. Entries may be zero: what is stored
// is part of the pattern.
type CSR[T Value] struct {
	Rows, Cols int
	RowPtr     []int64 // Rows+1 offsets, the first 0, the last len(Val)
	ColIdx     []int32 // len(Val) column numbers
	Val        []T
}

// COO is a sparse matrix as a list of entries in any order.
type COO[T Value] struct {
	Rows, Cols int
	Row, Col   []int32
	Val        []T
}

// Dense is a dense matrix. Element (i, j) is Data[i*LD+j], or Data[j*LD+i] if ColMajor; if LD is larger than needed,
// the elements between rows (columns) are padding, which nothing reads or writes.
type Dense[T Value] struct {
	Rows, Cols int
	LD         int // leading dimension: elements from one row (column) to the next
	ColMajor   bool
	Data       []T
}

// Stats describes how well a matrix fits a format.
type Stats struct {
	StoredBytes int64   // bytes of all arrays a kernel reads
	Slots       int64   // value slots stored, padding included
	Fill        float64 // nnz over Slots; 1 when nothing is padded, 0 for an empty matrix
	MACs        int64   // multiply-adds executed for each column of B
	Gathers     int64   // rows of B fetched: one for each stored column index
	Staged      bool    // B is fetched in whole blocks through shared memory: Gathers counts the rows of these
	Longest     int64   // most rows of B that one workgroup fetches one after another; 0: all fetch about as many
	// a workgroup that would fetch more is split, and another launch adds the partial sums; 0: none, or unknown
	Cut int64
	// Sums is the rows of partial sums that kernels write, and that another launch adds up.
	Sums int64
}
