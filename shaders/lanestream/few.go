// The variants for CUDA, few columns and few rows: few.cu on compute capability 9.0.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// fewRows is a multiprocessor as few.cu uses it. Four warps for each of its schedulers have streams: few groups of rows
// are cut into as many parts as that.
var fewRows = machine{arch: 90, hopper: true, blocks: 132, warps: 16, ring: 14464, cluster: 2}

// fewRestWarps returns how many warps do the COO remainder while others do the streams; with 32 columns there are no
// registers left for any.
func fewRestWarps(cols uint32) uint32 {
	if cols == 32 {
		return 0
	}
	return 4
}

// fewRing is the rows of values and masks that matrices are packed for, by layout and steps of a segment: what is left
// of a ring after the rows of B.
var fewRing = [2][3]int{lanestream.Places: {1: 66, 2: 36}, lanestream.Pairs: {1: 66, 2: 39}}

// fewSparse is the density up to which segments have two steps.
const fewSparse = 0.103

func (m machine) few(t dtype.Type, layout, cols uint32) *spec.Variant {
	v := m.variant(t, cols)
	v.Name = fmt.Sprintf("cuda_few_%sn%d_%v", []string{"", "pairs_"}[layout], cols, t)
	v.Local[0] = 32 * (m.warps + fewRestWarps(cols))
	v.Consts = append(v.Consts, spec.Define("PAIRS", layout), spec.Define("REMAINDER_WARPS", fewRestWarps(cols)),
		spec.Define("FEW_ROWS", 1))
	v.Unit.Source, v.Unit.Blob = "few.cu", v.Name+".ptx"
	v.Overlaps = true
	s := m.sizes()
	s.layout = layout
	return s.sized(v, fewKind)
}

// fitsFew tells whether the rings of few.cu have room for a matrix's segments, their masks and rows of B, for any
// number of columns.
func fitsFew(s lanestream.Shape) bool {
	mask := (2 + s.Layout) * s.PieceSteps
	piece := s.RingRows/(s.Window+1) - mask         // rows of values
	room := int(fewRows.ring)/128 - (15 + s.Layout) // rows that are there twice
	for _, cols := range widths {
		masks := s.Window + 1
		if cols == 32 || s.Layout == lanestream.Pairs { // they come late
			masks = 2
		}
		if (s.Window+1)*piece+masks*(mask+s.PieceSteps*int(cols)/2) > room {
			return false
		}
	}
	return true
}

// fewPieces sets how a matrix of a density is packed for few.cu. What is set stays.
func fewPieces(o *lanestream.Options, density float64) {
	if o.PieceSteps == 0 {
		o.PieceSteps = 1
		if density <= fewSparse {
			o.PieceSteps = 2
		}
	}
	if o.PieceSteps == 2 {
		o.Window = 2
	}
	o.RingRows = fewRing[o.Layout][o.PieceSteps]
}

// fewFor returns the variant that multiplies by n columns what is packed for few.cu.
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
