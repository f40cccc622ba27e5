// The variants for CUDA.

package hrpb

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cudaCols    = 128 // of a team
	cudaWarps   = 4   // of a workgroup
	cudaDepth   = 3   // stages of a warp
	cudaWorkers = 1024
)

func cudaVariants() []*spec.Variant {
	return []*spec.Variant{
		cudaVariant("cuda90_tf32", dtype.TF32, 90, 4), // rounds to tf32 in one instruction
		cudaVariant("cuda_tf32", dtype.TF32, 80, 4),
		cudaVariant("cuda_f16", dtype.F16, 80, 8),
		cudaVariant("cuda_bf16", dtype.BF16, 80, 8),
	}
}

// cudaVariant is kernel.cu with blocks of k active columns: the k of the instruction.
func cudaVariant(name string, t dtype.Type, arch int, block uint32) *spec.Variant {
	size := uint32(t.Size())
	stage := (block*(cudaCols*size+32) + 2*block + 16*block*size + 15) &^ 15
	shared := cudaWarps * max(cudaDepth*stage, 16*(4*cudaCols+16))
	return &spec.Variant{
		Name: name, In: t, Code: backend.CodePTX, Local: [3]uint32{32 * cudaWarps, 1, 1}, Entry: "hrpb", Shared: shared,
		Need: spec.Need{
			Arch: arch, Shared: shared,
			Shapes: []backend.MatrixShape{spec.Shape(16, 8, block, t)},
		},
		Consts: []spec.Const{
			spec.Define("BLOCK", block), spec.Define("COLS", cudaCols), spec.Define("WARPS", cudaWarps), spec.Define("DEPTH", cudaDepth),
			spec.Define("WORKERS", cudaWorkers),
		},
		Out: []dtype.Type{dtype.F16, dtype.BF16},
		Unit: spec.Unit{
			Source: "kernel.cu", Arch: fmt.Sprintf("compute_%d", arch), Blob: name + ".ptx",
			Defines: map[string]string{"ENTRY": "hrpb", "ELEM": include.Define(t)},
		},
	}
}

// cudaParts is the grid of phase 0: workgroups with a team of four, with two teams of two, with four warps
// on their own.
func cudaParts(w hrpb.Work) grid {
	ones := int64(w.Parts - w.Fours - w.Twos)
	return grid{int64(w.Fours) + int64(w.Twos+1)/2 + (ones+3)/4, cudaCols}
}

// cudaSums is the grid of phase 1: a warp for each row of a split panel.
func cudaSums(w hrpb.Work) grid { return grid{int64(w.Splits) * hrpb.PanelRows / cudaWarps, cudaCols} }
