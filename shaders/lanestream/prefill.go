// The variants for CUDA and many columns: prefill.cu on compute capability 9.0.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is the block of C that a CTA of prefill.cu computes at a time, and its share of shared memory.
type tile struct {
	groups, cols uint32 // groups of 64 rows, by columns
	stages       uint32 // of 64 rows of B
	ring         uint32 // rows of values for each group
}

// tiles, the narrowest first.
var tiles = []tile{
	{groups: 2, cols: 128, stages: 6, ring: 256},
	{groups: 2, cols: 256, stages: 4, ring: 224},
}

const (
	blocksDown = 2    // blocks of a cluster, one below the other
	mostBlocks = 1024 // that have a tensor map
	bandCols   = 2048 // columns of C that are computed before the next ones, so that their part of B stays in the L2 cache
)

// prefill is the variant for a tile. It takes matrices packed for machine m.
func (m machine) prefill(t dtype.Type, of tile) *spec.Variant {
	s := sizes{packing: packing{warps: m.warps, cluster: m.cluster}, ctas: m.blocks, groups: of.groups}
	return s.sized(onCUDA(fmt.Sprintf("cuda_prefill_n%d_%v", of.cols, t), "prefill.cu", t, spec.Variant{
		Tile:  columns(of.groups*blocksDown*rows, of.cols),
		Local: spec.Line(128 * (of.groups + 1)),
		Consts: []spec.Const{
			spec.Define("WARPS", m.warps), spec.Define("BLOCKS", m.blocks), spec.Define("CLUSTER", m.cluster),
			spec.Define("GROUPS", of.groups), spec.Define("COLS", of.cols), spec.Define("STAGES", of.stages),
			spec.Define("BUFFER_ROWS", of.ring),
			spec.Define("CLUSTER_ROWS", blocksDown), spec.Define("MOST_BLOCKS", mostBlocks),
		},
		Need: spec.Need{Arch: 90, Exact: true}, Together: int(of.groups) * blocksDown,
		Shared: of.stages*of.cols*128 + of.groups*((of.ring+32)*128+8192+3*128*20) + 1792,
	}), prefillKind)
}

// launchPrefill lays the grid out: as many clusters of blocks as run at once take tiles in turn. Where the tiles of the
// last turn leave half of the clusters idle, each is halved along the sum and computed by two clusters' blocks
// (prefill.cu's splits).
func launchPrefill(v *spec.Variant, s lanestream.Shape, p spec.Problem) spec.Launch {
	cols := v.Tile.Cols
	wide := spec.Ceil(p.N, cols)
	tiles := spec.Ceil(s.Groups, int(sizesOf(v).groups)*blocksDown) * wide
	most := max(1, min(p.Caps.Units, mostBlocks)/blocksDown)
	clusters := spec.Ceil(tiles, max(1, spec.Ceil(tiles, most))) // of as many tiles each
	if left := tiles % most; s.Parts > 1 && left > 0 && 2*left <= most {
		clusters = min(most, 2*tiles)
	}
	return pass(v, s, p, [3]uint32{uint32(clusters * blocksDown), 1, 1}, max(1, min(wide, bandCols/cols)))
}
