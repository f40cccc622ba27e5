// The kernels for dense matrices: what each is, and where it is the fastest.

package dense

import "github.com/spmmrun/spmm/shaders/spec"

var (
	hopperKind = &spec.Kind{
		Name:    "hopper",
		Summary: "warpgroup MMA on tiles that producer threads load into shared memory by TMA; CTAs of a cluster multicast what they share; clusters are persistent",
		When:    "Large products in 16 bits on compute capability 9.0, where the tiles fill the device.",
	}
	splitKind = &spec.Kind{
		Name:    "hopper-split",
		Summary: "as hopper, with split-K over the CTAs of a cluster, which exchange partial sums through shared memory",
		When:    "C with few tiles: up to about 256 columns, or few rows.",
	}
	transposedKind = &spec.Kind{
		Name:    "hopper-transposed",
		Summary: "as hopper, computing Cᵀ = Bᵀ·Aᵀ, so that a tile may have any multiple of 8 rows of A; C stays row-major",
		When:    "Products for which such a tile leaves fewer multiprocessors idle than the tiles of hopper do.",
	}
	quantisedKind = &spec.Kind{
		Name:    "quantised",
		Summary: "warpgroup MMA; 8-bit values are widened in registers, with a scale for each row and 128 columns",
		When:    "Quantised matrices on compute capability 9.0.",
	}
	warpKind = &spec.Kind{
		Name:    "warp",
		Summary: "warp-level MMA on tiles that asynchronous copies load into three stage buffers",
		When:    "Products in 16 bits on compute capability 8.0 to 8.9.",
	}
	floatKind = &spec.Kind{
		Name:    "f32",
		Summary: "tiles in shared memory, multiplied by f32 FMA, or in tf32 by warp-level MMA",
		When:    "Every product in f32 or tf32 on CUDA.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "cooperative matrices on tiles in shared memory; split-K if there are few tiles",
		When:    "Products in f16 on Vulkan devices, those with up to 32 columns if few does not apply.",
	}
	fewKind = &spec.Kind{
		Name:    "few",
		Summary: "cooperative matrices whose fragments lanes load directly into registers, with split-K over the subgroups of a workgroup; A is read once",
		When:    "Products in f16 with up to 32 columns on Vulkan devices with the fragment layout of PTX's mma.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "tiles in shared memory, multiplied by f32 FMA",
		When:    "Devices without matrix units, and element types that theirs do not multiply.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "blocks of rows and columns that fit the caches, multiplied with vector instructions",
		When:    "Every product on the CPU.",
	}
)
