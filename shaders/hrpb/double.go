// The variants for f64 on CUDA.

package hrpb

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/spec"
)

// doubles are the variants of double.cu, for each architecture first the one that a matrix is packed for; Launch runs
// the one that suits the columns.
var doubles = []*spec.Variant{
	doubleVariant(90, 64), // whose matrix units take a block in one instruction
	doubleVariant(90, 32),
	doubleVariant(90, 16),
	doubleVariant(80, 64),
	doubleVariant(80, 32),
	doubleVariant(80, 16),
}

// doubleVariant is double.cu with teams of cols columns.
func doubleVariant(arch int, cols uint32) *spec.Variant {
	name, shape := fmt.Sprintf("cuda_n%d_f64", cols), spec.Shape(8, 8, 4, dtype.F64)
	if arch == 90 {
		name, shape = fmt.Sprintf("cuda90_n%d_f64", cols), spec.Shape(16, 8, 8, dtype.F64)
	}
	v := spec.PTX(name, spec.Variant{
		In: dtype.F64, Local: spec.Line(32 * cudaWarps), Entry: "hrpb",
		Need: spec.Need{Arch: arch, F64: true, Shapes: []backend.MatrixShape{shape}},
		Consts: []spec.Const{
			spec.Define("BLOCK", cudaBlock), spec.Define("COLS", cols), spec.Define("WARPS", cudaWarps),
			spec.Define("WORKERS", cudaWorkers), spec.Define("ORDER", 1),
		},
		Unit: spec.Unit{Source: "double.cu"},
	})
	if arch == 90 {
		v.Overlaps, v.Unit.Defines = true, map[string]string{"OVERLAP": "1"}
	}
	return cudaSizes.sized(v, doubleKind, hrpb.PanelRows, cols)
}

// suitedDouble returns, for those that matrices are packed for, the variant for few columns where there are few.
func suitedDouble(v *spec.Variant, p spec.Problem) *spec.Variant {
	cols := 64
	switch {
	case v.Tile.Cols != cols:
		return v
	case p.N <= 16:
		cols = 16
	case p.N <= 32:
		cols = 32
	}
	for _, x := range doubles {
		if x.Need.Arch == v.Need.Arch && x.Tile.Cols == cols {
			return x
		}
	}
	return v
}
