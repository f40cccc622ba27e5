// The kernels for panels of rows: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package panel

import "github.com/spmmrun/spmm/shaders/spec"

var (
	gatherKind = &spec.Kind{
		Name:    "gather",
		Summary: "a warp a panel: MMA on vectors of the panel, rows of B gathered from L2 by asynchronous copies in three stages",
		When:    "Panels that share few columns, in 16 bits on CUDA.",
	}
	hopperKind = &spec.Kind{
		Name:    "hopper",
		Summary: "windows of B's rows in a ring in shared memory, filled by tensor maps with multicast; warps take streams of steps without bank conflicts",
		When:    "Panels that use much of B, in 16 bits on compute capability 9.0.",
	}
	stagedKind = &spec.Kind{
		Name:    "staged",
		Summary: "windows of B's rows staged in shared memory once for the panels of 16 warps",
		When:    "Panels that use much of B, in 16 bits on compute capability 8.0 to 8.9.",
	}
	tf32Kind = &spec.Kind{
		Name:    "tf32",
		Summary: "as gather in tf32, fragments loaded straight into registers",
		When:    "Panels in tf32 on CUDA.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "each row of B fetched once for the rows of a panel, f32 multiply-adds",
		When:    "Panels in f32, and devices without matrix units.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "cooperative matrices whose operands lanes gather straight into registers",
		When:    "Panels that share few columns, in f16 on Vulkan devices that hold fragments as PTX's mma does.",
	}
	windowKind = &spec.Kind{
		Name:    "window",
		Summary: "as lanes, with windows of B's rows in shared memory for the panels of 16 subgroups",
		When:    "Panels that use much of B, on the same devices.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "vectors and rows of B staged in shared memory, multiplied by cooperative matrices",
		When:    "Panels in f16 on other Vulkan devices.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "a panel and as many columns as leave their part of B in the L2 cache, multiplied by vector instructions",
		When:    "Panels on the CPU.",
	}
)

// Packing holds the figures of a variant that decide how matrices are packed.
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

// Staged tells whether B's rows come by windows.
func (p Packing) Staged() bool { return p.Window > 0 }

// ShapeOf returns a variant's sizes.
func ShapeOf(v *spec.Variant) Shape { return v.Shape.(Shape) }

// sized completes a variant of tiles of cols columns.
func (x Shape) sized(v *spec.Variant, kind *spec.Kind, cols uint32) *spec.Variant {
	v.Kind, v.Shape, v.Packing = kind, x, x.Packing
	v.Tile = spec.Tile{Rows: x.V * max(1, x.Panels) * max(1, x.Warps), Cols: int(cols), Cluster: x.Cluster, Panel: x.V}
	return v
}
