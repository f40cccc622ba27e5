// The reproducible kernels: what each is, where it is the fastest, and the sizes that packing and launching look at.

package rfx

import (
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

var (
	rowsKind = &spec.Kind{
		Name:    "rows",
		Summary: "integer sums of fixed-point products; rows are divided among lanes as in csr/rows",
		When:    "Reproducible mode: sparse matrices without structure, and devices without 8-bit matrix units.",
	}
	directKind = &spec.Kind{
		Name:    "direct",
		Summary: "as rows, but elements of B in f32 become integers as they are read",
		When:    "Reproducible mode: graphs, whose rows of B are read few times, on CUDA from compute capability 9.0 on.",
	}
	panelsKind = &spec.Kind{
		Name:    "panels",
		Summary: "8-bit digits of row panels by integer MMA",
		When:    "Reproducible mode: neighbouring rows with entries in the same columns.",
	}
	shuffledKind = &spec.Kind{
		Name:    "shuffled",
		Summary: "as panels, with rows in the order of format tiledcsr, which groups similar rows",
		When:    "Reproducible mode: rows with entries in the same columns that are not neighbours.",
	}
	stationaryKind = &spec.Kind{
		Name:    "stationary",
		Summary: "as panels; B stays in shared memory, 16 columns a CTA, and is quantised there",
		When:    "Reproducible mode: as panels, from about 16 columns of B on, where A has up to 7200 columns (4800 at p = 23), on CUDA from compute capability 9.0 on.",
	}
	stripsKind = &spec.Kind{
		Name:    "strips",
		Summary: "8-bit digits by integer MMA; each warp expands masks and digits of 16 rows into fragments; B comes in the order of fragments",
		When:    "Reproducible mode: up to about 16 columns and moderate density, on CUDA from compute capability 9.0 on.",
	}
	pairsKind = &spec.Kind{
		Name:    "pairs",
		Summary: "2:4 with extra blocks for what does not fit; 8-bit digits by sparse integer MMA; each warp takes pairs of entries of 16 rows; B comes in the order of fragments",
		When:    "Reproducible mode: up to about 16 columns and 70 % scattered zeros and more, on CUDA of compute capability 9.0.",
	}
	residuesKind = &spec.Kind{
		Name:    "residues",
		Summary: "dense; residues modulo 8-bit numbers by integer wgmma (CUDA), cooperative matrices (Vulkan) or packed dot products (Vulkan, WebGPU), put together by the Chinese remainder theorem",
		When:    "Reproducible mode: many columns and scattered zeros, up to about 95 % of them.",
	}
	digitsKind = &spec.Kind{
		Name:    "digits",
		Summary: "dense; 8-bit digits by integer cooperative matrices or packed dot products",
		When:    "Reproducible mode: few columns and up to about 90 % zeros, on Vulkan.",
	}
	sparseResiduesKind = &spec.Kind{
		Name:    "residues24",
		Summary: "2:4 with a remainder; residues as in residues by sparse integer wgmma, the remainder in f64",
		When:    "Reproducible mode: many columns and 85 % scattered zeros and more, on CUDA of compute capability 9.0.",
	}
)

// sizes are the figures of a variant that decide how matrices are packed: their precision, the rows of a panel (0:
// there are none), whether rows are in tiledcsr's order, whether workgroups take row segments, whether the matrix is in
// strips or in pairs, and whether elements are residues, of two of every four columns, or digits in place of residues.
type sizes struct {
	p          rfx.P
	v          int
	shuffled   bool
	teams      bool
	strips     bool
	pairs      bool
	stationary bool // B is in shared memory
	residues   bool
	sparse     bool
	digits     bool
	slices     bool // residues are in slices: see rfx.Planes
}

// sized completes a variant of tiles of cols columns; 0: the launch decides.
func (x sizes) sized(v *spec.Variant, kind *spec.Kind, cols uint32) *spec.Variant {
	v.Kind, v.Packing, v.Tile = kind, x, spec.Tile{Rows: x.v, Cols: int(cols), Panel: x.v}
	return v
}

// PrecisionOf returns the precision that a variant computes with.
func PrecisionOf(v *spec.Variant) rfx.P { return v.Packing.(sizes).p }

// panelRows returns the rows of a variant's panels, 0 if it takes rows.
func panelRows(v *spec.Variant) int { return v.Tile.Panel }

// hasTeams tells whether workgroups of a variant take row segments.
func hasTeams(v *spec.Variant) bool { return v.Packing.(sizes).teams }

// What it takes to make fragments of strips and of pairs, counted in products that take as long (H200). At p = 15 a
// multiprocessor has twice as many warps for pairs, which load ahead; at p = 23 they wait for loads.
const (
	stripFragments  = 17
	pairFragments   = 33
	pairFragments15 = 22
)

// Instructions is Products with what it takes to make fragments.
func Instructions(v *spec.Variant, k int) int64 {
	switch kind(v) {
	case InStrips:
		return Products(v, k) + stripFragments
	case InPairs:
		if x := pairSizes[PrecisionOf(v)]; x.ctas > 1 && x.buffers > 1 {
			return Products(v, k) + pairFragments15
		}
		return Products(v, k) + pairFragments
	}
	return Products(v, k)
}

// Products returns how many products a variant computes for each of a matrix of k columns: one for each pair of digits,
// or for each modulus.
func Products(v *spec.Variant, k int) int64 {
	p := PrecisionOf(v)
	switch kind(v) {
	case Rows, Direct:
		return 1
	case Residues, SparseResidues:
		if p != digitsAt {
			return int64(moduliOf(k, p))
		}
	}
	return int64(p.Bytes() * p.Bytes())
}

// Fetched returns the bytes that a variant fetches from caches for each entry, or vector, and n columns of a B
// of k rows: the row of B in fixed point, or as it is in f32; for variants with B in shared memory the vector's
// digits and its column number, each time.
func Fetched(v *spec.Variant, k, n int) int64 {
	switch kind(v) {
	case Direct:
		return 4 * int64(n)
	case Stationary:
		return int64(v.Tile.Panel*PrecisionOf(v).Bytes()+4) * int64(spec.Ceil(n, stationaryCols))
	}
	return 4 * int64(Layout(v, k, n).Row())
}
