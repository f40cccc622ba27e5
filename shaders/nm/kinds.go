// The kernels for N:M sparsity: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package nm

import "github.com/spmmrun/spmm/shaders/spec"

var (
	group24Kind = &spec.Kind{
		Name:    "group24",
		Summary: "sparse warpgroup MMA on 2:4; A and B in shared memory; B comes by TMA, multicast in clusters of two CTAs",
		When:    "2:4 and more than about 128 columns on compute capability 9.0.",
	}
	few24Kind = &spec.Kind{
		Name:    "few24",
		Summary: "as group24, with split-K over the CTAs of a cluster",
		When:    "2:4 and up to 128 columns, or C with few tiles, on compute capability 9.0.",
	}
	sparse24Kind = &spec.Kind{
		Name:    "sparse24",
		Summary: "warp-level sparse MMA on 2:4, on tiles that asynchronous copies load into shared memory",
		When:    "2:4 on compute capability 8.0 to 8.9.",
	}
	vectorKind = &spec.Kind{
		Name:    "vector",
		Summary: "the rows of B that a panel needs are gathered into shared memory once for all its rows; the product of the two is then dense",
		When:    "N:M in units (the rows that share a pattern) of 16 rows or more on CUDA.",
	}
	expandKind = &spec.Kind{
		Name:    "expand",
		Summary: "entries are expanded to a dense tile in shared memory and multiplied by MMA",
		When:    "N:M of single entries in 16 bits on CUDA.",
	}
	elementKind = &spec.Kind{
		Name:    "element",
		Summary: "each thread has rows of C; the M rows of B that a slot may refer to are staged in shared memory without bank conflicts",
		When:    "N:M of single entries, on devices or in types without a suitable matrix unit.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "units of 8 rows by f32 FMA; rows of B come through the caches",
		When:    "N:M in units of a multiple of 8 rows, in f32 or if no kernel for 16 or 32 rows applies.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "as vector, with cooperative matrices of any MMA shape",
		When:    "N:M in units of 16 rows or more on other Vulkan devices.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "cooperative matrices; lanes load A directly into fragments, and B through shared memory",
		When:    "N:M in units of 32 rows or more on Vulkan devices with the fragment layout of PTX's mma.",
	}
	coop24Kind = &spec.Kind{
		Name:    "coop24",
		Summary: "cooperative matrices of any MMA shape on tiles in shared memory, where 2:4 is expanded to dense lines",
		When:    "2:4 on Vulkan devices with matrix units.",
	}
	gatherKind = &spec.Kind{
		Name:    "gather",
		Summary: "as lanes, for panels of 16 rows; each lane gathers its own rows of B",
		When:    "N:M in units of 16 rows on Vulkan devices with the fragment layout of PTX's mma.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "row panels with vector instructions; rows of B are prefetched",
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
