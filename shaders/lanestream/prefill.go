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
	stages       uint32 // of B, 64 rows each
	ring         uint32 // rows of values for each group
}

// tiles is sorted by columns, the fewest first.
var tiles = []tile{
	{groups: 2, cols: 128, stages: 6, ring: 256},
	{groups: 2, cols: 256, stages: 4, ring: 224},
}

const (
	clusterRows = 2    // CTAs of a cluster, which have neighbouring rows of the same columns
	mostCTAs    = 1024 // that have a tensor map
	bandCols    = 2048 // columns of C in a band: B's columns of a band stay in the L2 cache
)

// prefill returns the variant for a tile. It takes matrices that are packed for machine m.
func (m machine) prefill(t dtype.Type, of tile) *spec.Variant {
	s := sizes{packing: packing{warps: m.warps, cluster: m.cluster}, ctas: m.blocks, groups: of.groups}
	return s.sized(onCUDA(fmt.Sprintf("cuda_prefill_n%d_%v", of.cols, t), "prefill.cu", t, spec.Variant{
		Tile:  columns(of.groups*clusterRows*rows, of.cols),
		Local: spec.Line(128 * (of.groups + 1)),
		Consts: []spec.Const{
			spec.Define("WARPS", m.warps), spec.Define("BLOCKS", m.blocks), spec.Define("CLUSTER", m.cluster),
			spec.Define("GROUPS", of.groups), spec.Define("COLS", of.cols), spec.Define("STAGES", of.stages),
			spec.Define("BUFFER_ROWS", of.ring),
			spec.Define("CLUSTER_ROWS", clusterRows), spec.Define("MOST_BLOCKS", mostCTAs),
		},
		Need: spec.Need{Arch: 90, Exact: true}, Together: int(of.groups) * clusterRows,
		Shared: of.stages*of.cols*128 + of.groups*((of.ring+32)*128+8192+3*128*20) + 1792,
	}), prefillKind)
}

// launchPrefill launches as many clusters as run at the same time; each computes one tile after another. If the tiles
// of the last round leave half of the clusters idle, each tile is split in two along K for the two CTAs of a cluster.
func launchPrefill(v *spec.Variant, s lanestream.Shape, p spec.Problem) spec.Launch {
	cols := v.Tile.Cols
	wide := spec.Ceil(p.N, cols)
	tiles := spec.Ceil(s.Groups, int(sizesOf(v).groups)*clusterRows) * wide
	most := max(1, min(p.Caps.Units, mostCTAs)/clusterRows)
	clusters := spec.Ceil(tiles, max(1, spec.Ceil(tiles, most))) // of as many tiles each
	if left := tiles % most; s.Splits > 1 && left > 0 && 2*left <= most {
		clusters = min(most, 2*tiles)
	}
	return pass(v, s, p, [3]uint32{uint32(clusters * clusterRows), 1, 1}, max(1, min(wide, bandCols/cols)))
}
