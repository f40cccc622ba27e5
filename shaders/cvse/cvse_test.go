// Products on every device present, held against exact sums; values that are not finite; refusals.

package cvse_test

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: cvse.Format,
	Types:  shadertest.Floats, Heights: []uint32{8, 16},
	Others: cvse.CoopVariants,
	Preferred: func(vs []*spec.Variant) bool {
		return vs[0].Sub == 32 && slices.ContainsFunc(vs, func(v *spec.Variant) bool {
			return v.In == dtype.F16 && v.Const("V") == 16
		})
	},
	Tiles: func(v *spec.Variant) (stage, rows uint32) { return v.Const("STAGE"), v.Const("V") },
	Cases: func(v *spec.Variant, _ dtype.Type) []shadertest.Case { return shadertest.InOrders(v, cases()) },
	Twice: shadertest.Always(shadertest.Case{Pattern: shadertest.Alike(100, 500, 2, 0.1), K: 500, N: 70, Real: true}),
	Panel: spec.Define("V", 8),
	Covers: func(v *spec.Variant, p spec.Problem, l spec.Launch) bool {
		return panel.InStreams(v) || shadertest.CoversColumns(v, p, l)
	},
}

func TestFormat(t *testing.T) { suite.Run(t) }

func cases() []shadertest.Case {
	ragged := shadertest.Ragged(shadertest.Alike(150, 400, 1, 3./400), 400)
	// Of ten panels and more one is in many parts.
	heavy := shadertest.Ragged(shadertest.Alike(190, 5003, 1, 3./5003), 5003)
	cs := append(shadertest.Basics(shadertest.Alike), []shadertest.Case{
		{Name: "whole vectors", Pattern: shadertest.Alike(64, 200, 16, 0.3), K: 200, N: 128},
		{Name: "several column blocks", Pattern: shadertest.Alike(21, 50, 8, 0.5), K: 50, N: 531, Beta: 1},
		{Name: "every length", Pattern: shadertest.EveryLength(), K: 80, N: 20},
	}...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "ragged", Pattern: ragged, K: 400}, 1, 2, 7, 8, 31, 64,
		129)...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "a heavy panel", Pattern: heavy, K: 5003, Pad: 3,
		Alpha: -2, Beta: 0.5}, 5, 70, 513)...)
	return append(cs, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Alike(29, 60, 8, 0.3), K: 60, N: 77})...)
}
