// The kernels for Jigsaw's format: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package jigsaw

import "github.com/spmmrun/spmm/shaders/spec"

var (
	ringKind = &spec.Kind{
		Name:    "ring",
		Summary: "sparse MMA (mma.sp) on strips of 16 rows; producer warps gather the rows of B that a block needs into stage buffers",
		When:    "Column vectors in 16 bits whose columns can be reordered so that nearly all fit 2:4, on CUDA.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "each lane expands tiles to dense fragments of cooperative matrices",
		When:    "The same matrices on Vulkan devices with the fragment layout of PTX's mma.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "tiles are expanded in shared memory and multiplied by cooperative matrices",
		When:    "The same matrices on other Vulkan devices.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "tiles are expanded in shared memory and multiplied by f32 FMA",
		When:    "Devices without matrix units. Other formats are mostly faster there.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "tiles are expanded to column vectors of 8 rows and multiplied with vector instructions",
		When:    "The CPU. Other formats are mostly faster there.",
	}
)

// packing holds the figures of a variant that decide how matrices are packed: the rows of a block, and of B in the
// ring, which are handed over granule by granule; 0: there is no ring.
type packing struct{ block, ring, granule uint32 }

// sized completes a variant of tiles of a block by cols columns.
func (x packing) sized(v *spec.Variant, kind *spec.Kind, cols uint32) *spec.Variant {
	v.Kind, v.Packing, v.Tile = kind, x, spec.Tile{Rows: int(x.block), Cols: int(cols)}
	return v
}

// packingOf returns a variant's.
func packingOf(v *spec.Variant) packing { return v.Packing.(packing) }
