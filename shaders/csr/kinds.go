// The kernels for CSR: what each is, where it is the fastest, and the sizes that packing and launching look at.

package csr

import "github.com/spmmrun/spmm/shaders/spec"

var (
	rowsKind = &spec.Kind{
		Name:    "rows",
		Summary: "lanes of a warp spread over columns, then entries, then rows; rows of B from the caches; long rows in segments",
		When:    "Few entries in no pattern, graphs above all; every device runs it.",
	}
	wholeKind = &spec.Kind{
		Name:    "whole-rows",
		Summary: "as rows, without code for segments of long rows",
		When:    "Matrices without long rows on Vulkan.",
	}
	wideKind = &spec.Kind{
		Name:    "wide-rows",
		Summary: "as rows, each lane holding four columns of f64",
		When:    "f64 and more than 64 columns on CUDA.",
	}
	streamKind = &spec.Kind{
		Name:    "stream",
		Summary: "A in chunks of entries, which bulk copies bring to shared memory as a stream; each lane has a row's entries and all columns",
		When:    "Up to 4 columns of a matrix of 4 million entries or more on compute capability 9.0.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "a row at a time by vector instructions, rows of B prefetched",
		When:    "Few entries in no pattern on the CPU.",
	}
)

// packing holds the figures of a variant that decide how matrices are packed.
type packing struct {
	teams  bool // a workgroup takes a long row, or a segment of one
	chunks bool // A is also listed in chunks for stream.cu
}

// sized completes a variant whose workgroups have tiles of cols columns (0: the launch decides).
func (x packing) sized(v *spec.Variant, kind *spec.Kind, cols int) *spec.Variant {
	v.Kind, v.Packing, v.Tile = kind, x, spec.Tile{Cols: cols}
	return v
}

// packingOf returns a variant's.
func packingOf(v *spec.Variant) packing { return v.Packing.(packing) }
