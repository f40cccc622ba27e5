// The kernels for HRPB: what each is, where it is the fastest, and the sizes that packing and launching look at.

package hrpb

import "github.com/spmmrun/spmm/shaders/spec"

var (
	halfKind = &spec.Kind{
		Name:    "bricks",
		Summary: "a warp a part of a panel: bricks expanded into MMA fragments in registers, rows of B by asynchronous copies in three stages",
		When:    "Clustered entries in 16 bits on CUDA.",
	}
	floatKind = &spec.Kind{
		Name:    "bricks-f32",
		Summary: "as bricks for B in f32, in tf32, or in f32 as three products of bf16; teams of warps for long parts",
		When:    "Clustered entries in tf32 on CUDA.",
	}
	doubleKind = &spec.Kind{
		Name:    "bricks-f64",
		Summary: "as bricks on the f64 matrix units",
		When:    "Clustered entries in f64 on CUDA.",
	}
	stripsKind = &spec.Kind{
		Name:    "strips",
		Summary: "strips of 4 rows of a panel on f32 multiply-adds: each row of B is fetched once for 4 rows",
		When:    "Entries that neighbouring rows share, in f32, and on Vulkan in 16 bits.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "bricks expanded into fragments of cooperative matrices lane by lane",
		When:    "Clustered entries in f16 and tf32 on Vulkan devices that hold fragments as PTX's mma does.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "bricks expanded to a tile in shared memory, multiplied by cooperative matrices",
		When:    "Clustered entries in f16 and tf32 on other Vulkan devices.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "bricks expanded to a tile in shared memory, multiplied by f32 multiply-adds",
		When:    "Devices without matrix units.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "the entries of some blocks by rows, multiplied by vector instructions",
		When:    "Clustered entries on the CPU.",
	}
)

// sizes are the figures of a variant that decide how matrices are packed.
type sizes struct {
	block, workers uint32 // columns of a block; parts that a large device works on at a time
	ordered        bool   // rows may be put in another order
	height         uint32 // of a strip; 0: matrices are packed in bricks
}

// sized completes a variant of tiles of cols columns.
func (x sizes) sized(v *spec.Variant, kind *spec.Kind, rows, cols uint32) *spec.Variant {
	v.Kind, v.Shape, v.Packing, v.Tile = kind, x, x, spec.Tile{Rows: int(rows), Cols: int(cols)}
	return v
}

// sizesOf returns a variant's.
func sizesOf(v *spec.Variant) sizes { return v.Packing.(sizes) }

// groups is the shape of strips.comp: invocations side by side, with four columns each, and groups of them that share
// the vectors of a strip.
type groups struct{ across, along uint32 }
