// The kernels for lane streams: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package lanestream

import "github.com/spmmrun/spmm/shaders/spec"

var (
	streamsKind = &spec.Kind{
		Name:    "streams",
		Summary: "each warp expands its stream of values into MMA fragments, with one load from shared memory for each value; B comes from L2",
		When:    "Up to 32 columns on compute capability 8.0 to 8.9, and on 9.0 if a matrix does not fit the stage buffers of the other kernels.",
	}
	stagedKind = &spec.Kind{
		Name:    "staged",
		Summary: "as streams; producer warps load B into shared memory once for all warps that need it",
		When:    "Up to 32 columns and many rows on compute capability 9.0.",
	}
	fewKind = &spec.Kind{
		Name:    "few-rows",
		Summary: "as streams, with split-K: a row panel is divided among many warps of a cluster, whose partial sums are added",
		When:    "Up to 32 columns and few rows on compute capability 9.0.",
	}
	linesKind = &spec.Kind{
		Name:    "few-tokens",
		Summary: "as few-rows; B is column-major, and each workgroup transposes the part that its streams multiply into shared memory",
		When:    "X·Wᵀ with 2 to 8 tokens and a density of W of at most about 20 %, on compute capability 9.0.",
	}
	prefillKind = &spec.Kind{
		Name:    "prefill",
		Summary: "warpgroup MMA; A is expanded from the streams into registers; B comes by TMA, multicast in a cluster of two CTAs",
		When:    "More than 32 columns of a matrix of moderate density on compute capability 9.0.",
	}
	filledKind = &spec.Kind{
		Name:    "filled",
		Summary: "row panels are expanded to dense ones in the workspace and multiplied by warpgroup MMA; the next panel is expanded meanwhile",
		When:    "Hundreds of columns on compute capability 9.0, whose arithmetic outweighs the expansion of the panels.",
	}
	quantisedKind = &spec.Kind{
		Name:    "quantised",
		Summary: "as staged, with 8-bit values: a value of the stream holds two neighbouring columns; scales are for 128 columns",
		When:    "Quantised matrices on compute capability 9.0, up to 16 columns.",
	}
	teamsKind = &spec.Kind{
		Name:    "teams",
		Summary: "each lane expands its subgroup's stream into its fragments of cooperative matrices",
		When:    "Up to 32 columns on Vulkan devices with the fragment layout of PTX's mma.",
	}
	wideKind = &spec.Kind{
		Name:    "wide",
		Summary: "as teams, with B in shared memory for two row panels",
		When:    "More than 32 columns on Vulkan devices with the fragment layout of PTX's mma.",
	}
	twinsKind = &spec.Kind{
		Name:    "twins",
		Summary: "as teams, with twins: a value of the stream holds two neighbouring columns, which fill a register of a fragment",
		When:    "Up to 32 columns and a density of at most about 20 %, on Vulkan devices with the fragment layout of PTX's mma.",
	}
	twinsWideKind = &spec.Kind{
		Name:    "twins-wide",
		Summary: "as twins, with B in shared memory for two row panels",
		When:    "More than 32 columns and a density of at most about 20 %, on Vulkan devices with the fragment layout of PTX's mma.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "streams are expanded to a dense tile in shared memory and multiplied by cooperative matrices",
		When:    "Products in f16 on Vulkan devices whose fragment layout is not known.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "streams are expanded to a dense tile in shared memory and multiplied by f32 FMA",
		When:    "Devices without matrix units, and f32.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "streams are expanded, some steps at a time, to column vectors of 16 rows and multiplied with vector instructions",
		When:    "Scattered zeros on the CPU.",
	}
)

// packing has the figures of a variant that decide how matrices are packed.
type packing struct {
	warps, cluster uint32 // warps of a CTA, CTAs of a cluster: they decide the number of streams of a group
	staged         bool   // for the stage buffers of staged.cu
	layout         uint32 // of the mask: lanestream.Places or Pairs
	short          bool   // segments are to be short: see shorten
}

// sizes are the figures of a variant.
type sizes struct {
	packing
	ctas    uint32   // that a large device runs at once
	streams uint32   // that a cluster multiplies at a time; 0: one for each of its warps
	ring    uint32   // bytes of a warp's stage buffer of values and masks; 0: it has none
	groups  uint32   // of 64 rows of a CTA's tile, if the kernel numbers its tiles itself; else 0
	short   bool     // it has room for short segments only
	twins   twinKind // of the kernels for twins
}

// sized completes a variant.
func (x sizes) sized(v *spec.Variant, kind *spec.Kind) *spec.Variant {
	v.Kind, v.Shape, v.Packing = kind, x, x.packing
	return v
}

// sizesOf returns a variant's sizes.
func sizesOf(v *spec.Variant) sizes { return v.Shape.(sizes) }

// columns returns a tile of rows × cols.
func columns(rows, cols uint32) spec.Tile { return spec.Tile{Rows: int(rows), Cols: int(cols)} }
