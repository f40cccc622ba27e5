// A in fixed point, and how its rows are dealt out.

package rfx

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// pack encodes a; rows of more than longest entries are done in pieces. Behind the last entry's integer
// (see rfx.P.Put) and column are zeros, up to a multiple of four entries: kernels take entries by fours.
func pack[T formats.Value](a *formats.CSR[T], p rfx.P, longest int) *spec.Packed {
	ranges := rfx.Rows(a)
	rows := rowWords(a.RowPtr, ranges)
	m, heavy := cut(a.RowPtr, longest)
	m.P, m.Type = p, a.Type()
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Format: m,
		Arrays: []spec.Array{
			spec.NewArray("rows", append(rows, heavy...)),
			spec.NewArray("colidx", a.ColIdx),
			spec.NewArray("ints", rfx.Pack(a, ranges, p)),
			spec.NewArray("values", a.Val),
		},
		Stats: formats.Stats{Slots: a.NNZ(), MACs: a.NNZ(), Gathers: a.NNZ()},
	}
	if a.NNZ() > 0 {
		e.Stats.Fill = 1
	}
	for _, x := range e.Arrays[:3] { // values are not read where all are finite
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

// longestRow decides which rows are done in pieces: those of more than four times the average of entries,
// more than a device needs to be kept busy with, or more than sums have room for.
func longestRow(a formats.Sparse) int {
	const (
		least  = 256     // entries of a piece
		most   = 1 << 15 // products below 2⁴⁷ add up to less than 2⁶³
		enough = 4096    // pieces that keep a large device busy
	)
	rows, _ := a.Dims()
	nnz := int(a.NNZ())
	return min(most, (max(least, min(4*nnz/max(rows, 1), nnz/enough))+3)&^3)
}

// cut lists the pieces of rows with more than longest entries, and these rows.
func cut(rowptr []int64, longest int) (Matrix, []uint32) {
	var pieces, sums []uint32
	for i := range len(rowptr) - 1 {
		begin, end := int(rowptr[i]), int(rowptr[i+1])
		if end-begin <= longest {
			continue
		}
		first := uint32(len(pieces) / 2)
		for p := begin; p < end; p += longest {
			pieces = append(pieces, uint32(p), uint32(min(p+longest, end)))
		}
		sums = append(sums, uint32(i), first, uint32(len(pieces)/2))
	}
	return Matrix{Longest: uint32(longest), Pieces: uint32(len(pieces) / 2), Rows: uint32(len(sums) / 3)}, append(pieces, sums...)
}
