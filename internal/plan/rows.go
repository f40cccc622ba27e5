// Looking at a sparse matrix by rows: samples of them, and how far they share columns.

package plan

import (
	"math"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// distinct returns how many of a's entries are the first of their column among nearby rows. A core
// that works on those rows fetches a row of B for these, and finds it again for the others. It is
// estimated from groups of rows all over the matrix.
func distinct(a formats.Sparse) int64 {
	const (
		nearby = 128
		enough = 1 << 18 // entries to look at
	)
	ptr, idx := a.Pattern()
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
	return formats.Dispatch(a, everyGroup[half.F16](group, step), everyGroup[half.BF16](group, step), everyGroup[float32](group, step))
}

// everyGroup returns a function that returns every step-th group of a matrix's rows.
func everyGroup[T formats.Value](group, step int) func(*formats.CSR[T]) formats.Sparse {
	return func(a *formats.CSR[T]) formats.Sparse {
		out := &formats.CSR[T]{Cols: a.Cols, RowPtr: []int64{0}}
		for lo := 0; lo < a.Rows; lo += group * step {
			part := a.Range(lo, min(lo+group, a.Rows))
			start := int64(len(out.Val))
			for _, p := range part.RowPtr[1:] {
				out.RowPtr = append(out.RowPtr, start+p)
			}
			out.Rows += part.Rows
			out.ColIdx, out.Val = append(out.ColIdx, part.ColIdx...), append(out.Val, part.Val...)
		}
		return out
	}
}
