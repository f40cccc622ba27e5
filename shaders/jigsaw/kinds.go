// The kernels for Jigsaw's format: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package jigsaw

import "github.com/spmmrun/spmm/shaders/spec"

var (
	ringKind = &spec.Kind{
		Name:    "ring",
		Summary: "sparse MMA on strips of a block, whose rows of B producer warps gather into a ring in shared memory",
		When:    "Vectors of 16 bits that reordering makes nearly 2:4, on CUDA.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "tiles expanded to dense fragments of cooperative matrices lane by lane",
		When:    "The same on Vulkan devices that hold fragments as PTX's mma does.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "tiles expanded in shared memory, multiplied by cooperative matrices",
		When:    "The same on other Vulkan devices.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "tiles expanded in shared memory, multiplied by f32 multiply-adds",
		When:    "Devices without matrix units; other formats are mostly faster.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "tiles expanded to vectors of 8 rows, multiplied by vector instructions",
		When:    "The CPU; other formats are mostly faster.",
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
