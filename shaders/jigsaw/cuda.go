// The variants for CUDA: kernel.cu with blocks of different heights.

package jigsaw

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is a shape of kernel.cu.
type tile struct {
	block    uint32 // rows (BLOCK_TILE)
	cols     uint32
	stages   uint32
	feeders  uint32 // producer warps; each fills 32 rows of a granule
	ahead    uint32 // pairs of steps, 1 or 2
	resident uint32 // blocks of threads that a multiprocessor is to hold
	early    uint32 // tiles of B
}

// tiles are the paper's three heights, and two that let as many rows as fit share their rows of B: a multiprocessor
// of Hopper holds one such block.
var tiles = []tile{
	{block: 256, cols: 64, stages: 8, feeders: 4, ahead: 1, resident: 1, early: 4},
	{block: 128, cols: 128, stages: 4, feeders: 4, ahead: 2, resident: 1, early: 4},
	{block: 64, cols: 128, stages: 4, feeders: 2, ahead: 1, resident: 2, early: 4},
	{block: 32, cols: 128, stages: 4, feeders: 1, ahead: 1, resident: 5, early: 4},
	{block: 16, cols: 64, stages: 4, feeders: 1, ahead: 1, resident: 12, early: 2},
}

// granule is the rows of B that are handed over at a time.
func (s tile) granule() uint32 { return 32 * s.feeders }

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		for _, s := range tiles {
			vs = append(vs, s.variant(t))
		}
	}
	return vs
}

func (s tile) variant(t dtype.Type) *spec.Variant {
	shared := s.granule() * s.stages * (2*s.cols + 16)
	return packing{s.block, s.granule() * s.stages,
		s.granule()}.sized(spec.CUDA(fmt.Sprintf("cuda_b%d_%v", s.block, t), "jigsaw", t, spec.Variant{
		Local: spec.Line(2*s.block + 32*s.feeders),
		Consts: []spec.Const{
			spec.Define("BLOCK", s.block), spec.Define("COLS", s.cols), spec.Define("GRANULE", s.granule()),
			spec.Define("STAGES", s.stages),
			spec.Define("PRODUCERS", s.feeders), spec.Define("PREFETCH", s.ahead), spec.Define("RESIDENT", s.resident),
			spec.Define("EARLY", s.early),
			spec.Define("STAGE_ROWS", s.granule()*s.stages),
		},
		Need: spec.Need{
			// The dense operation stands for the sparse one, which takes as long and multiplies as many slots.
			Shapes: []backend.MatrixShape{spec.Shape(16, 8, 16, t)},
			Shared: shared + 16*s.stages, // and the barriers
		},
		Shared: shared,
	}), ringKind, s.cols)
}
