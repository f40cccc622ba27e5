// Dense matrices in the host's memory.

package tensor

import "github.com/spmmrun/spmm/dtype"

// Host is a dense matrix in the host's memory, as bytes: element (i, j) at byte offset
// (i·LD + j)·size, or (j·LD + i)·size if it is column-major.
type Host struct {
	Data     []byte
	LD       int
	ColMajor bool
}

// Dense is a dense matrix in the host's memory whose element type is known at run time only.
type Dense struct {
	Rows, Cols int
	Type       dtype.Type
	Host
}

// Transposed returns the transpose, in the same memory.
func (d Dense) Transposed() Dense {
	d.Rows, d.Cols, d.ColMajor = d.Cols, d.Rows, !d.ColMajor
	return d
}

// ColRange returns columns lo to hi-1, in the same memory.
func (d Dense) ColRange(lo, hi int) Dense {
	at := min(d.Offset(0, lo)*d.Type.Size(), len(d.Data)) // beyond the data if there are no rows
	d.Cols, d.Data = hi-lo, d.Data[at:]
	return d
}

// RowRange returns rows lo to hi-1, in the same memory.
func (d Dense) RowRange(lo, hi int) Dense {
	at := min(d.Offset(lo, 0)*d.Type.Size(), len(d.Data))
	d.Rows, d.Data = hi-lo, d.Data[at:]
	return d
}

// Offset is the place of element (i, j), in elements.
func (h Host) Offset(i, j int) int {
	if h.ColMajor {
		return j*h.LD + i
	}
	return i*h.LD + j
}
