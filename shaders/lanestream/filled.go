// The variants for CUDA that expand panels of rows to dense matrices before they multiply them: filled.cu on compute
// capability 9.0.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Constants of filled.cu.
const (
	filledCols   = 256 // of a cluster's tile, which has 256 rows
	filledDepth  = 64
	filledStages = 4
	fillers      = 2
	fillRing     = 16512
	filledSplits = 4    // of a tile, at most
	leastStages  = 4    // of a split, at least
	blockBytes   = 4096 // of 64 rows by a step's columns
	fillWarps    = 16   // of a CTA of the kernel that only expands a panel
	ringsBytes   = 231424
)

// panelBytes is the most that a panel takes of the workspace where there are several, if not for less than a tile's
// rows, and wholeBytes the most where all of A is one. (Tests have smaller ones.)
var panelBytes, wholeBytes int64 = 160 << 20, 480 << 20

// filled is a variant for matrices of a layout, packed for machine m.
func (m machine) filled(t dtype.Type, layout uint32) *spec.Variant {
	name := fmt.Sprintf("cuda_filled_%sn%d_%v", []string{"", "pairs_"}[layout], filledCols, t)
	s := sizes{packing: packing{warps: m.warps, cluster: m.cluster, staged: layout == lanestream.Pairs, layout: layout},
		ctas: m.blocks}
	return s.sized(onCUDA(name, "filled.cu", t, spec.Variant{
		Local: spec.Line(384), Tile: columns(2*clusterRows*rows, filledCols),
		Consts: []spec.Const{
			spec.Define("WARPS", m.warps), spec.Define("BLOCKS", m.blocks), spec.Define("CLUSTER", m.cluster),
			spec.Define("STAGED", layout), spec.Define("PAIRS", layout),
			spec.Define("COLS", filledCols), spec.Define("DEPTH", filledDepth), spec.Define("STAGES", filledStages),
			spec.Define("FILLERS", fillers),
			spec.Define("FILL_BUFFER", fillRing), spec.Define("MOST_BLOCKS", mostCTAs),
			spec.Define("MOST_SPLITS", filledSplits), spec.Define("LEAST_STAGES", leastStages),
		},
		Shared: filledStages*((128+filledCols)*filledDepth*2+16) + fillers*(fillRing+8*slots) + 128,
		Need:   spec.Need{Arch: 90, Exact: true}, Together: 2 * clusterRows, Overlaps: true, Workspace: true,
		Before: fills[layout],
		Unit:   spec.Unit{Defines: map[string]string{"FILLS": "0"}},
	}), filledKind)
}

// fills are the kernels that fill a panel, by layout. They do not look at values, so that one serves both types.
var fills = [2]*spec.Variant{lanestream.Places: fill(lanestream.Places), lanestream.Pairs: fill(lanestream.Pairs)}

func fill(layout uint32) *spec.Variant {
	return spec.PTX("cuda_fill_"+[]string{"places", "pairs"}[layout], spec.Variant{
		In: dtype.F16, Entry: "lanestream", Local: spec.Line(32 * fillWarps),
		Consts: []spec.Const{
			spec.Define("PAIRS", layout), spec.Define("COLS", filledCols), spec.Define("DEPTH", filledDepth),
			spec.Define("STAGES", filledStages), spec.Define("FILLERS", fillers),
			spec.Define("FILL_BUFFER", fillRing), spec.Define("MOST_BLOCKS", mostCTAs),
			spec.Define("WARPS_OF_BLOCK", fillWarps), spec.Define("BUFFERS_BYTES", ringsBytes),
		},
		Need: spec.Need{Arch: 90, Exact: true}, Shared: ringsBytes + 8*slots*fillWarps, Overlaps: true, Workspace: true,
		Unit: spec.Unit{
			Source: "filled.cu", Defines: map[string]string{"ENTRY": "lanestream", "ELEM": include.Define(dtype.F16),
				"FILLS": "1"},
		},
	})
}

// filledFor returns the variant of filled.cu for matrices of a type and layout, nil if the device does not run it.
func filledFor(t dtype.Type, layout int, caps backend.Caps) *spec.Variant {
	for _, x := range cuda {
		if x.Kind == filledKind && x.In == t && sizesOf(x).layout == uint32(layout) && x.Met(caps) && x.Before.Met(caps) {
			return x
		}
	}
	return nil
}

// panel is how a matrix is cut into panels: groups of rows of one, fewer in the last panel, and stages of a
// group's columns.
type panel struct {
	groups, number, stages int
	clusters               int // that run at once
}

// bytes is one panel's size in the workspace.
func (p panel) bytes() int64 {
	return int64(p.groups) * int64(p.stages) * filledDepth / lanestream.StepCols * blockBytes
}

// panelsOf cuts a matrix into one panel, or into some whose tiles fill the device two times, or once where that takes
// too much memory, whichever takes less time.
func panelsOf(s lanestream.Shape, n int, caps backend.Caps) panel {
	const tileGroups = 2 * clusterRows
	one := panel{stages: spec.Ceil(s.Segments*s.SegmentSteps, filledDepth/lanestream.StepCols),
		clusters: max(1, min(caps.Units, mostCTAs)/clusterRows)}
	one.groups, one.number = max(1, spec.Ceil(s.Groups, tileGroups))*tileGroups, 1
	if one.bytes() <= panelBytes {
		return one
	}
	x := one
	tile := panel{groups: tileGroups, stages: x.stages}
	most, wide := max(1, int(panelBytes/tile.bytes())), max(1, spec.Ceil(n, filledCols))
	high := max(1, 2*x.clusters/wide)
	if high > most {
		high = max(1, x.clusters/wide)
	}
	x.groups = min(x.groups, min(high, most)*tileGroups)
	x.number = max(1, spec.Ceil(s.Groups, x.groups))
	if one.bytes() <= wholeBytes && one.cost(s, n) < x.cost(s, n) {
		return one
	}
	return x
}

// splits is how many splits the sums of a panel's last tiles are cut into, and how many tiles those are.
func (p panel) splits(groups, n int) (splits, tiles int) {
	tiles = spec.Ceil(groups, 2*clusterRows) * spec.Ceil(n, filledCols) % p.clusters
	if tiles == 0 {
		return 1, 0
	}
	return max(1, min(p.clusters/tiles, filledSplits, p.stages/leastStages)), tiles
}

// suitsFilled returns the variant of filled.cu where that multiplies fastest for variants of a type in a
// problem, or was asked for, else nil.
func suitsFilled(v *spec.Variant, s lanestream.Shape, p spec.Problem) *spec.Variant {
	x := filledFor(v.In, s.Layout, p.Caps)
	switch {
	case x == nil || p.N <= mostFew:
		return nil
	case v.Kind == filledKind:
		return x
	case p.N <= mostTurns && s.Layout == lanestream.Places:
		return nil
	}
	other := prefilled(s, p.N, p.Caps)
	if s.Layout == lanestream.Pairs {
		other = inTurns(v, s, p.N)
	}
	if panelsOf(s, p.N, p.Caps).cost(s, p.N) >= other {
		return nil
	}
	return x
}

// launchFilled fills the first panel, and then multiplies each while the next one is filled.
func launchFilled(v *spec.Variant, s lanestream.Shape, p spec.Problem) (spec.Launch, error) {
	x := panelsOf(s, p.N, p.Caps)
	l := spec.Launch{Workspace: int64(min(x.number, 2)) * x.bytes()}
	sums := 0
	for i := range x.number {
		if splits, tiles := x.splits(min(x.groups, s.Groups-i*x.groups), p.N); splits > 1 {
			sums = max(sums, splits*tiles)
		}
	}
	l.Workspace = max(spec.NoWorkspace, l.Workspace+int64(sums)*4*256*filledCols)
	if err := p.CheckBinding(v, "the workspace", l.Workspace); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel lanestream/%s: %w", v.Name, err)
	}
	params := paramsOf(s, p)
	params.each = uint32(x.groups)
	add := func(v *spec.Variant, panel int) {
		params.width = uint32(panel)
		l.Passes = append(l.Passes, spec.Pass{Variant: v, Groups: [3]uint32{uint32(x.clusters * clusterRows), 1, 1},
			Params: spec.Block(params)})
	}
	add(v.Before, 0)
	for i := range x.number {
		add(v.For(p), i)
	}
	return l, nil
}
