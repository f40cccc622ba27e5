// The variants for CUDA: hopper.cu and hopper_split_k.cu (warpgroup MMA), kernel.cu (warp-level MMA), f32.cu.

package dense

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// cudaTile is a tile that a CTA computes. Its costs are in the device model: see costs.go.
type cudaTile struct {
	name       string
	hopper     bool
	quantised  bool // A is quantised
	rows, cols uint32
	stages     uint32
	down       uint32 // CTAs of a cluster along the rows
	across     uint32 // and along the columns
	splits     uint32 // CTAs that split K among them in hopper_split_k.cu; 0: another kernel
	transposed bool   // the kernel computes Cᵀ: rows and cols are its, while C stays row-major
	warpRows   uint32 // the tile of a warp, in kernel.cu
	warpCols   uint32
	resident   int // CTAs of a multiprocessor
}

// depth is the number of values of k in a step, for which the device model has costs.
const depth = 64

// cudaTiles are the tiles of all kinds. (Names that a kernel was compiled with, such as cuda_turned, stay: manifests
// list them.)
var cudaTiles = []cudaTile{
	{name: "cuda_hopper_n256", hopper: true, rows: 128, cols: 256, stages: 4, down: 2, across: 1, resident: 1},
	{name: "cuda_hopper_n224", hopper: true, rows: 128, cols: 224, stages: 4, down: 2, across: 1, resident: 1},
	{name: "cuda_hopper_n192", hopper: true, rows: 128, cols: 192, stages: 5, down: 2, across: 1, resident: 1},
	{name: "cuda_hopper_n160", hopper: true, rows: 128, cols: 160, stages: 5, down: 2, across: 1, resident: 1},
	{name: "cuda_hopper_n128", hopper: true, rows: 128, cols: 128, stages: 6, down: 2, across: 1, resident: 1},
	{name: "cuda_parts1_n192", hopper: true, rows: 128, cols: 192, stages: 5, down: 1, across: 1, splits: 1, resident: 1},
	{name: "cuda_parts2_n192", hopper: true, rows: 128, cols: 192, stages: 4, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_parts1_n128", hopper: true, rows: 128, cols: 128, stages: 7, down: 1, across: 2, splits: 1, resident: 1},
	{name: "cuda_parts2_n128", hopper: true, rows: 128, cols: 128, stages: 6, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_parts2_64x192", hopper: true, rows: 64, cols: 192, stages: 6, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_parts2_64x128", hopper: true, rows: 64, cols: 128, stages: 8, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_parts2_64x64", hopper: true, rows: 64, cols: 64, stages: 12, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_parts2_64x32", hopper: true, rows: 64, cols: 32, stages: 15, down: 1, across: 1, splits: 2, resident: 1},
	{name: "cuda_turned_128x192", hopper: true, transposed: true, rows: 128, cols: 192, stages: 5, down: 2, across: 1,
		resident: 1},
	{name: "cuda_turned_128x168", hopper: true, transposed: true, rows: 128, cols: 168, stages: 6, down: 2, across: 1,
		resident: 1},
	{name: "cuda_turned_128x96", hopper: true, transposed: true, rows: 128, cols: 96, stages: 7, down: 1, across: 2,
		resident: 1},
	{name: "cuda_turned_64x96", hopper: true, transposed: true, rows: 64, cols: 96, stages: 10, down: 1, across: 2,
		resident: 1},
	{name: "cuda_hopper_n64", hopper: true, rows: 128, cols: 64, stages: 8, down: 1, across: 1, resident: 1},
	{name: "cuda_hopper_n16", hopper: true, rows: 128, cols: 16, stages: 8, down: 1, across: 1, resident: 1},
	{name: "cuda_hopper_n8", hopper: true, rows: 128, cols: 8, stages: 8, down: 1, across: 1, resident: 1},
	{name: "cuda_quantised_n128", hopper: true, quantised: true, rows: 128, cols: 128, stages: 4, down: 2, across: 1,
		resident: 1},
	{name: "cuda_quantised_n64", hopper: true, quantised: true, rows: 128, cols: 64, stages: 6, down: 1, across: 1,
		resident: 1},
	{name: "cuda_quantised_n32", hopper: true, quantised: true, rows: 128, cols: 32, stages: 8, down: 1, across: 1,
		resident: 1},
	{name: "cuda_quantised_n16", hopper: true, quantised: true, rows: 128, cols: 16, stages: 8, down: 1, across: 1,
		resident: 1},
	{name: "cuda_quantised_n8", hopper: true, quantised: true, rows: 128, cols: 8, stages: 8, down: 1, across: 1,
		resident: 1},
	{name: "cuda_tile128", rows: 128, cols: 128, stages: 3, warpRows: 64, warpCols: 32, resident: 2},
	{name: "cuda_tile64", rows: 64, cols: 64, stages: 3, warpRows: 32, warpCols: 32, resident: 4},
}

// Constants of hopper.cu.
const (
	band       = 8    // cluster tiles across a band, see hopper.cu
	mostBlocks = 1024 // CTAs of a launch
)

// cudas is the variants.
var cudas = cudaVariants()

// cudaVariants returns, for each 16-bit type, two variants that pick a tile for the problem (hopper.cu, kernel.cu) and
// one for each tile; and the variants of f32.cu.
func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		for _, hopper := range []bool{true, false} {
			tiles := slices.DeleteFunc(slices.Clone(cudaTiles), func(c cudaTile) bool {
				return c.hopper != hopper || c.quantised
			})
			any := tiles[0].variant(t)
			any.Any = true
			any.Name = fmt.Sprintf("cuda_%s_%v", pick(hopper, "hopper", "tiles"), t)
			vs = append(vs, any)
			for _, c := range tiles {
				vs = append(vs, c.variant(t))
			}
		}
		vs = append(vs, halves(t))
	}
	return append(vs, floats(dtype.TF32), floats(dtype.F32))
}

func pick(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}

func (c cudaTile) variant(t dtype.Type) *spec.Variant {
	v := cuda(fmt.Sprintf("%s_%v", c.name, t), t, "kernel.cu", c.rows, c.cols, spec.Shape(16, 8, 16, t))
	v.Kind, v.Shape = c.kind(), c
	v.Tile.Splits, v.Tile.Cluster = int(c.splits), int(c.down*c.across)
	v.Consts = append(v.Consts, spec.Define("STAGES", c.stages))
	if c.hopper {
		v.Unit.Source, v.Unit.Arch = pick(c.splits > 0, "hopper_split_k.cu", "hopper.cu"), "compute_90a"
		v.Need.Arch, v.Need.Exact, v.Overlaps, v.Maps = 90, true, true, 2
		v.Consts = append(v.Consts, spec.Define("CLUSTER_ROWS", c.down), spec.Define("CLUSTER_COLS", c.across))
		stage := c.rows*depth*2 + spec.Ceil(c.cols, slab(c.cols))*slab(c.cols)*depth*2
		if c.transposed {
			stage = (c.rows + c.cols) * depth * 2
			v.AnyOrder = false
			v.Tile.Rows, v.Tile.Cols = int(c.cols), int(c.rows)
			v.Consts = append(v.Consts, spec.Define("TRANSPOSED", 1))
		}
		if c.splits > 0 {
			exchange := include.ExchangeBytes(c.rows, c.cols, c.splits)
			v.Local, v.Shared = [3]uint32{2*c.rows + 64, 1, 1}, c.stages*stage+256+exchange
			v.Consts = append(v.Consts, spec.Define("SPLITS", c.splits), spec.Define("EXCHANGE", exchange))
		} else {
			v.Local, v.Shared = [3]uint32{2*c.rows + 128, 1, 1}, c.stages*stage+512
			v.Consts = append(v.Consts, spec.Define("BAND", band), spec.Define("MOST_BLOCKS", mostBlocks))
		}
	} else {
		v.Local = [3]uint32{c.rows / c.warpRows * (c.cols / c.warpCols) * 32, 1, 1}
		v.Consts = append(v.Consts, spec.Define("WARP_ROWS", c.warpRows), spec.Define("WARP_COLS", c.warpCols))
		v.Shared = c.stages * (c.rows + c.cols) * 80
		if c.rows == tile && c.cols == tile { // the code of halves, launched in another way
			v.Unit.Blob = halves(t).Unit.Blob
		}
	}
	v.Need.Shared = v.Shared
	return v
}

// kind returns the kernel that computes the tile.
func (c cudaTile) kind() *spec.Kind {
	switch {
	case c.quantised:
		return quantisedKind
	case c.transposed:
		return transposedKind
	case c.splits > 0:
		return splitKind
	case c.hopper:
		return hopperKind
	}
	return warpKind
}

// columns reports whether the kernel stores tiles to a column-major C too.
func (c cudaTile) columns() bool {
	return c.hopper && !c.quantised && !c.transposed && (c.splits > 0 || c.cols <= 64)
}

// tileOf returns the tile of a variant that has one of cudaTiles.
func tileOf(v *spec.Variant) (cudaTile, bool) {
	c, ok := v.Shape.(cudaTile)
	return c, ok
}

// sides returns the rows and columns of a tile of the product that the kernel computes: of Cᵀ if it is transposed.
func sides(v *spec.Variant) (rows, cols uint32) {
	if c, ok := tileOf(v); ok {
		return c.rows, c.cols
	}
	return uint32(v.Tile.Rows), uint32(v.Tile.Cols)
}

// family returns the variants that a variant stands for: itself or, if it picks a tile, all variants of its types and
// source.
func family(v *spec.Variant) []*spec.Variant {
	of, ok := tileOf(v)
	if !ok || !v.Any {
		return []*spec.Variant{v}
	}
	var vs []*spec.Variant
	for _, x := range slices.Concat(cudas, quantisedCUDA) {
		if c, ok := tileOf(x); ok && !x.Any && c.hopper == of.hopper && x.In == v.In && x.Quant == v.Quant {
			vs = append(vs, x)
		}
	}
	return vs
}

// cuda returns a variant with the fields that all variants for CUDA share.
func cuda(name string, t dtype.Type, source string, rows, cols uint32, shapes ...backend.MatrixShape) *spec.Variant {
	return spec.CUDA(name, "dense", t, spec.Variant{
		Local: spec.Line(128), Consts: []spec.Const{spec.Define("ROWS", rows), spec.Define("COLS", cols)},
		Need: spec.Need{Shapes: shapes}, AnyOrder: true, Unit: spec.Unit{Source: source},
		Kind: floatKind, Tile: spec.Tile{Rows: int(rows), Cols: int(cols)},
	})
}

// halves returns the variant of kernel.cu with one tile for each CTA, without split-K.
func halves(t dtype.Type) *spec.Variant {
	const stages = 3
	v := cuda("cuda_"+t.String(), t, "kernel.cu", tile, tile, spec.Shape(16, 8, 16, t))
	v.Kind = warpKind
	v.Consts = append(v.Consts, spec.Define("STAGES", stages), spec.Define("WARP_ROWS", tile/2),
		spec.Define("WARP_COLS", tile/2))
	v.Shared = stages * 2 * tile * 80
	v.Need.Shared = v.Shared
	return v
}

// floats returns the variant of f32.cu for f32 or tf32.
func floats(t dtype.Type) *spec.Variant {
	if t == dtype.F32 {
		v := cuda("cuda_f32", t, "f32.cu", tile, tile)
		v.Consts = append(v.Consts, spec.Define("TF32", 0))
		return v
	}
	v := cuda("cuda_tf32", t, "f32.cu", tile, tile, spec.Shape(16, 8, 8, t))
	v.Consts = append(v.Consts, spec.Define("TF32", 1))
	return v
}
