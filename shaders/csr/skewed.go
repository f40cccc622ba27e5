// The variant for large matrices with many entries in long rows and most rows short: skewed.cu.

package csr

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	skewedLeast  = 3 << 10 // segments of a matrix, at least: several times as many as run at the same time
	skewedRows   = 1 << 17 // rows of a matrix, at least: a warp computes 32 of them
	skewedMean   = 32      // entries of a row on average, at most: a lane group computes several rows
	skewedMost   = 2 << 10 // segments of a row, at most: phase 1 takes as long as for the row with the most
	skewedWide   = 32      // segments of a row that a warp adds, at most
	skewedEach   = 8       // short rows of a lane group
	skewedAcross = 8       // lanes of a group, at least: they load eight entries of a short row together
	skewedWidest = 16      // lanes of a group, at most: with wider tiles fewer rows of B stay in the L2 cache
	skewedAdding = 4       // lanes of a group in phase 1, which has few rows
)

// skewed takes the packing of cuda90_f32.
var skewed = rows90("cuda90_skewed_", dtype.F32, skewedKind, "skewed.cu", spec.Define("BLOCKS", 10))

// isSkewed reports whether a matrix has many entries in long rows, and many short rows.
func isSkewed(rows int, nnz, segments int64) bool {
	return segments >= skewedLeast && rows >= skewedRows && nnz <= skewedMean*int64(rows)
}

// takesSkewed reports whether skewed suits a matrix and problem that v, which has its packing, could multiply.
func takesSkewed(v *spec.Variant, e *spec.Packed, p spec.Problem) bool {
	if v.In != dtype.F32 || packingOf(v) != packingOf(skewed) || p.N <= skewedAcross/2*columns(v) {
		return false
	}
	return e.Format.(spec.Split).Skewed
}

// sortSegments sorts the segments in heavy by their first columns. Then those that are computed at the same time need
// the same rows of B, which come from memory once. Rows that are one segment, whose columns are anywhere, follow. The
// rows in several segments are sorted by their number, so that the longest sums begin first. The order of a row's sum
// stays the same.
func sortSegments(split *spec.Split, heavy []uint32, colidx []int32) {
	type segment [4]uint32
	column := func(s segment) uint32 {
		if s[3] == spec.NoSlot {
			return spec.NoSlot
		}
		return uint32(colidx[s[0]])
	}
	sortWords(heavy[:4*split.Segments], 4, func(x, y []uint32) int {
		return cmp.Compare(column(segment(x)), column(segment(y)))
	})
	rows := heavy[len(heavy)-3*int(split.Rows):]
	sortWords(rows, 3, func(x, y []uint32) int { return cmp.Compare(y[2]-y[1], x[2]-x[1]) })
	split.Skewed = true
	for r := range slices.Chunk(rows, 3) {
		if r[2]-r[1] > skewedWide {
			split.Wide++
		}
	}
}

// sortWords sorts records of `size` words, and keeps the order of equal ones.
func sortWords(words []uint32, size int, compare func(x, y []uint32) int) {
	records := slices.Collect(slices.Chunk(slices.Clone(words), size))
	slices.SortStableFunc(records, compare)
	for i, r := range records {
		copy(words[i*size:], r)
	}
}

// launchSkewed launches a warp for each segment and row of middle length, then warps that each compute several short
// rows. Phase 1 has a workgroup for each row of many segments, and a warp for each other.
func launchSkewed(v *spec.Variant, split spec.Split, p spec.Problem) (spec.Launch, error) {
	const warps = local / lanes
	ldp := (p.N + 7) &^ 7
	l := spec.Launch{Workspace: max(spec.NoWorkspace, int64(split.Slots)*int64(ldp)*int64(v.Sums().Size()))}
	phase := func(number, items, per uint32, groups int64, across int) error {
		g, err := spec.Fold(groups, spec.Ceil(p.N, across*columns(v)))
		if err != nil {
			return fmt.Errorf("kernel csr/%s: %w", v.Name, err)
		}
		l.Passes = append(l.Passes, spec.Pass{Variant: v.For(p), Groups: g, Params: spec.BlockFor(v, params{
			phase: number, n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), ldp: uint32(ldp),
			segments: split.Segments + split.Middle + split.Warps, items: items, width: g[0], per: per,
			longest: split.Longest, across: uint32(across), store: p.StoreWord(),
			alpha: float32(p.Alpha), beta: float32(p.Beta),
		}, p.Alpha, p.Beta)})
		return nil
	}
	across := skewedAcross
	for across < skewedWidest && across*columns(v) < p.N {
		across *= 2
	}
	listed, rows := int64(split.Segments)+int64(split.Middle)+int64(split.Warps), skewedEach*lanes/across
	err := phase(0, uint32(p.M), 0, spec.Ceil(listed, warps)+spec.Ceil(int64(p.M), int64(warps*rows)), across)
	if err == nil && split.Rows > 0 {
		groups := int64(split.Wide) + spec.Ceil(int64(split.Rows-split.Wide), warps)
		err = phase(1, split.Rows, split.Wide, groups, skewedAdding)
	}
	return l, err
}
