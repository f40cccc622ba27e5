// The kernels for CSR: what each is, where it is the fastest, and the sizes that packing and launching look at.

package csr

import "github.com/spmmrun/spmm/shaders/spec"

var (
	rowsKind = &spec.Kind{
		Name:    "rows",
		Summary: "a warp's lanes are divided among columns, then entries, then rows; rows of B come through the caches; long rows are cut into segments",
		When:    "Sparse matrices without structure, above all graphs. Every device can run it.",
	}
	manyKind = &spec.Kind{
		Name:    "many-rows",
		Summary: "as rows, without entries loaded ahead, so that half as many warps more run at the same time",
		When:    "Products whose rows do not all run at the same time, on compute capability 9.0.",
	}
	skewedKind = &spec.Kind{
		Name:    "skewed-rows",
		Summary: "as rows; row segments in order of their columns, a warp each, so that they share rows of B in the L2 cache; a lane group computes several short rows, loading entries a row ahead",
		When:    "Matrices with a million entries or more in long rows, and with many short rows, on compute capability 9.0.",
	}
	wholeKind = &spec.Kind{
		Name:    "whole-rows",
		Summary: "as rows, without code for segments of long rows",
		When:    "Matrices without long rows on Vulkan.",
	}
	wideKind = &spec.Kind{
		Name:    "wide-rows",
		Summary: "as rows, each lane holding 32 bytes of a row of B",
		When:    "Products in f32 and f64 with more than 64 columns on CUDA, in f32 on compute capability 9.0.",
	}
	streamKind = &spec.Kind{
		Name:    "stream",
		Summary: "bulk copies load A chunk by chunk into shared memory; a lane sums entries of one row for all columns",
		When:    "Up to 4 columns of a matrix of 4 million entries or more on compute capability 9.0.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "one row of A at a time with vector instructions; rows of B are prefetched",
		When:    "Sparse matrices without structure on the CPU.",
	}
)

// packing holds the properties of a variant that decide how matrices are packed.
type packing struct {
	teams  bool // a workgroup computes a long row, or a segment of one
	warps  bool // a warp computes a row of middle length
	chunks bool // A is also listed in chunks for stream.cu
}

// sized completes a variant whose workgroups have tiles of cols columns (0: the launch decides).
func (x packing) sized(v *spec.Variant, kind *spec.Kind, cols int) *spec.Variant {
	v.Kind, v.Packing, v.Tile = kind, x, spec.Tile{Cols: cols}
	return v
}

// packingOf returns a variant's packing.
func packingOf(v *spec.Variant) packing { return v.Packing.(packing) }
