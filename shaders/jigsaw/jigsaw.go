// Package jigsaw multiplies from Jigsaw's format (package formats/jigsaw): on CUDA's sparse tensor cores,
// which take two of every four columns of A and so compute twice as much at a time; on Vulkan
// cooperative matrices, which know no sparse operand, and on any GPU or CPU, for which tiles are expanded
// to dense ones.
//
// The grid's x, folded along z, counts blocks of rows in the format's order, y blocks of columns of C. On
// CUDA a block keeps a ring of the rows of B that its columns name in shared memory and all its
// strips read there. The other kernels take blocks of one strip and gather B themselves.
//
// Structural zeros never touch B. Slots that hold no entry are multiplied like all others, which is
// right as long as B is finite. An output that is not finite is computed again from the entries
// alone, which the format's mask tells apart.
package jigsaw

import (
	"embed"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the Jigsaw kernel. What the first two arrays hold depends on who reads them:
// see pack.go.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "jigsaw", Args: spec.FormatArgs("index u32", "colidx u32", "metadata u32", "values T", "mask u32"),
		Params: spec.Params[params](), Files: files,
		Variants: spec.WithEpilogues(slices.Concat(cudaVariants(), vulkanVariants(), webgpuVariants(), cpuVariants()),
			spec.OneForm),
	},
	Encode: encode, Adopt: adopt, Launch: launch,
}

// params is the parameter block.
type params struct {
	blocks      uint32
	rows, n     uint32
	ldb, ldc    uint32
	store       uint32 // type of C, and epilogue: spec.Problem.StoreWord
	alpha, beta float32
	width       uint32 // of the grid in x
	lists       uint32 // where in colidx the blocks' columns begin: see pack.go
}

// launch lays the grid out: blocks along x, folded along z, and column blocks along y.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel jigsaw/%s: %w", v.Name, err)
	}
	blocks := spec.Ceil(p.M, v.Tile.Rows)
	groups, err := spec.Fold(int64(blocks), spec.Ceil(p.N, v.Tile.Cols))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel jigsaw/%s: %w", v.Name, err)
	}
	return spec.Launch{Passes: []spec.Pass{{Variant: v.For(p), Groups: groups, Params: spec.Block(params{
		blocks: uint32(blocks), rows: uint32(p.M), n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC),
		store: p.StoreWord(), alpha: float32(p.Alpha), beta: float32(p.Beta), width: groups[0],
		lists: uint32(ringWords(v, e.Format.(interface{ Steps() int }).Steps())),
	})}}}, nil
}
