// The variants for CUDA: vector.cu (tensor cores, units of many rows), expand.cu and element.cu (single entries),
// sparse24.cu, group24.cu and few24.cu (2:4 on sparse tensor cores), scalar.cu (units of 8 rows).

package nm

import (
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs, Variants24(t)...)
		vs = append(vs,
			tall(t, 128, 128, 4, 0, 0),
			tall(t, 128, 128, 3, 64, 32),
			tall(t, 64, 128, 4, 0, 0),
			tall(t, 64, 128, 3, 64, 32),
			tall(t, 32, 256, 3, 32, 32),
			tall(t, 16, 128, 3, 16, 32),
			expand(t),
			scalarCUDA(t),
		)
	}
	vs = append(vs, fewColumns...)
	return append(vs, element(), scalarCUDA(dtype.F32))
}

// tall is vector.cu: panels of v rows, cols columns a block, stages of 64 rows of B; a warp's tile, or, where that is
// none, compute capability 9.0.
func tall(t dtype.Type, v, cols, stages, warpRows, warpCols uint32) *spec.Variant {
	const depth = 64
	warps := v / 64 * (cols / 128) * 4
	if warpRows > 0 {
		warps = v / warpRows * (cols / warpCols)
	}
	consts := []spec.Const{
		spec.Define("V", v), spec.Define("PACK", plainPack), spec.Define("ROWS", v), spec.Define("COLS", cols),
		spec.Define("DEPTH", depth), spec.Define("STAGES", stages),
	}
	if warpRows > 0 {
		consts = append(consts, spec.Define("WARP_ROWS", warpRows), spec.Define("WARP_COLS", warpCols))
	} else {
		consts = append(consts, spec.Define("HOPPER", 1))
	}
	x := cudaVariant("vector.cu", fmt.Sprintf("cuda_v%d_%v", v, t), t, warps, stages*depth*(2*v+2*cols), consts)
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	if warpRows == 0 {
		onHopper(x)
	}
	return of(v, plainPack).sized(x, vectorKind, v, cols)
}

// sparseWarps is sparse24.cu.
func sparseWarps(t dtype.Type, cols, depth, stages, tileRows, tileCols uint32) *spec.Variant {
	const rows = 128
	x := cudaVariant("sparse24.cu", fmt.Sprintf("cuda_24_%v", t), t, rows/tileRows*(cols/tileCols),
		stages*depth*(rows+rows/8+2*cols), []spec.Const{
			spec.Define("V", 1), spec.Define("PACK", warpPack), spec.Define("ROWS", rows), spec.Define("COLS", cols),
			spec.Define("DEPTH", depth),
			spec.Define("STAGES", stages), spec.Define("WARP_ROWS", tileRows), spec.Define("WARP_COLS", tileCols),
		})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	return of(1, warpPack).sized(x, sparse24Kind, rows, cols)
}

// groupCols is the columns of a tile of group24.cu.
const groupCols = 128

// sparseGroups is group24.cu. Of the tiles and clusters tried (docs/history/nm.md), these are the fastest.
func sparseGroups(t dtype.Type) *spec.Variant {
	const rows, stages = 256, 6
	x := cudaVariant("group24.cu", fmt.Sprintf("cuda_24_%v", t), t, 12, stages*64*(rows+2*groupCols)+256, []spec.Const{
		spec.Define("V", 1), spec.Define("PACK", groupPack), spec.Define("ROWS", rows), spec.Define("COLS", groupCols),
		spec.Define("STAGES", stages),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	x.Maps, x.Overlaps, x.AnyOrder = 1, true, true
	onHopper(x)
	return of(1, groupPack).sized(x, group24Kind, rows, groupCols)
}

// fewRows is the rows of a tile of few24.cu, mostFew the columns of its widest.
const fewRows, mostFew = 128, 128

// fewColumns are few24.cu, of each type by rising number of columns.
var fewColumns = append(fews(dtype.F16), fews(dtype.BF16)...)

// fews are few24.cu for a type.
func fews(t dtype.Type) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range []struct{ cols, stages, parts, resident uint32 }{{16, 9, 3, 2}, {32, 7, 3, 2}, {64, 6, 2, 2},
		{mostFew, 7, 3, 1}, {mostFew, 8, 2, 1}} {
		exchange := include.ExchangeBytes(fewRows, c.cols, c.parts)
		x := cudaVariant("few24.cu", fmt.Sprintf("cuda_24_n%d_parts%d_%v", c.cols, c.parts, t), t, 10,
			c.stages*64*(fewRows+2*c.cols)+256+exchange, []spec.Const{
				spec.Define("V", 1), spec.Define("PACK", groupPack), spec.Define("ROWS", fewRows), spec.Define("COLS", c.cols),
				spec.Define("STAGES", c.stages), spec.Define("SPLITS", c.parts), spec.Define("RESIDENT", c.resident),
				spec.Define("EXCHANGE", exchange),
			})
		x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
		x.Maps, x.Overlaps, x.AnyOrder = 1, true, true
		onHopper(x)
		s := sizes{packing: packing{1, groupPack}, parts: c.parts, resident: c.resident}
		vs = append(vs, s.sized(x, few24Kind, fewRows, c.cols))
	}
	return vs
}

// suited returns the variant for a problem: of those for few columns the first that has enough, and whose blocks, each
// with a multiprocessor for itself, run at the same time; or the last that has enough. The widest take more columns,
// too, where all their blocks run at the same time.
func suited(v *spec.Variant, _ *spec.Packed, p spec.Problem) *spec.Variant {
	if v.Kind == coop24Kind {
		return suited24(v, p)
	}
	if v.Kind != group24Kind {
		return v
	}
	for _, x := range fewColumns {
		cols, parts := x.Tile.Cols, int(sizesOf(x).parts)
		if x.In != v.In || p.N > cols && cols < mostFew {
			continue
		}
		most := p.Caps.Units // multiprocessors that clusters of two have a place on
		if parts > 2 {
			most = most * 8 / 9
		}
		fit := int64(spec.Ceil(p.M, fewRows))*int64(spec.Ceil(p.N, cols))*int64(parts) <= int64(most)
		if fit || p.N <= cols {
			v = x
		}
		if fit || p.N <= cols && sizesOf(x).resident > 1 {
			break
		}
	}
	return v
}

// few lays out a launch of few24.cu.
func few(v *spec.Variant, p spec.Problem, b int, x *params) (groups [3]uint32, maps []backend.TileMap, err error) {
	cols := uint32(v.Tile.Cols)
	x.blocks = uint32(spec.Ceil(p.M, fewRows))
	n := int64(x.blocks) * int64(spec.Ceil(p.N, int(cols))) * int64(sizesOf(v).parts)
	if n > 1<<31-1 {
		return groups, nil, fmt.Errorf("%d workgroups exceed %d: %w", n, 1<<31-1, backend.ErrUnsupported)
	}
	x.width = uint32(n)
	return [3]uint32{x.width, 1, 1}, []backend.TileMap{mapOfB(p, b, cols, 64, min(64, cols))}, nil
}

// expand is expand.cu.
func expand(t dtype.Type) *spec.Variant {
	const rows, cols, depth, stages = 128, 128, 64, 3
	x := cudaVariant("expand.cu", fmt.Sprintf("cuda_v1_%v", t), t, 16, 2*rows*depth*2+stages*depth*cols*2, []spec.Const{
		spec.Define("V", 1), spec.Define("PACK", plainPack), spec.Define("ROWS", rows), spec.Define("COLS", cols),
		spec.Define("NARROW_ROWS", 2),
	})
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	return singles.sized(x, expandKind, rows, cols)
}

// singles is the sizes of kernels for single entries whose warps take two rows where columns are few.
var singles = sizes{packing: packing{1, plainPack}, narrowRows: 2}

// element is element.cu.
func element() *spec.Variant {
	const rows, cols, warpCols, depth, slots = 128, 64, 16, 64, mostN
	stage := up16(slots*(rows+1)*8) + up16(cols*4*(depth+1))
	return singles.sized(cudaVariant("element.cu", "cuda_v1_f32", dtype.F32, rows/32*(cols/warpCols), 2*stage,
		[]spec.Const{
			spec.Define("V", 1), spec.Define("PACK", plainPack), spec.Define("ROWS", rows), spec.Define("COLS", cols),
			spec.Define("WARP_COLS", warpCols),
			spec.Define("DEPTH", depth), spec.Define("SLOTS", slots), spec.Define("NARROW_ROWS", 2),
		}), elementKind, rows, cols)
}

// scalarCUDA is scalar.cu.
func scalarCUDA(t dtype.Type) *spec.Variant {
	const warps = 4
	return of(anyTall, plainPack).sized(cudaVariant("scalar.cu", fmt.Sprintf("cuda_v%d_%v", anyTall, t), t, warps, 0,
		[]spec.Const{
			spec.Define("V", anyTall), spec.Define("PACK", plainPack), spec.Define("ROWS", 8*warps), spec.Define("COLS", 128),
			spec.Define("WARPS", warps),
		}), scalarKind, 8*warps, 128)
}

func cudaVariant(source, name string, t dtype.Type, warps, shared uint32, consts []spec.Const) *spec.Variant {
	x := spec.CUDA(name, "nm", t, spec.Variant{
		Local: spec.Line(32 * warps), Consts: consts, Shared: shared, Unit: spec.Unit{Source: source},
	})
	if source == "element.cu" { // which is of one type
		delete(x.Unit.Defines, "ELEM")
	}
	return x
}

// onHopper makes a variant one for compute capability 9.0 alone.
func onHopper(x *spec.Variant) {
	x.Name += "_hopper"
	x.Unit.Blob = x.Name + ".ptx"
	x.Unit.Arch = "compute_90a"
	x.Unit.Defines = maps.Clone(x.Unit.Defines)
	x.Need.Arch, x.Need.Exact = 90, true
}

// clusters lays out a launch of sparseGroups: what takes least if as many clusters of two blocks as run at once take
// tiles in turn. Tiles whose cluster shares A's columns have a cluster each. It sets the parameters that this decides.
func clusters(p spec.Problem, b int, x *params) (groups [3]uint32, maps []backend.TileMap) {
	most := max(1, p.Caps.Units/2) // clusters
	shapes, wide := clusterTiles, groupCols
	if p.N <= 64 && !p.BCol {
		shapes, wide = narrowTiles, 64
	}
	least := math.Inf(1)
	for _, t := range shapes {
		tiles := spec.Ceil(p.M, t.rows*t.down) * spec.Ceil(p.N, wide*t.across)
		turns := spec.Ceil(tiles, most)
		if cost := t.cost(wide) * float64(turns); cost < least {
			least = cost
			x.tall, x.wide = uint32(t.rows), spec.Flag(t.down*t.across == 1)
			if x.wide == 0 {
				tiles = spec.Ceil(tiles, max(1, turns))
			}
			groups = [3]uint32{uint32(2 * tiles), 1, 1}
			maps = []backend.TileMap{mapOfB(p, b, uint32(wide/t.down), uint32(64/t.down), 64)}
		}
	}
	x.blocks, x.width = uint32(spec.Ceil(p.M, int(x.tall))), groups[0]
	return groups, maps
}

// mapOfB returns the tensor map of B. A copy has 64 rows of `lines` columns if B is column-major, else `rows` rows of
// `cols` columns.
func mapOfB(p spec.Problem, arg int, lines, rows, cols uint32) backend.TileMap {
	ld := uint32(p.LDB)
	if p.BCol {
		return backend.TileMap{Arg: arg, Rows: uint32(max(1, p.N)), Cols: uint32(max(1, p.K)), Pitch: ld, TileRows: lines,
			TileCols: 64}
	}
	return backend.TileMap{Arg: arg, Rows: uint32(max(1, p.K)), Cols: ld, Pitch: ld, TileRows: rows, TileCols: cols}
}

// tileShape is how the two blocks of a cluster compute at a time: the rows of a block's tile, and how many tiles are
// below and beside each other, one if both compute the same.
type tileShape struct{ rows, down, across int }

// clusterTiles are the tiles of clusters, narrowTiles those for up to 64 columns.
var (
	clusterTiles = []tileShape{{256, 1, 2}, {128, 2, 1}, {128, 1, 1}, {64, 1, 1}}
	narrowTiles  = []tileShape{{128, 1, 1}, {64, 1, 1}}
)

// clusterCost is the time that a cluster takes for 64 columns of A, in nanoseconds.
type clusterCost struct {
	Step   float64 `json:"step_ns"`
	Row    float64 `json:"row_ns"`    // more for each row of the tiles that it computes at a time,
	Column float64 `json:"column_ns"` // and for each column
}

// clusterCosts are the device model's.
var clusterCosts = sync.OnceValue(func() clusterCost {
	return model.Kernel[clusterCost](backend.CodePTX, "nm/group24")
})

// cost is the time that a cluster takes for tiles of this many columns.
func (t tileShape) cost(cols int) float64 {
	c := clusterCosts()
	return c.Step + c.Row*float64(t.rows*t.down) + c.Column*float64(cols*t.across)
}

// cudaTile returns the rows and columns that a block computes, given those of a wide problem.
func cudaTile(v *spec.Variant, of nm.Pattern, p spec.Problem, rows, cols int) (int, int) {
	each := sizesOf(v).narrowRows * v.Local[0] / 32
	if each == 0 {
		return rows, cols
	}
	most := 8 // columns of a narrow problem, see narrow.cuh
	if of.M > 32 {
		most = 4
	}
	switch {
	case p.N <= most: // as many blocks as run at once, so that each brings B once for many rows
		return max(int(each), spec.Ceil(p.M, 2*max(1, p.Caps.Units))), most
	case v.In != dtype.F32 && p.N <= 32:
		return rows, 32
	}
	return rows, cols
}

func up16(n uint32) uint32 { return (n + 15) &^ 15 }
