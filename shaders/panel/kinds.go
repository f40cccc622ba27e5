// The kernels for panels of rows: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package panel

import "github.com/spmmrun/spmm/shaders/spec"

var (
	gatherKind = &spec.Kind{
		Name:    "gather",
		Summary: "one warp for each row panel: MMA on its column vectors; asynchronous copies gather rows of B from L2 into three stage buffers",
		When:    "Neighbouring panels that have few columns in common, in 16 bits on CUDA.",
	}
	hopperKind = &spec.Kind{
		Name:    "hopper",
		Summary: "MMA on windows (consecutive rows) of B in stage buffers, which TMA copies fill with multicast; vectors are ordered so that reads have no bank conflicts",
		When:    "Neighbouring panels that together need most rows of B, in 16 bits on compute capability 9.0.",
	}
	stagedKind = &spec.Kind{
		Name:    "staged",
		Summary: "MMA on windows of B in shared memory, loaded once for the panels of 16 warps",
		When:    "Neighbouring panels that together need most rows of B, in 16 bits on compute capability 8.0 to 8.9.",
	}
	tf32Kind = &spec.Kind{
		Name:    "tf32",
		Summary: "as gather, in tf32; fragments are loaded directly into registers",
		When:    "Panels in tf32 on CUDA.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "f32 FMA; each row of B is loaded once for all rows of a panel",
		When:    "Column vectors in f32, and devices without matrix units.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "cooperative matrices; lanes gather operands directly into fragments",
		When:    "Neighbouring panels that have few columns in common, in f16 on Vulkan devices with the fragment layout of PTX's mma.",
	}
	gatheredKind = &spec.Kind{
		Name:    "gathered",
		Summary: "cooperative matrices of any MMA shape; a subgroup gathers rows of B into shared memory for a panel of 16 rows",
		When:    "Panels that have few columns, in f16 on Vulkan devices with matrix units.",
	}
	windowKind = &spec.Kind{
		Name:    "window",
		Summary: "as lanes, with windows of B in shared memory for the panels of 16 subgroups",
		When:    "Neighbouring panels that together need most rows of B, in f16 on Vulkan devices with the fragment layout of PTX's mma.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "column vectors and rows of B are staged in shared memory and multiplied by cooperative matrices",
		When:    "Column vectors in f16 on other Vulkan devices.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "one row panel at a time with vector instructions, for a block of columns whose rows of B fit the L2 cache",
		When:    "Column vectors on the CPU.",
	}
)

// Packing holds the properties of a variant that decide how matrices are packed.
type Packing struct {
	V      int  // rows of a panel
	Align  int  // its vectors are padded to a multiple; 0: the format decides
	Window int  // rows of B that lists of vectors are cut by; 0: they are not cut
	Lanes  bool // values are in the order in which lanes hold fragments
	Ring   int  // rows of B in shared memory, for which vectors are dealt to streams of steps; 0: they are not
	Span   int  // windows that a step may read from, where there is a ring
}

// Shape is a variant's sizes.
type Shape struct {
	Packing
	Warps, Panels int // warps of a workgroup, panels of a warp; 0: a workgroup has one panel
	Cluster       int // CTAs of a cluster that share windows of B
}

// Staged reports whether B's rows come by windows.
func (p Packing) Staged() bool { return p.Window > 0 }

// ShapeOf returns a variant's sizes.
func ShapeOf(v *spec.Variant) Shape { return v.Shape.(Shape) }

// sized completes a variant of tiles of cols columns.
func (x Shape) sized(v *spec.Variant, kind *spec.Kind, cols uint32) *spec.Variant {
	v.Kind, v.Shape, v.Packing = kind, x, x.Packing
	v.Tile = spec.Tile{Rows: x.V * max(1, x.Panels) * max(1, x.Warps), Cols: int(cols), Cluster: x.Cluster, Panel: x.V}
	return v
}
