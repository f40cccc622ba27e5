// A range of a sparse matrix's rows.

package plan

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// rowRange returns rows lo to hi as a matrix of their own, which shares a's entries.
func rowRange(a formats.Sparse, lo, hi int) formats.Sparse {
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		return cutRows(a, lo, hi)
	case *formats.CSR[half.BF16]:
		return cutRows(a, lo, hi)
	case *formats.CSR[float32]:
		return cutRows(a, lo, hi)
	}
	panic(fmt.Sprintf("plan: %T is not a CSR matrix", a))
}

func cutRows[T formats.Value](a *formats.CSR[T], lo, hi int) *formats.CSR[T] {
	first, last := a.RowPtr[lo], a.RowPtr[hi]
	ptr := make([]int64, hi-lo+1)
	for i := range ptr {
		ptr[i] = a.RowPtr[lo+i] - first
	}
	return &formats.CSR[T]{Rows: hi - lo, Cols: a.Cols, RowPtr: ptr, ColIdx: a.ColIdx[first:last], Val: a.Val[first:last]}
}
