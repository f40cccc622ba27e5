// The variants for CUDA.

package hrpb

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cudaWarps   = 4 // of a workgroup
	cudaBlock   = 8 // active columns of a block: the k of the instructions
	cudaDepth   = 3 // stages of a warp, as a rule
	cudaWorkers = 1024
)

// cudaSizes are those of the kernels for bricks.
var cudaSizes = sizes{block: cudaBlock, workers: cudaWorkers, ordered: true}

// full are the variants of kernel_f32.cu, for each precision first the one that a matrix is packed for; Launch runs the
// one that suits the columns.
var full = []*spec.Variant{
	fullVariant("cuda90_n64_tf32", dtype.TF32, 90, 64), // rounds to tf32 in one instruction; launches overlap
	fullVariant("cuda90_n128_tf32", dtype.TF32, 90, 128),
	fullVariant("cuda90_n32_tf32", dtype.TF32, 90, 32),
	fullVariant("cuda_n64_tf32", dtype.TF32, 80, 64),
	fullVariant("cuda_n128_tf32", dtype.TF32, 80, 128),
	fullVariant("cuda_n32_tf32", dtype.TF32, 80, 32),
	fullVariant("cuda90_n64_f32", dtype.F32, 90, 64),
	fullVariant("cuda90_n32_f32", dtype.F32, 90, 32),
	fullVariant("cuda_n64_f32", dtype.F32, 80, 64),
	fullVariant("cuda_n32_f32", dtype.F32, 80, 32),
}

func cudaVariants() []*spec.Variant {
	return slices.Concat(full, cudaStrips, []*spec.Variant{
		halfVariant("cuda90_f16", dtype.F16, 90), halfVariant("cuda90_bf16", dtype.BF16, 90),
		halfVariant("cuda_f16", dtype.F16, 80), halfVariant("cuda_bf16", dtype.BF16, 80),
	}, doubles)
}

// fullVariant is kernel_f32.cu with teams of cols columns.
func fullVariant(name string, t dtype.Type, arch int, cols uint32) *spec.Variant {
	shape, split, least, depth := spec.Shape(16, 8, cudaBlock, t), "0", "4", uint32(cudaDepth)
	switch {
	case t == dtype.F32:
		shape, split = spec.Shape(16, 8, cudaBlock, dtype.BF16), "1"
	case cols == 32:
		least = "5"
	case cols == 128:
		depth = 2 // what is left of the first-level cache is worth more than a stage
	}
	shared := uint32(cudaWarps * depth * (cudaBlock*(4*cols+32) + 2*cudaBlock + 16*cudaBlock*4))
	return cudaSizes.sized(cudaVariant(name, t, shape, shared, cols, depth, spec.Unit{
		Source: "kernel_f32.cu", Arch: fmt.Sprintf("compute_%d", arch),
		Defines: map[string]string{"SPLIT": split, "LEAST": least},
	}), floatKind, hrpb.PanelRows, cols)
}

// halfVariant is kernel.cu.
func halfVariant(name string, t dtype.Type, arch int) *spec.Variant {
	const size, cols = 2, 128
	stage := uint32(cudaBlock*(cols*size+32)+2*cudaBlock+16*cudaBlock*size+15) &^ 15
	shared := cudaWarps * max(cudaDepth*stage, 16*(4*cols+16))
	return cudaSizes.sized(cudaVariant(name, t, spec.Shape(16, 8, cudaBlock, t), shared, cols, cudaDepth, spec.Unit{
		Source: "kernel.cu", Arch: fmt.Sprintf("compute_%d", arch),
		Defines: map[string]string{"ELEM": include.Define(t)},
	}), halfKind, hrpb.PanelRows, cols)
}

func cudaVariant(name string, t dtype.Type, shape backend.MatrixShape, shared, cols, depth uint32,
	u spec.Unit) *spec.Variant {
	const entry = "hrpb"
	arch, overlaps := 80, u.Arch == "compute_90"
	if overlaps {
		arch, u.Defines["OVERLAP"] = 90, "1"
	}
	u.Defines["ENTRY"] = entry
	return spec.PTX(name, spec.Variant{
		In: t, Local: spec.Line(32 * cudaWarps), Entry: entry, Shared: shared, Overlaps: overlaps,
		Need: spec.Need{Arch: arch, Shapes: []backend.MatrixShape{shape}},
		Consts: []spec.Const{
			spec.Define("BLOCK", cudaBlock), spec.Define("COLS", cols), spec.Define("WARPS", cudaWarps),
			spec.Define("DEPTH", depth),
			spec.Define("WORKERS", cudaWorkers), spec.Define("ORDER", 1),
		},
		Out:  []dtype.Type{dtype.F16, dtype.BF16},
		Unit: u,
	})
}

// suited returns, for those that matrices are packed for, the variant for few columns where there are few, and that for
// many where there is enough work for all multiprocessors.
func suited(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	if sizesOf(v).height > 0 {
		return suitedStrips(v, e, p)
	}
	if v.Kind == lanesKind {
		return lanesFor(v, p.N)
	}
	const warps = 12 // of a multiprocessor, at least
	cols := 64
	switch {
	case v.Kind == doubleKind:
		return suitedDouble(v, p)
	case v.Kind != floatKind || v.Tile.Cols != cols:
		return v
	case p.N <= 32:
		cols = 32
	case e.Items*int64(spec.Ceil(p.N, 128)) >= warps*int64(p.Caps.Units):
		cols = 128
	}
	for _, x := range full {
		if x.In == v.In && x.Unit.Arch == v.Unit.Arch && x.Tile.Cols == cols {
			return x
		}
	}
	return v
}

// cudaParts is the grid of phase 0: workgroups with a team of four, with two teams of two, with four warps
// on their own.
func cudaParts(w hrpb.Work, cols int) grid {
	ones := int64(w.Parts - w.Fours - w.Twos)
	return grid{int64(w.Fours) + int64(w.Twos+1)/2 + (ones+3)/4, cols}
}

// cudaSums is the grid of phase 1: a warp for each row of a split panel.
func cudaSums(w hrpb.Work) grid { return grid{int64(w.Splits) * hrpb.PanelRows / cudaWarps, 128} }
