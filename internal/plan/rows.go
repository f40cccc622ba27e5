// Looking at a sparse matrix by rows: ranges of them, and how far they share columns.

package plan

import (
	"fmt"
	"math"
	"slices"

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

// pattern returns the row pointers and column indices of a.
func pattern(a formats.Sparse) (ptr []int64, idx []int32) {
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		return a.RowPtr, a.ColIdx
	case *formats.CSR[half.BF16]:
		return a.RowPtr, a.ColIdx
	case *formats.CSR[float32]:
		return a.RowPtr, a.ColIdx
	}
	panic(fmt.Sprintf("plan: %T is not a CSR matrix", a))
}

// distinct returns how many of a's entries are the first of their column among nearby rows. A core
// that works on those rows fetches a row of B for these, and finds it again for the others. It is
// estimated from groups of rows all over the matrix.
func distinct(a formats.Sparse) int64 {
	const (
		nearby = 128
		enough = 1 << 18 // entries to look at
	)
	ptr, idx := pattern(a)
	rows := len(ptr) - 1
	step := max(1, len(idx)/enough)
	var cols []int32
	var all, first int
	for g := 0; g*nearby < rows; g += step {
		lo, hi := ptr[g*nearby], ptr[min((g+1)*nearby, rows)]
		cols = append(cols[:0], idx[lo:min(hi, lo+enough)]...)
		slices.Sort(cols)
		all += len(cols)
		first += len(slices.Compact(cols))
	}
	if all == 0 {
		return a.NNZ()
	}
	return int64(math.Ceil(float64(first) / float64(all) * float64(a.NNZ())))
}

// sample returns groups of a's rows from all over it with enough entries to tell how formats pack it;
// a itself if it has no more than that.
func sample(a formats.Sparse) formats.Sparse {
	const (
		group  = 256
		enough = 1 << 17
	)
	rows, _ := a.Dims()
	step := int(a.NNZ() / enough)
	if step < 2 || rows <= group {
		return a
	}
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		return everyGroup(a, group, step)
	case *formats.CSR[half.BF16]:
		return everyGroup(a, group, step)
	case *formats.CSR[float32]:
		return everyGroup(a, group, step)
	}
	panic(fmt.Sprintf("plan: %T is not a CSR matrix", a))
}

// everyGroup returns every step-th group of rows.
func everyGroup[T formats.Value](a *formats.CSR[T], group, step int) *formats.CSR[T] {
	out := &formats.CSR[T]{Cols: a.Cols, RowPtr: []int64{0}}
	for lo := 0; lo < a.Rows; lo += group * step {
		part := cutRows(a, lo, min(lo+group, a.Rows))
		start := int64(len(out.Val))
		for _, p := range part.RowPtr[1:] {
			out.RowPtr = append(out.RowPtr, start+p)
		}
		out.Rows += part.Rows
		out.ColIdx, out.Val = append(out.ColIdx, part.ColIdx...), append(out.Val, part.Val...)
	}
	return out
}
