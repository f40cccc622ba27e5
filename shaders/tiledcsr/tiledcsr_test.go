// Products on every device present, held against exact sums; values that are not finite; refusals.

package tiledcsr_test

import (
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/tiledcsr"
)

var suite = shadertest.Suite{
	Format: tiledcsr.Format,
	Types:  shadertest.Floats, Heights: []uint32{8},
	Others: func(sub uint32) []*spec.Variant { return panel.Coops(sub, 0) },
	Cases: func(v *spec.Variant, _ dtype.Type) []shadertest.Case {
		cs := shadertest.InOrders(v, cases())
		for i := range cs {
			cs[i].Fold = cs[i].Fold && !panel.InStreams(v) // whose clusters take tiles in turn
		}
		return cs
	},
	Twice:  shadertest.Always(shadertest.Case{Pattern: shadertest.Uneven(100, 500, 0.1), K: 500, N: 270, Real: true}),
	Units:  []int{1, 1 << 20}, // other strips
	Panel:  spec.Define("V", 8),
	Covers: covers,
}

func TestFormat(t *testing.T) { suite.Run(t) }

func cases() []shadertest.Case {
	uneven := func(rows, k, _ int, density float64) [][]int32 { return shadertest.Uneven(rows, k, density) }
	ragged := shadertest.Ragged(shadertest.Uneven(150, 400, 3./400), 400)
	heavy := shadertest.Ragged(shadertest.Uneven(190, 5003, 3./5003), 5003) // of ten panels and more one in many parts
	// Groups of every number of tiles around the stages, in rows that the shuffle cannot bring together.
	var tiles [][]int32
	for n := range 12 {
		for range 16 {
			tiles = append(tiles, shadertest.Spread(200, 16*n)[0])
		}
	}
	cs := append(shadertest.Basics(uneven), []shadertest.Case{
		{Name: "whole groups", Pattern: shadertest.Uneven(64, 200, 0.3), K: 200, N: 128},
		{Name: "several column blocks", Pattern: shadertest.Uneven(21, 50, 0.5), K: 50, N: 1300, Beta: 1},
		{Name: "one strip", Pattern: shadertest.Uneven(61, 50, 0.5), K: 50, N: 1300, Units: 1 << 20},
		{Name: "a strip for each block", Pattern: shadertest.Uneven(20, 3000, 0.01), K: 3000, N: 1030, Units: 1},
		{Name: "a grid that turns round", Pattern: shadertest.Uneven(300, 50, 0.2), K: 50, N: 300, Fold: true},
		{Name: "every number of tiles", Pattern: tiles, K: 200, N: 20},
	}...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "ragged", Pattern: ragged, K: 400}, 1, 2, 7, 8, 31, 64,
		129, 513)...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "a heavy panel", Pattern: heavy, K: 5003, Pad: 3,
		Alpha: -2, Beta: 0.5}, 5, 70, 513)...)
	return append(cs, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Uneven(29, 60, 0.3), K: 60, N: 77})...)
}

// covers: grids cover C without a strip to spare.
func covers(v *spec.Variant, p spec.Problem, l spec.Launch) bool {
	groups := [3]int{int(l.Passes[0].Groups[0]), int(l.Passes[0].Groups[1])}
	c := func(name string) int { return int(v.Const(name)) }
	switch {
	case panel.InStreams(v):
		return true // see package panel
	case c("WINDOW") > 0:
		return groups[1]*c("COLS") >= p.N && groups[0]*c("PANELS")*c("WARPS")*c("V") >= p.M
	}
	strip := int(shadertest.Param(tiledcsr.Format.Program, l.Passes[0], "strip"))
	cols := strip * c("COLS") * max(1, c("WARPS"))
	return strip > 0 && groups[0] == spec.Ceil(p.M, c("V"))*strip && groups[1] == spec.Ceil(p.N, cols)
}
