// A in fixed point, and how its rows are shared out.

package rfx

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// pack encodes a; rows of more than longest entries are divided into segments. The words of the array rows are
//
//	rows     2 words of each: its first entry and its range; then the number of entries and 0. On the CPU a range has
//	         rfx.Mark if the next row has the same columns
//	segments 2 words of each: its first entry and last + 1; for variants with teams 4 words: the row too, and the
//	         segment's row of part, spec.NoSlot if it is a whole row; then likewise the rows of middle length
//	sums     3 words of each row in segments: itself, its first row of part and last + 1
//	columns  of the entries, see appendColumns
//
// Behind the last entry's integer (see rfx.P.Put) and column are zeros, up to a multiple of four entries: kernels take
// entries by fours.
func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant, longest int) *spec.Packed {
	p, ranges := PrecisionOf(v), rfx.Rows(a)
	rows := rowWords(a.RowPtr, ranges)
	if v.Code == backend.CodeGo {
		markRows(rows, a)
	}
	split, heavy := spec.SplitRows(a.RowPtr, longest)
	if hasTeams(v) {
		l := spec.WarpLimits(a.Rows, a.NNZ())
		split, heavy = spec.ShareRows(a.RowPtr, spec.Limits{Short: min(longest, l.Short), Middle: min(longest, l.Middle),
			Long: min(longest, l.Long), Longest: longest})
	}
	words, columns := appendColumns(append(rows, heavy...), a.ColIdx)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Format: Split{P: p, Type: a.Type(), Split: split, Columns: columns},
		Arrays: []spec.Array{
			spec.NewArray("rows", words),
			spec.NewArray("ints", rfx.Pack(a, ranges, p)),
			spec.NewArray("values", a.Val),
		},
		Stats: formats.Stats{Slots: a.NNZ(), MACs: a.NNZ(), Gathers: a.NNZ()},
	}
	if a.NNZ() > 0 {
		e.Stats.Fill = 1
	}
	for _, x := range e.Arrays[:2] { // values are not read where all are finite
		e.Stats.StoredBytes += int64(len(x.Data))
	}
	return e
}

// rowWords returns the first words of the array rows: first entry and range of each row, then the number of
// entries and 0.
func rowWords(rowptr []int64, ranges []rfx.Range) []uint32 {
	words := make([]uint32, 2*len(rowptr))
	for i, start := range rowptr {
		words[2*i] = uint32(start)
		if i < len(ranges) {
			words[2*i+1] = uint32(ranges[i])
		}
	}
	return words
}

// markRows marks the rows of a whose next one has the same columns.
func markRows[T formats.Value](words []uint32, a *formats.CSR[T]) {
	row := func(i int) []int32 { return a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] }
	for i := range max(0, a.Rows-1) {
		if slices.Equal(row(i), row(i+1)) {
			words[2*i+1] |= uint32(rfx.Mark)
		}
	}
}

// appendColumns appends the entries' columns to the words of the array rows, from a multiple of four words on, and
// zeros up to the next. It returns the word at which the columns begin.
func appendColumns(words []uint32, colidx []int32) (all []uint32, columns uint32) {
	fours := func(n int) int { return (n + 3) &^ 3 }
	all = make([]uint32, fours(fours(len(words))+len(colidx)))
	at := fours(copy(all, words))
	copy(backend.View[int32](backend.Bytes(all[at:])), colidx)
	return all, uint32(at)
}

// mostEntries of a row, or of a segment of one: products below 2⁴⁷ add up to less than 2⁶³.
const mostEntries = 1 << 15

// longestRow decides which rows are divided into segments: as in kernel csr, and those whose sums would overflow. The
// CPU has few cores to keep busy.
func longestRow(rows int, nnz int64, v *spec.Variant) int {
	const least = 1 << 13 // on the CPU
	longest := spec.LongestRow(rows, nnz)
	if v.Code == backend.CodeGo {
		longest = max(longest, least)
	}
	return min(mostEntries, longest)
}

// InSegments returns how many rows a variant of rows divides into segments, whose sums another launch adds up. rowPtr
// is that of the matrix.
func InSegments(rowPtr []int64, v *spec.Variant) (divided int) {
	rows := len(rowPtr) - 1
	longest := int64(longestRow(rows, rowPtr[rows], v))
	for r := range rows {
		if rowPtr[r+1]-rowPtr[r] > longest {
			divided++
		}
	}
	return divided
}
