// The kernels for 2:4 with a remainder: those of package nm, and plain ones.

package sparse24r

import "github.com/spmmrun/spmm/shaders/spec"

var (
	plainKind = &spec.Kind{
		Name:    "plain",
		Summary: "the entries of a row one by one, those of the 2:4 part by its mask, f32 multiply-adds",
		When:    "Vulkan and WebGPU, where no sparse matrix units can be used; other formats are mostly faster.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "as plain, a row at a time by vector instructions",
		When:    "The CPU; other formats are mostly faster.",
	}
	group24Kind = &spec.Kind{
		Name:    "group24",
		Summary: "nm's group24, whose warps add the COO remainder's product on dense MMA before they store a tile",
		When:    "Scattered entries of up to about half of the matrix and many columns on compute capability 9.0.",
	}
	sparse24Kind = &spec.Kind{
		Name:    "sparse24",
		Summary: "nm's sparse24 with the remainder likewise",
		When:    "The same on compute capability 8.0 to 8.9.",
	}
)
