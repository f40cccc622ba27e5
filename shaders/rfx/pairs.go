// A in strips of 16 rows as pairs of entries: what the variants for few columns and few entries multiply from, on CUDA
// of compute capability 9.0.

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
	pairSlots  = 2 // segments that a stage buffer has room for at least, if they have several blocks
	pairBlocks = 8 // of a segment, at most
)

// pairSize is a workgroup: its warps, the bytes of each one's stage buffer, and how many workgroups a multiprocessor
// has. The first-level cache has what shared memory leaves, for B.
type pairSize struct{ warps, stage, ctas, buffers int }

// pairSizes are those by precision, as registers allow.
var pairSizes = map[rfx.P]pairSize{
	rfx.P15: {14, 44 * 128, 2, 2},
	rfx.P23: {14, 44 * 128, 2, 1},
	rfx.P31: {14, 88 * 128, 1, 2},
	rfx.P47: {14, 88 * 128, 1, 2},
}

// byPairs are the variants for pairs.
func byPairs() []*spec.Variant {
	var vs []*spec.Variant
	for _, p := range rfx.All {
		x := pairSizes[p]
		v := sizes{p: p, pairs: true}.sized(spec.PTX(fmt.Sprintf("cuda90_pairs_p%d", p), spec.Variant{
			Entry: "rfx", Local: spec.Line(uint32(32 * x.warps)), Shared: uint32(x.warps * x.stage), Overlaps: true,
			Need: spec.Need{Arch: 90, Shapes: []backend.MatrixShape{spec.Shape(rfx.StripRows, stripTile, 32, dtype.S8)}},
			Consts: []spec.Const{
				spec.Define("BITS", uint32(p)), spec.Define("WARPS", uint32(x.warps)),
				spec.Define("STAGE", uint32(x.stage)), spec.Define("CTAS", uint32(x.ctas)),
				spec.Define("BUFFERS", uint32(x.buffers)),
			},
			Unit: spec.Unit{Source: "pairs.cu"},
		}), pairsKind, stripTile)
		v.Tile.Rows = rfx.StripRows
		vs = append(vs, v)
	}
	return vs
}

// packPairs encodes a in pairs. The words of the array rows are, behind what pack puts first,
//
//	strips   2 words of each: its first segment, and its extra blocks
//	segments the units of ints at which each begins, and the end: see rfx.Pairs
//	columns  of the entries, see appendColumns
func packPairs[T formats.Value](a *formats.CSR[T], variant *spec.Variant) (*spec.Packed, error) {
	if err := FitsStrips(a.Cols); err != nil {
		return nil, err
	}
	p, ranges := PrecisionOf(variant), rfx.Rows(a)
	var s *rfx.Pairs
	ok := fitting(pairSizes[p].stage, func(blocks, most int) (ok bool) {
		s, ok = rfx.PackPairs(a, ranges, p, blocks, most)
		return ok
	})
	if !ok || len(s.Offsets)+len(s.Strips)+2*len(ranges) > math.MaxInt32 {
		return nil, fmt.Errorf("kernel rfx: pairs of %d rows and %d columns exceed 32-bit offsets: %w", a.Rows, a.Cols,
			backend.ErrUnsupported)
	}
	words := append(append(rowWords(a.RowPtr, ranges), s.Strips...), s.Offsets...)
	read := 4*len(words) + len(s.Data) // entries themselves and their columns are not read where all are finite
	words, columns := appendColumns(words, a.ColIdx)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(),
		Format: Split{P: p, Type: a.Type(), Columns: columns,
			Pairs: Strips{Blocks: uint32(s.Blocks), Segments: uint32(len(s.Offsets) - 1), Largest: uint32(s.Largest)}},
		Arrays: []spec.Array{
			spec.NewArray("rows", words),
			spec.NewArray("ints", s.Data),
			spec.NewArray("values", a.Val),
		},
		Stats: formats.Stats{
			StoredBytes: int64(read), Slots: 2 * s.Pairs, MACs: s.Count * rfx.StripRows * rfx.StripColumns / 2,
			Gathers: int64(spec.Ceil(a.Rows, rfx.StripRows*pairSizes[p].warps)) * int64(a.Cols),
		},
		Items: int64(spec.Ceil(a.Rows, rfx.StripRows)),
	}
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(a.NNZ()) / float64(e.Stats.Slots)
	}
	return e, nil
}

// fitting calls pack with the most blocks of a segment, and the most bytes, until it succeeds: with as many blocks as
// let a stage buffer hold several.
func fitting(stage int, pack func(blocks, most int) bool) bool {
	for blocks := pairBlocks; blocks > 1; blocks /= 2 {
		if pack(blocks, stage/pairSlots) {
			return true
		}
	}
	return pack(1, stage)
}

// slotsOfPairs is Slots for pairs.
func slotsOfPairs(rows, cols int, rowptr []int64, colidx []int32, variant *spec.Variant) (slots []uint32, err error) {
	if !fitting(pairSizes[PrecisionOf(variant)].stage, func(blocks, most int) (ok bool) {
		_, slots, ok = rfx.PairPlaces(rowptr, colidx, cols, PrecisionOf(variant), blocks, most)
		return ok
	}) {
		return nil, fmt.Errorf("kernel requantise: pairs of %d×%d exceed 4 GiB: %w", rows, cols, backend.ErrUnsupported)
	}
	return slots, nil
}

// together returns how many strips a workgroup takes: those that let the warps of all multiprocessors load the fewest
// segments one after the other.
func together(x pairSize, strips, tiles, segments int64, units int) int64 {
	best, least, warps := int64(1), int64(math.MaxInt64), int64(x.warps)
	for each := int64(1); each <= warps; each++ {
		turns := spec.Ceil(spec.Ceil(strips, each)*tiles, int64(max(1, units)*x.ctas))
		if t := turns * (1 + spec.Ceil(segments, warps/each)); t < least {
			best, least = each, t
		}
	}
	return best
}

// launchPairs is launch for pairs.
func launchPairs(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	m := e.Format.(Split)
	count, tiles := spec.Ceil(int64(e.Rows), rfx.StripRows), int64(spec.Ceil(p.N, stripTile))
	each := together(pairSizes[m.P], count, tiles, int64(m.Pairs.Segments)/max(1, count), p.Caps.Units)
	groups, err := spec.Fold(spec.Ceil(count, each)*tiles, 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	b := block(p, q, m)
	b.heavy, b.items = uint32(2*(e.Rows+1)), uint32(count)
	b.ldq, b.width, b.warps = uint32(spec.Ceil(e.Cols, rfx.StripColumns)), groups[0], uint32(each)
	b.per, b.longest = m.Pairs.Blocks, m.Pairs.Largest
	b.shape = shape{across: 1, along: 1}.packed(0, m.Type)
	return spec.Launch{Workspace: spec.NoWorkspace,
		Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(b)}}}, nil
}
