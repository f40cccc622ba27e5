// Making matrices that obey a pattern.

package nm

import (
	"math"
	"math/bits"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Prune returns the entries of a that magnitude pruning to a pattern keeps (§2.1): in each group the N units with the
// largest sums of absolute values; of equal units the first. A NaN counts as larger than anything. a must be valid.
func Prune[T formats.Value](a *formats.CSR[T], p Pattern) (*formats.CSR[T], error) {
	s, err := p.Shape(a.Rows, a.Cols)
	if err != nil {
		return nil, err
	}
	parts := make([]part[T], s.Panels)
	out := &formats.CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: make([]int64, a.Rows+1)}
	par.Range(s.Panels, grain(s.Columns*p.V), func(lo, hi int) {
		at := &panel{Pattern: p}
		for i := lo; i < hi; i++ {
			parts[i] = prune(a, at, i, s.Groups, out.RowPtr)
		}
	})
	for i := range a.Rows {
		out.RowPtr[i+1] += out.RowPtr[i]
	}
	nnz := out.RowPtr[a.Rows]
	out.ColIdx, out.Val = make([]int32, nnz), make([]T, nnz)
	par.Range(s.Panels, grain(s.Columns*p.V), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := out.RowPtr[i*p.V]
			copy(out.ColIdx[to:], parts[i].cols)
			copy(out.Val[to:], parts[i].vals)
		}
	})
	return out, nil
}

// PruneDense is Prune for a dense matrix. Its zeros are no entries.
func PruneDense[T formats.Value](d *formats.Dense[T], p Pattern) (*formats.CSR[T], error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return Prune(d.ToCSR(), p)
}

// part is the kept entries of a panel, row after row.
type part[T formats.Value] struct {
	cols []int32
	vals []T
}

// prune keeps panel number i's share, and counts it in ptr, each row one place on.
func prune[T formats.Value](a *formats.CSR[T], at *panel, i, groups int, ptr []int64) part[T] {
	kept := make([]uint64, groups)
	start(at, a, i)
	for g := range groups {
		step(at, a, g)
		kept[g] = largest(a, at, g)
	}
	var out part[T]
	width := at.M * at.W
	for r := range at.rows {
		row := at.first + r
		for e := a.RowPtr[row]; e < a.RowPtr[row+1]; e++ {
			col := int(a.ColIdx[e])
			if kept[col/width]>>at.unit(col%width)&1 != 0 {
				out.cols, out.vals = append(out.cols, a.ColIdx[e]), append(out.vals, a.Val[e])
				ptr[row+1]++
			}
		}
	}
	return out
}

// largest returns the N units of group g of the largest magnitude.
func largest[T formats.Value](a *formats.CSR[T], at *panel, g int) uint64 {
	if bits.OnesCount64(at.units) <= at.N {
		return at.units
	}
	var sum [MaxM]float64
	for r := range at.rows {
		for e := at.lo[r]; e < at.hi[r]; e++ {
			x := math.Abs(number.Float64(a.Val[e]))
			if x != x {
				x = math.Inf(1)
			}
			sum[at.unit(int(a.ColIdx[e])-g*at.M*at.W)] += x
		}
	}
	left, kept := at.units, uint64(0)
	for range at.N {
		best := bits.TrailingZeros64(left)
		for u := left; u != 0; u &= u - 1 {
			if i := bits.TrailingZeros64(u); sum[i] > sum[best] {
				best = i
			}
		}
		kept |= 1 << best
		left &^= 1 << best
	}
	return kept
}
