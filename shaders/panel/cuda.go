// The variants for CUDA whose sources are in shaders/include: for all formats of panels, with constants of a kernel's
// own.

package panel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// CUDA is a variant for compute capability 8.0 whose kernel is the function entry of a source. The constants
// reach CUDA C++ as -D.
func CUDA(entry, source, name string, t dtype.Type, warps uint32, consts []spec.Const) *spec.Variant {
	return spec.CUDA(name, entry, t, spec.Variant{Local: spec.Line(32 * warps), Consts: consts,
		Unit: spec.Unit{Source: source}})
}

// Overlapping is the form of a variant of panel_gather.cuh for compute capability 9.0, whose launches overlap.
func Overlapping(x *spec.Variant) *spec.Variant {
	x.Name = strings.TrimSuffix(x.Name, x.In.String()) + "overlap_" + x.In.String()
	x.Overlaps, x.Need.Arch = true, 90
	x.Unit.Arch, x.Unit.Blob = "compute_90", x.Name+".ptx"
	return x
}

// Gathered is panel_gather.cuh, the function entry of kernel.cu: panels of v rows, an instruction of k = step,
// 64·chunks columns, warps a block, three stages of copies in flight.
func Gathered(entry, name string, t dtype.Type, v, step, chunks, warps, align uint32) *spec.Variant {
	x := CUDA(entry, "kernel.cu", name, t, warps,
		slices.Concat([]spec.Const{spec.Define("V", v)}, aligned(align), []spec.Const{
			spec.Define("STEP", step), spec.Define("CHUNKS", chunks), spec.Define("WARPS", warps),
			spec.Define("STAGES", 3), spec.Define("COLS", 64*chunks),
		}))
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, step, t)}
	return Shape{Packing: Packing{V: int(v), Align: int(align)}, Warps: int(warps)}.gathered(x, gatherKind, 64*chunks)
}

// gathered completes a variant whose warps share a panel, with columns of their own.
func (x Shape) gathered(v *spec.Variant, kind *spec.Kind, cols uint32) *spec.Variant {
	x.sized(v, kind, cols)
	v.Tile.Rows = x.V
	return v
}

// aligned is the constant that says to what vectors are padded, where the format does not.
func aligned(align uint32) []spec.Const {
	if align == 0 {
		return nil
	}
	return []spec.Const{spec.Define("ALIGN", align)}
}

// TF32 is panel_tf32.cuh, the function entry of tf32.cu, for panels of 8 rows.
func TF32(entry string, align uint32) *spec.Variant {
	const warps, chunks = 4, 2
	consts := slices.Concat([]spec.Const{spec.Define("V", 8)}, aligned(align), []spec.Const{
		spec.Define("STEP", 8), spec.Define("CHUNKS", chunks), spec.Define("WARPS", warps),
		spec.Define("COLS", 32*chunks),
	})
	x := CUDA(entry, "tf32.cu", "cuda_v8_tf32", dtype.TF32, warps, consts)
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 8, dtype.TF32)}
	return Shape{Packing: Packing{V: 8, Align: int(align)}, Warps: warps}.gathered(x, tf32Kind, 32*chunks)
}

// Unroll is the vectors that Scalar's kernel takes at a time.
const Unroll = 4

// Scalar is panel_scalar.cuh, the function entry of scalar.cu, for panels of v rows in f32.
func Scalar(entry string, v, align uint32) *spec.Variant {
	const warps = 4
	consts := slices.Concat([]spec.Const{spec.Define("V", v)}, aligned(align), []spec.Const{
		spec.Define("STEP", 8), spec.Define("CHUNKS", 1), spec.Define("UNROLL", Unroll), spec.Define("WARPS", warps),
		spec.Define("COLS", 128),
	})
	x := CUDA(entry, "scalar.cu", fmt.Sprintf("cuda_v%d_f32", v), dtype.F32, warps, consts)
	return Shape{Packing: Packing{V: int(v), Align: int(align)}, Warps: warps}.gathered(x, scalarKind, 128)
}

// Splits reports whether a variant has a second form for epilogues: those of kernel.cu for 16 rows and of tf32.cu,
// which they would cost 3 to 11 %.
func Splits(v *spec.Variant) bool {
	return v.Kind == tf32Kind || v.Kind == gatherKind && v.Tile.Panel == 16
}
