// Products on every device present, held against exact sums; values that are not finite; refusals.

package jigsaw_test

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: jigsaw.Format,
	Types: func(caps backend.Caps) []dtype.Type {
		return slices.DeleteFunc(shadertest.Floats(caps), func(t dtype.Type) bool {
			return t == dtype.F32 && caps.Code == backend.CodePTX // sparse tensor cores have no f32
		})
	},
	Others:    jigsaw.CoopVariants,
	Preferred: func(vs []*spec.Variant) bool { return len(vs) > 0 && vs[0].Sub == 32 && vs[0].Matrix },
	Tiles:     func(*spec.Variant) (stage, rows uint32) { return 16, 16 },
	Cases:     func(*spec.Variant, dtype.Type) []shadertest.Case { return cases() },
	Twice: shadertest.Always(shadertest.Case{Pattern: shadertest.Alike(100, 500, 2, 0.1), K: 500, N: 70,
		Real: true}),
	Panel:  spec.Define("BLOCK", 16),
	Covers: shadertest.CoversColumns,
}

func TestFormat(t *testing.T) { suite.Run(t) }

// behind is a pattern whose first strip is full and whose last has only the first and the last columns.
func behind(rows, k int) [][]int32 {
	p := shadertest.Alike(rows, k, 1, 0.01)
	for i := range 16 {
		p[i] = shadertest.Spread(k, k)[0]
		p[rows-1-i] = []int32{0, int32(k - 1)}
	}
	return p
}

func cases() []shadertest.Case {
	ragged := shadertest.Ragged(shadertest.Alike(150, 400, 1, 3./400), 400)
	cs := append(shadertest.Basics(shadertest.Alike), []shadertest.Case{
		{Name: "whole vectors", Pattern: shadertest.Alike(64, 200, 8, 0.3), K: 200, N: 128},
		{Name: "no zeros", Pattern: shadertest.Alike(50, 70, 1, 2), K: 70, N: 24},
		{Name: "several blocks, longer than a ring", Pattern: shadertest.Alike(600, 3000, 8, 0.05), K: 3000, N: 70},
		{Name: "one strip far behind", Pattern: behind(256, 4000), K: 4000, N: 9},
		{Name: "several column blocks", Pattern: shadertest.Alike(21, 50, 8, 0.5), K: 50, N: 531, Beta: 1},
		{Name: "every length", Pattern: shadertest.EveryLength(), K: 80, N: 20},
	}...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "ragged", Pattern: ragged, K: 400}, 1, 2, 7, 8, 31, 64,
		129)...)
	return append(cs, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Alike(29, 60, 8, 0.3), K: 60, N: 77})...)
}
