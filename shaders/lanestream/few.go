// The variants for CUDA, few columns and few rows: few.cu on compute capability 9.0.

package lanestream

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// fewRows is a GPU as few.cu uses it. On each of a multiprocessor's four schedulers, four warps multiply streams. Few
// groups of rows are split until there are enough streams.
var fewRows = machine{arch: 90, hopper: true, blocks: 132, warps: 16, ring: 14464, cluster: 2}

// fewRemainderWarps returns the number of warps that add the COO remainder while others multiply the streams. With 32
// columns there are no registers left for any.
func fewRemainderWarps(cols uint32) uint32 {
	if cols == 32 {
		return 0
	}
	return 4
}

// fewRing has the rows of values and masks of a ring for which matrices are packed, by layout and steps of a segment:
// the warp's memory without the rows of B.
var fewRing = [2][3]int{lanestream.Places: {1: 66, 2: 36}, lanestream.Pairs: {1: 66, 2: 39}}

// fewSparse is the density up to which segments have two steps.
const fewSparse = 0.103

func (m machine) few(t dtype.Type, layout, cols uint32) *spec.Variant {
	v := m.variant(t, cols)
	v.Name = fmt.Sprintf("cuda_few_%sn%d_%v", []string{"", "pairs_"}[layout], cols, t)
	v.Local[0] = 32 * (m.warps + fewRemainderWarps(cols))
	v.Consts = append(v.Consts, spec.Define("PAIRS", layout), spec.Define("REMAINDER_WARPS", fewRemainderWarps(cols)),
		spec.Define("FEW_ROWS", 1))
	v.Unit.Source, v.Unit.Blob = "few.cu", v.Name+".ptx"
	v.Overlaps = true
	s := m.sizes()
	s.layout = layout
	return s.sized(v, fewKind)
}

// fitsFew reports whether a stage buffer of few.cu, `ring` bytes, has room for a matrix's segments, their masks and
// their rows of `cols` columns of B.
func fitsFew(s lanestream.Shape, ring, cols int) bool {
	mask := (2 + s.Layout) * s.SegmentSteps
	segment := s.RingRows/(s.Window+1) - mask // rows of values
	room := ring/128 - (15 + s.Layout)        // without the rows that are repeated
	masks := s.Window + 1
	if cols == 32 || s.Layout == lanestream.Pairs { // LATE in warp.cuh
		masks = 2
	}
	return (s.Window+1)*segment+masks*(mask+s.SegmentSteps*cols/2) <= room
}

// fitsWidths is fitsFew for each number of columns.
func fitsWidths(s lanestream.Shape) bool {
	return !slices.ContainsFunc(widths, func(cols uint32) bool { return !fitsFew(s, int(fewRows.ring), int(cols)) })
}

// isFew reports whether a variant takes the packing of few.cu.
func isFew(v *spec.Variant) bool { return v.Kind == fewKind || v.Kind == linesKind && !staged(v) }

// fewSegments sets the options with which a matrix of a density is packed for few.cu. It keeps those that are set.
func fewSegments(o *lanestream.Options, density float64) {
	if o.SegmentSteps == 0 {
		o.SegmentSteps = 1
		if density <= fewSparse {
			o.SegmentSteps = 2
		}
	}
	if o.SegmentSteps == 2 {
		o.Window = 2
	}
	o.RingRows = fewRing[o.Layout][o.SegmentSteps]
}

// fewFor returns the variant for a problem whose matrix is packed for few.cu.
func fewFor(v *spec.Variant, p spec.Problem) *spec.Variant {
	layout := sizesOf(v).layout
	many := p.N > mostTurns && layout == lanestream.Places
	best := v
	for _, x := range cuda { // the narrowest first
		fits := x.Kind == fewKind && sizesOf(x).layout == layout || x.Kind == prefillKind && many && x.Met(p.Caps)
		if x.In != v.In || !fits {
			continue
		}
		if best = x; x.Tile.Cols >= p.N {
			break
		}
	}
	return best
}
