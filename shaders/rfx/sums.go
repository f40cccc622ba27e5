// Sums that are not rounded: phase 0 by itself, with every row in pieces. Several devices that have some of the columns each add
// them up.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

// PackSums encodes entries of rows, of which the whole rows have the given ranges, for SumsOf. Of each piece it returns the row; those
// of a row follow each other, and rows without entries have none. Values are left out: the kernel does not read them.
func PackSums[T formats.Value](a *formats.CSR[T], ranges []rfx.Range, v *spec.Variant) (*spec.Packed, []int32, error) {
	if err := a.Validate(); err != nil {
		return nil, nil, err
	}
	if len(ranges) != a.Rows || kind(v) != Rows || a.Type() == dtype.F64 {
		return nil, nil, fmt.Errorf("kernel rfx/%s: sums of %d rows of %v, of which %d ranges are given: %w", v.Name, a.Rows, a.Type(), len(ranges), backend.ErrUnsupported)
	}
	if err := fits32(a); err != nil {
		return nil, nil, err
	}
	p := PrecisionOf(v)
	words, pieces := inPieces(a.RowPtr, longestRow(a))
	all, columns := appendColumns(append(rowWords(a.RowPtr, ranges), words...), a.ColIdx)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(),
		Format: Split{P: p, Type: a.Type(), Split: spec.Split{Pieces: uint32(len(pieces))}, Columns: columns},
		Arrays: []spec.Array{spec.NewArray("rows", all), spec.NewArray("ints", rfx.Pack(a, ranges, p))},
		Stats:  formats.Stats{Slots: a.NNZ(), MACs: a.NNZ(), Gathers: a.NNZ(), Fill: 1},
	}
	e.Stats.StoredBytes = e.Bytes()
	return e, pieces, nil
}

// inPieces cuts rows into pieces of so many entries at most: first entry and last + 1 of each, and their rows.
func inPieces(rowptr []int64, longest int) (words []uint32, rows []int32) {
	for i := range len(rowptr) - 1 {
		for at, end := rowptr[i], rowptr[i+1]; at < end; at += int64(longest) {
			words, rows = append(words, uint32(at), uint32(min(at+int64(longest), end))), append(rows, int32(i))
		}
	}
	return words, rows
}

// SumsOf says how a variant leaves the sums of count pieces, from number first on, in the workspace: for each piece q.LD integers of
// 128 bits, the lower half first, of which the first q.N are products with the columns of a B that kernel quantise brought to q.
// Arguments besides rows, ints, q and part are not touched.
func SumsOf(v *spec.Variant, e *spec.Packed, q quantise.Layout, first, count int, caps backend.Caps) (spec.Launch, error) {
	m := e.Format.(Split)
	if q != Layout(v, e.Cols, q.N) || m.P != PrecisionOf(v) || first < 0 || count < 1 || uint32(first+count) > m.Pieces {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: sums of %d pieces from %d on, of %d, with B as %+v", v.Name, count, first, m.Pieces, q)
	}
	s := pickShape(v, e, spec.Problem{M: e.Rows, K: e.Cols, N: q.N, Caps: caps})
	groups, err := spec.Fold(spec.Ceil(int64(count), int64(s.per)), spec.Ceil(q.N, s.columns))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	return spec.Launch{Workspace: int64(count) * int64(q.LD) * 16, Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(params{
		n: uint32(q.N), ldq: uint32(q.LD), first: uint32(q.First()), heavy: uint32(2*(e.Rows+1) + 2*first), columns: m.Columns,
		pieces: uint32(count), items: uint32(count), width: groups[0], per: uint32(s.per), shape: s.packed(0, m.Type),
	})}}}, nil
}
