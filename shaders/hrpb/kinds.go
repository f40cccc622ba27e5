// The kernels for HRPB: what each is, where it is the fastest, and the sizes that packing and launching look at.

package hrpb

import "github.com/spmmrun/spmm/shaders/spec"

var (
	halfKind = &spec.Kind{
		Name:    "bricks",
		Summary: "a team of warps multiplies some blocks of a row panel by MMA; bricks are expanded into fragments in registers; rows of B come by asynchronous copies",
		When:    "Clustered entries in 16 bits on CUDA.",
	}
	floatKind = &spec.Kind{
		Name:    "bricks-f32",
		Summary: "as bricks, for values in f32: in tf32, or split into three bf16 summands that together hold all bits",
		When:    "Clustered entries in tf32 on CUDA.",
	}
	doubleKind = &spec.Kind{
		Name:    "bricks-f64",
		Summary: "as bricks, with MMA in f64",
		When:    "Clustered entries in f64 on CUDA.",
	}
	stripsKind = &spec.Kind{
		Name:    "strips",
		Summary: "strips of 4 rows of a panel by f32 FMA; each row of B is loaded once for the 4 rows",
		When:    "Neighbouring rows with entries in the same columns, in f32, and on Vulkan in 16 bits too.",
	}
	groupedKind = &spec.Kind{
		Name:    "grouped-strips",
		Summary: "as strips, with eight warps in a CTA, which find each other's rows of B in L1",
		When:    "Matrices in f32 on CUDA whose strips all run at the same time.",
	}
	wideKind = &spec.Kind{
		Name:    "wide-strips",
		Summary: "as strips, each lane holding 8 columns, so that entries are read half as often",
		When:    "Many long strips, and 65 to 128 columns, in f32 on CUDA.",
	}
	widestKind = &spec.Kind{
		Name:    "widest-strips",
		Summary: "as strips, each lane holding 16 columns, so that entries are read a quarter as often",
		When:    "Large matrices by more than 256 columns in f32 on CUDA.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "each lane expands bricks into its fragments of cooperative matrices",
		When:    "Clustered entries in f16 and tf32 on Vulkan devices with the fragment layout of PTX's mma.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "bricks are expanded to a tile in shared memory and multiplied by cooperative matrices",
		When:    "Clustered entries in f16 and tf32 on other Vulkan devices.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "bricks are expanded to a tile in shared memory and multiplied by f32 FMA",
		When:    "Devices without matrix units.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "the entries of some blocks, row by row, with vector instructions",
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

// groups is the shape of strips.cu and strips.comp: invocations side by side, with four columns each, and groups of
// them that share the vectors of a strip. On CUDA an invocation has four columns several times.
type groups struct{ across, along, quads uint32 }
