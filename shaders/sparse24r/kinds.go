// The kernels for 2:4 with a remainder: those of package nm, and plain ones.

package sparse24r

import "github.com/spmmrun/spmm/shaders/spec"

var (
	plainKind = &spec.Kind{
		Name:    "plain",
		Summary: "f32 FMA, entry by entry of a row; masks tell the columns of the 2:4 entries",
		When:    "Vulkan and WebGPU, which have no sparse MMA. Other formats are mostly faster there.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "one row at a time with vector instructions",
		When:    "The CPU. Other formats are mostly faster there.",
	}
	group24Kind = &spec.Kind{
		Name:    "group24",
		Summary: "as nm/group24; before they store a tile, warps add the product of the COO remainder, by dense MMA",
		When:    "Scattered entries, a density of up to about 50 %, and many columns, on compute capability 9.0.",
	}
	sparse24Kind = &spec.Kind{
		Name:    "sparse24",
		Summary: "as nm/sparse24, with the COO remainder added as in sparse24r/group24",
		When:    "The same matrices on compute capability 8.0 to 8.9.",
	}
)
