// Looking at a sparse matrix by rows: samples of them, and how far they share columns.

package work

import (
	"math"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Distinct returns how many rows of B a multiplication fetches if those that nearby rows of a share are fetched
// once: a core that works on these rows finds them again in its cache. It is estimated from groups of rows all
// over the matrix.
func Distinct(a formats.Encoded) int64 {
	const (
		nearby = 128
		enough = 1 << 17 // columns to look at
		most   = 1 << 18 // of a group
	)
	rows, width := a.Dims()
	panels, group := spec.Ceil(rows, a.PanelRows()), max(1, nearby/a.PanelRows()) // panels of nearby rows
	step := max(1, int(a.NNZ()/enough))
	var cols []uint32
	var all, first int
	seen := make([]uint64, spec.Ceil(width, 64))
	for g := 0; g*group < panels; g += step {
		cols = cols[:0]
		for p := g * group; p < min((g+1)*group, panels) && len(cols) < most; p++ {
			cols = a.PanelCols(cols, p)
		}
		cols = cols[:min(len(cols), most)]
		all += len(cols)
		for _, c := range cols {
			if bit := uint64(1) << (c % 64); seen[c/64]&bit == 0 {
				seen[c/64] |= bit
				first++
			}
		}
		for _, c := range cols {
			seen[c/64] = 0
		}
	}
	if all == 0 {
		return a.NNZ()
	}
	fetched := float64(a.NNZ()) // without sharing: in CSR, once for each entry
	if a.PanelRows() > 1 {
		fetched = float64(all * min(step, spec.Ceil(panels, group)))
	}
	return int64(math.Ceil(float64(first) / float64(all) * fetched))
}

// LargeSample is how many entries tell how formats pack a matrix, SmallSample how many tell it roughly.
const (
	LargeSample = 1 << 17
	SmallSample = 1 << 14
)

// Sample returns groups of a's rows from all over it with about that many entries; a itself if it has fewer than twice
// as many.
func Sample(a formats.Sparse, entries int64) formats.Sparse {
	const group = 256
	rows, _ := a.Dims()
	step := int(a.NNZ() / max(1, entries))
	if step < 2 || rows <= group {
		return a
	}
	return formats.Dispatch(a, everyGroup[half.F16](group, step), everyGroup[half.BF16](group, step),
		everyGroup[float32](group, step), everyGroup[float64](group, step))
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

// Scale extrapolates what was found of a sample to the whole matrix.
func Scale(e *spec.Packed, sampled, all int64) (s formats.Stats, items int64) {
	s, items = e.Stats, e.Items
	if sampled == all || sampled == 0 {
		return s, items
	}
	f := float64(all) / float64(sampled)
	for _, x := range []*int64{&s.StoredBytes, &s.Slots, &s.MACs, &s.Gathers, &s.Sums, &items} {
		*x = int64(float64(*x) * f)
	}
	return s, items
}
