// The kernels for lane streams: what each is, where it is the fastest, and the sizes that packing and launching look
// at.

package lanestream

import "github.com/spmmrun/spmm/shaders/spec"

var (
	streamsKind = &spec.Kind{
		Name:    "streams",
		Summary: "each warp expands its stream of values into MMA fragments in registers, one load from shared memory a value; B comes from L2",
		When:    "Up to 32 columns on compute capability 8.0 to 8.9, and on 9.0 where rings of the other kernels have no room for a matrix.",
	}
	stagedKind = &spec.Kind{
		Name:    "staged",
		Summary: "as streams, with B brought to shared memory by a producer warp once for all warps of a cluster",
		When:    "Up to 32 columns and many rows on compute capability 9.0.",
	}
	fewKind = &spec.Kind{
		Name:    "few-rows",
		Summary: "as streams, with four warps for each scheduler: a group of rows is cut along k into as many streams, whose partial sums are added",
		When:    "Up to 32 columns and few rows on compute capability 9.0.",
	}
	prefillKind = &spec.Kind{
		Name:    "prefill",
		Summary: "warpgroup MMA whose A is expanded from the streams into registers; B by tensor maps, multicast in a cluster of two CTAs",
		When:    "More than 32 columns of a matrix of moderate density on compute capability 9.0.",
	}
	filledKind = &spec.Kind{
		Name:    "filled",
		Summary: "one kernel fills a panel of rows with zeros in the workspace while another multiplies the panel before it by warpgroup MMA",
		When:    "Hundreds of columns, whose arithmetic is worth more than filling a panel costs.",
	}
	quantisedKind = &spec.Kind{
		Name:    "quantised",
		Summary: "as staged, with values of 8 bits, two neighbouring columns to a value of the stream, and scales for 128 columns",
		When:    "Quantised matrices on compute capability 9.0, up to 16 columns.",
	}
	teamsKind = &spec.Kind{
		Name:    "teams",
		Summary: "each subgroup expands its stream into fragments of cooperative matrices lane by lane",
		When:    "Up to 32 columns on Vulkan devices that hold fragments as PTX's mma does.",
	}
	wideKind = &spec.Kind{
		Name:    "wide",
		Summary: "as teams, with B in shared memory for two groups of rows",
		When:    "More than 32 columns on the same devices.",
	}
	twinsKind = &spec.Kind{
		Name:    "twins",
		Summary: "as teams, with pairs of neighbouring columns for values: each makes a whole register of the fragment",
		When:    "Up to 32 columns of a matrix of at most about a fifth of its entries, on the same devices.",
	}
	twinsWideKind = &spec.Kind{
		Name:    "twins-wide",
		Summary: "as twins, with B in shared memory for two groups of rows",
		When:    "More columns of such a matrix.",
	}
	coopKind = &spec.Kind{
		Name:    "coop",
		Summary: "streams expanded to a dense tile in shared memory, multiplied by cooperative matrices",
		When:    "Products in f16 on Vulkan devices whose fragment layout is not known.",
	}
	scalarKind = &spec.Kind{
		Name:    "scalar",
		Summary: "streams expanded to a dense tile in shared memory, multiplied by f32 multiply-adds",
		When:    "Devices without matrix units, and f32.",
	}
	cpuKind = &spec.Kind{
		Name:    "cpu",
		Summary: "some steps of the streams expanded to vectors of 16 rows, multiplied by vector instructions",
		When:    "Scattered zeros on the CPU.",
	}
)

// packing holds the figures of a variant that decide how matrices are packed.
type packing struct {
	warps, cluster uint32 // warps of a CTA, CTAs of a cluster: groups of rows are cut into streams for them
	staged         bool   // for the rings of staged.cu
	layout         uint32 // of the mask: lanestream.Places or Pairs
	short          bool   // segments are to be short: see shorten
}

// sizes are a variant's.
type sizes struct {
	packing
	ctas    uint32   // that a large device runs at once
	streams uint32   // that the CTAs of a cluster take at a time; 0: as many as they have warps
	ring    uint32   // bytes of a warp's ring of values and masks; 0: it has none
	groups  uint32   // of 64 rows that a CTA takes, where the kernel numbers its tiles itself; 0: it does not
	short   bool     // it has room for short segments alone
	twins   twinKind // of the kernels for twins
}

// sized completes a variant.
func (x sizes) sized(v *spec.Variant, kind *spec.Kind) *spec.Variant {
	v.Kind, v.Shape, v.Packing = kind, x, x.packing
	return v
}

// sizesOf returns a variant's.
func sizesOf(v *spec.Variant) sizes { return v.Shape.(sizes) }

// columns is the tile of a kernel that takes groups of 64 rows.
func columns(rows, cols uint32) spec.Tile { return spec.Tile{Rows: int(rows), Cols: int(cols)} }
