// A as residues of two of every four columns: what the variants on sparse warpgroup matrix instructions multiply from.
//
// These take half of the bytes of A and half of the instructions of dense ones. Where a row has more than two entries
// among four columns, the others are a remainder, which combine.cu multiplies in f64 and adds. residues.go explains
// residues.

package rfx

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// bySparseResidues are the variants for residues of 2:4 matrices. They have wide tiles alone.
func bySparseResidues() []*spec.Variant { return residuesOf(256, true) }

// SparseResidueStats is ResidueStats for residues of two of every four columns, of a matrix of nnz entries. remaining
// is how many of them are in the remainder.
func SparseResidueStats(rows, cols int, nnz, remaining int64, p rfx.P) (formats.Stats, error) {
	s, err := ResidueStats(rows, cols, nnz, p)
	if err != nil {
		return s, err
	}
	planes := s.StoredBytes / max(1, s.Slots)
	if plane := s.Slots / 2; plane >= rfx.Remaining {
		return s, fmt.Errorf("kernel rfx: residues of %d×%d take %d bytes a modulus, and may take %d: %w", rows, cols, plane,
			int64(rfx.Remaining), backend.ErrUnsupported)
	}
	if words := 4*int64(rows) + 4*remaining + nnz; words > math.MaxInt32-1<<16 {
		return s, fmt.Errorf("kernel rfx: a remainder of %d entries does not fit 31-bit offsets: %w", remaining,
			backend.ErrUnsupported)
	}
	s.StoredBytes = s.Slots/2*planes + s.Slots/8 + 16*remaining
	s.MACs = s.MACs/2 + remaining
	s.Slots = s.Slots/2 + remaining
	s.Fill, s.Gathers = 2*s.Fill, remaining
	return s, nil
}

// Remaining returns how many entries have two entries among the same four columns of their row before them.
func Remaining(a formats.Sparse) int64 {
	ptr, idx := a.Pattern()
	count := 0
	for i := range len(ptr) - 1 {
		rfx.EachGroup(idx[ptr[i]:ptr[i+1]], func(_, n int) { count += max(0, n-2) })
	}
	return int64(count)
}

// packSparseResidues encodes a as residues, or digits, of two of every four columns. To what packResidues puts into the
// array rows it adds, before the entries' columns,
//
//	remainder  the number of each row's first entry in the remainder, and of all; then, from a multiple of four words
//	           on, 4 words of each entry: column, row mod 16, and its integer as a float64
//
// The array ints is rfx.Pack24's.
func packSparseResidues[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	p := PrecisionOf(v)
	stats, err := SparseResidueStats(a.Rows, a.Cols, a.NNZ(), Remaining(a), p)
	if err != nil {
		return nil, err
	}
	ranges := rfx.Rows(a)
	words, f, part := residueWords(a, ranges, v)
	s := rfx.NewSparse24(a.RowPtr, a.ColIdx, planesLayout(a.Rows, a.Cols))
	ints, remainder := rfx.Pack24(s, a, ranges, p, f.Planes, part)
	f.Remainder = uint32(len(words))
	words = appendRemainder(words, a.RowPtr, a.ColIdx, s, remainder)
	words, f.Columns = appendColumns(words, a.ColIdx)
	return packedResidues(a, f, stats, words, ints), nil
}

// appendRemainder appends the remainder to the words of the array rows.
func appendRemainder(words []uint32, rowptr []int64, colidx []int32, s *rfx.Sparse24, integers []int64) []uint32 {
	for _, n := range s.Remainder {
		words = append(words, uint32(n))
	}
	for len(words)%4 != 0 {
		words = append(words, 0)
	}
	for i := range len(rowptr) - 1 {
		for e := rowptr[i]; e < rowptr[i+1]; e++ {
			if at := s.At[e]; at&rfx.Remaining != 0 {
				q := math.Float64bits(float64(integers[at&^rfx.Remaining]))
				words = append(words, uint32(colidx[e]), uint32(i%16), uint32(q), uint32(q>>32))
			}
		}
	}
	return words
}

// RemainderEntries returns the word of the array rows at which the entries of the remainder begin, for a matrix of that
// many rows; 0 if it has no remainder.
func (s Split) RemainderEntries(rows int) uint32 {
	if s.Remainder == 0 {
		return 0
	}
	return (s.Remainder + uint32(rows) + 4) &^ 3
}
