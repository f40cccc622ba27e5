// A in strips of 16 rows: what the variants for few columns multiply from, on CUDA from compute capability 9.0 on.

package rfx

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	stripWarps = 8        // of a workgroup: they take the segments of a strip by turns
	stripCTAs  = 2        // workgroups of a multiprocessor
	stripRing  = 98 * 128 // bytes of a warp's stage buffer: two segments of a block that is full, at p = 47
	stripTile  = 8        // columns of a workgroup
	mostBlocks = 16       // of a segment
	mostStrip  = 1 << 14  // columns of A: sums of products of digits fit 32 bits at every p
)

// byStrips are the variants for strips.
func byStrips() []*spec.Variant {
	var vs []*spec.Variant
	for _, p := range rfx.All {
		v := sizes{p: p, strips: true}.sized(spec.PTX(fmt.Sprintf("cuda90_strips_p%d", p), spec.Variant{
			Entry: "rfx", Local: spec.Line(32 * stripWarps), Shared: stripShared(p), Overlaps: true,
			Need: spec.Need{Arch: 90, Shapes: []backend.MatrixShape{spec.Shape(rfx.StripRows, stripTile, 32, dtype.S8)}},
			Consts: []spec.Const{
				spec.Define("BITS", uint32(p)), spec.Define("WARPS", stripWarps), spec.Define("RING", stripRing),
				spec.Define("BLOCKS", stripCTAs),
			},
			Unit: spec.Unit{Source: "strips.cu"},
		}), stripsKind, stripTile)
		v.Tile.Rows = rfx.StripRows
		vs = append(vs, v)
	}
	return vs
}

// stripShared is a workgroup's shared memory: stage buffers, and two sets of sums of (16 × 8) for each sum of places.
func stripShared(p rfx.P) uint32 {
	return stripWarps*stripRing + 2*uint32(2*p.Bytes()-1)*rfx.StripRows*stripTile*4
}

// Strips says how a matrix is packed in strips.
type Strips struct {
	Blocks   uint32 // of a segment; 0: there are no strips
	Segments uint32 // of a strip
	Largest  uint32 // bytes of the largest segment
}

// FitsStrips refuses a matrix of too many columns for strips.
func FitsStrips(cols int) error {
	if cols > mostStrip {
		return fmt.Errorf("kernel rfx: strips of %d columns: at most %d are possible: %w", cols, mostStrip,
			backend.ErrUnsupported)
	}
	return nil
}

// packStrips encodes a in strips. The words of the array rows are, behind what pack puts first,
//
//	segments the units of ints at which each strip's segments begin, and the end: see rfx.Strips
//	columns  of the entries, see appendColumns
func packStrips[T formats.Value](a *formats.CSR[T], variant *spec.Variant) (*spec.Packed, error) {
	if err := FitsStrips(a.Cols); err != nil {
		return nil, err
	}
	p, ranges, all := PrecisionOf(variant), rfx.Rows(a), spec.Ceil(a.Cols, rfx.StripColumns)
	s, ok := strips(a, ranges, p)
	if !ok || len(s.Offsets)+2*len(ranges) > math.MaxInt32 {
		return nil, fmt.Errorf("kernel rfx: strips of %d rows and %d columns exceed 32-bit offsets: %w", a.Rows, a.Cols,
			backend.ErrUnsupported)
	}
	words := append(rowWords(a.RowPtr, ranges), s.Offsets...)
	read := 4*len(words) + len(s.Data) // entries themselves and their columns are not read where all are finite
	words, columns := appendColumns(words, a.ColIdx)
	count := int64(spec.Ceil(a.Rows, rfx.StripRows))
	masks := count * int64(all) * rfx.StripUnit
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(),
		Format: Split{P: p, Type: a.Type(), Columns: columns,
			Strips: Strips{Blocks: uint32(s.Blocks), Segments: uint32(s.Segments), Largest: uint32(s.Largest)}},
		Arrays: []spec.Array{
			spec.NewArray("rows", words),
			spec.NewArray("ints", s.Data),
			spec.NewArray("values", a.Val),
		},
		Stats: formats.Stats{
			StoredBytes: int64(read), Slots: (int64(len(s.Data)) - masks) / int64(p.Bytes()),
			MACs: count * rfx.StripRows * int64(a.Cols), Gathers: count * int64(a.Cols),
		},
		Items: count,
	}
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(a.NNZ()) / float64(e.Stats.Slots)
	}
	return e, nil
}

// strips packs a in segments of as many blocks as two fit a stage buffer, but at most what gives each warp one.
func strips[T formats.Value](a *formats.CSR[T], ranges []rfx.Range, p rfx.P) (s *rfx.Strips, ok bool) {
	blocks := max(1, min(mostBlocks, spec.Ceil(spec.Ceil(a.Cols, rfx.StripColumns), stripWarps)))
	for s, ok = rfx.PackStrips(a, ranges, p, blocks, stripRing/2); !ok && blocks > 1; {
		blocks = max(1, min(blocks-1, blocks*stripRing/2/s.Largest))
		s, ok = rfx.PackStrips(a, ranges, p, blocks, stripRing/2)
	}
	return s, ok
}

// stripSlots is Slots for strips.
func stripSlots(a *formats.CSR[float32], variant *spec.Variant) ([]uint32, error) {
	s, ok := strips(a, make([]rfx.Range, a.Rows), PrecisionOf(variant))
	if !ok || int64(len(s.Data)) > math.MaxUint32 {
		return nil, fmt.Errorf("kernel requantise: strips of %d bytes exceed 4 GiB: %w", len(s.Data), backend.ErrUnsupported)
	}
	return s.Places(a, PrecisionOf(variant)), nil
}

// launchStrips is launch for strips.
func launchStrips(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	m := e.Format.(Split)
	count := spec.Ceil(e.Rows, rfx.StripRows)
	tiles := int64(count) * int64(spec.Ceil(p.N, stripTile))
	groups, err := spec.Fold(min(tiles, int64(max(1, p.Caps.Units)*stripCTAs)), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	b := block(p, q, m)
	b.heavy, b.segments, b.items = uint32(2*(e.Rows+1)), m.Strips.Segments, uint32(count)
	b.ldq, b.width = uint32(spec.Ceil(e.Cols, rfx.StripColumns)), groups[0]
	b.per, b.longest = m.Strips.Blocks, m.Strips.Largest
	b.shape = shape{across: 1, along: 1}.packed(0, m.Type)
	return spec.Launch{Workspace: spec.NoWorkspace,
		Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(b)}}}, nil
}
