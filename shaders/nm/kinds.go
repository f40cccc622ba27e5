// The kernels for N:M sparsity: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package nm

import "github.com/spmmrun/spmm/shaders/spec"

var (
	group24Kind = &spec.Kind{
		Name:    "group24",
		Summary: "2:4 on sparse warpgroup MMA; A and B in shared memory, B by tensor maps, multicast in clusters of two CTAs",
		When:    "2:4 and more than about 128 columns on compute capability 9.0.",
	}
	few24Kind = &spec.Kind{
		Name:    "few24",
		Summary: "as group24, with the sum over k shared by the CTAs of a cluster (split-K)",
		When:    "2:4 and up to 128 columns, or C of few tiles, on compute capability 9.0.",
	}
	sparse24Kind = &spec.Kind{
		Name:    "sparse24",
		Summary: "2:4 on sparse MMA of single warps, on tiles that asynchronous copies bring to shared memory",
		When:    "2:4 on compute capability 8.0 to 8.9.",
	}
	vectorKind = &spec.Kind{
		Name:    "vector",
		Summary: "the rows of B that a panel keeps are gathered into shared memory once for all its rows; then the product is dense",
		When:    "N:M in units of 16 rows and more.",
	}
	expandKind = &spec.Kind{
		Name:    "expand",
		Summary: "tiles of single entries put together in shared memory and multiplied densely by MMA",
		When:    "N:M of single entries in 16 bits on CUDA.",
	}
	elementKind = &spec.Kind{
		Name:    "element",
		Summary: "each thread has rows of C; the M rows of B that a slot may meet are staged in shared memory without bank conflicts",
		When:    "N:M of single entries where no matrix units take it.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "units of 8 rows on f32 multiply-adds, rows of B from L2",
		When:    "N:M in units of a multiple of 8 rows that no taller kernel takes, and f32.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "as vector, on cooperative matrices of any shape",
		When:    "N:M in tall units on Vulkan devices whose fragment layout is not known.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "cooperative matrices whose operands lanes load straight into registers; B in shared memory",
		When:    "N:M in units of 32 rows and more on Vulkan devices that hold fragments as PTX's mma does.",
	}
	lanes24Kind = &spec.Kind{
		Name:    "lanes24",
		Summary: "as lanes, expanding 2:4 in registers",
		When:    "2:4 on the same devices.",
	}
	gatherKind = &spec.Kind{
		Name:    "gather",
		Summary: "as lanes for a panel of 16 rows, each lane gathering its own rows of B",
		When:    "N:M in units of 16 rows on the same devices.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "panels of rows multiplied by vector instructions, rows of B prefetched",
		When:    "N:M on the CPU.",
	}
)

// packing holds the figures of a variant that decide how matrices are packed: the units that it takes, and the order of
// values.
type packing struct{ unit, order uint32 }

// sizes are a variant's.
type sizes struct {
	packing
	parts      uint32 // CTAs that share a tile's sum
	resident   uint32 // CTAs of a multiprocessor; 0: what fits
	narrowRows uint32 // rows of a warp where columns are few; 0: as many as of a tile
}

// sized completes a variant of tiles of rows by cols.
func (x sizes) sized(v *spec.Variant, kind *spec.Kind, rows, cols uint32) *spec.Variant {
	v.Kind, v.Shape, v.Packing = kind, x, x.packing
	v.Tile = spec.Tile{Rows: int(rows), Cols: int(cols), Splits: int(x.parts), Panel: int(x.unit)}
	return v
}

// of is the sizes of a variant that has no other than its packing.
func of(unit, order uint32) sizes { return sizes{packing: packing{unit, order}} }

// sizesOf returns a variant's.
func sizesOf(v *spec.Variant) sizes { return v.Shape.(sizes) }
