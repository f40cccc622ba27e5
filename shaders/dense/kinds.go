// The kernels for dense matrices: what each is, and where it is the fastest.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

var (
	hopperKind = &spec.Kind{
		Name:    "hopper",
		Summary: "warpgroup MMA on tiles that a producer warp brings to shared memory by tensor maps; clusters multicast B; persistent CTAs",
		When:    "Large products in 16 bits on compute capability 9.0, where the tiles fill the device.",
	}
	splitKind = &spec.Kind{
		Name:    "hopper-split",
		Summary: "as hopper, with the sum over k shared by the CTAs of a cluster (split-K), which exchange partial sums through shared memory",
		When:    "C of few tiles: up to about 256 columns, or few rows.",
	}
	transposedKind = &spec.Kind{
		Name:    "hopper-transposed",
		Summary: "as hopper, computing Cᵀ = BᵀAᵀ into a row-major C, so that a tile may have any multiple of 8 rows of A",
		When:    "Products whose rows cut into such tiles leave fewer multiprocessors idle than the tiles of hopper do.",
	}
	quantisedKind = &spec.Kind{
		Name:    "quantised",
		Summary: "warpgroup MMA on values of 8 bits that a warp widens in registers and scales for each row and 128 columns",
		When:    "Quantised matrices on compute capability 9.0.",
	}
	warpKind = &spec.Kind{
		Name:    "warp",
		Summary: "MMA of single warps on tiles that asynchronous copies bring to shared memory in three stages",
		When:    "Products in 16 bits on compute capability 8.0 to 8.9.",
	}
	floatKind = &spec.Kind{
		Name:    "f32",
		Summary: "tiles in shared memory, multiplied by f32 multiply-adds, or in tf32 by MMA of single warps",
		When:    "Every product in f32 or tf32 on CUDA.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "cooperative matrices on tiles in shared memory",
		When:    "Products in f16 on Vulkan devices whose fragment layout is not known.",
	}
	lanesKind = &spec.Kind{
		Name:    "lanes",
		Summary: "cooperative matrices whose operands each lane loads straight into registers, with split-K where tiles are few",
		When:    "Products in f16 of more than 32 columns on Vulkan devices that hold fragments as PTX's mma does.",
	}
	fewKind = &spec.Kind{
		Name:    "few",
		Summary: "as lanes, streaming A through registers once, the sum over k shared by the subgroups of a workgroup",
		When:    "The same devices, up to 32 columns.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "tiles in shared memory, multiplied by f32 multiply-adds",
		When:    "Devices without matrix units, and types that these do not take.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "blocks of rows and columns that fit the caches, multiplied by vector instructions",
		When:    "Every product on the CPU.",
	}
)
