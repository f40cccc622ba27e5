// Package csr multiplies from plain compressed sparse rows: the scalar kernel that every device can run, the fallback
// and the baseline.
//
// Work is divided into items. An item is a row, or a segment of a heavy row, which has many more entries than the
// average. Segments come first in the grid, so that one huge row keeps the whole device busy and starts early. Segment
// i leaves its partial sums in row i of the workspace `part`. A second launch of the same kernel (phase 1) adds them in
// a fixed order. On CUDA from compute capability 9.0 on, and on Vulkan (TEAMS), a whole workgroup computes a segment.
// There rows that are long, but not heavy, are segments too; these are stored to C directly. On CUDA from compute
// capability 9.0 on, rows of middle length come next, each for a warp. There are no atomics. The order of every sum
// depends only on the matrix, the problem and the kind of device.
//
// On GPUs `across` × `along` neighbouring lanes compute an item. `across` lanes next to each other form a lane group
// and have the columns of a tile, 16 bytes of a row of B each (in f32 and f64 on CUDA 16 or 32). The `along` lane
// groups take the item's entries in turn, four at a time, and their sums are added at the end. With many columns a
// warp's lanes are spread across the columns, with few along the entries.
//
// A matrix with many entries in long rows, and most rows short, has its segments listed by their first columns. On CUDA
// from compute capability 9.0 on, a kernel of its own multiplies it in f32 (skewed.go).
//
// For a large A in f32 or f64 and a B of at most four columns, CUDA from compute capability 9.0 on has kernels that
// read A in chunks, as a stream (stream.go). They also read a B without padding between its rows. For rows of many
// entries in f16 or bf16 it has kernels that read columns of 16 bits and keep B in shared memory (vector.go).
//
// On the CPU an item is one call of package simd for each tile of columns.
package csr

import (
	"embed"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the CSR kernels. The array heavy lists the segments: begin and end of each, and for TEAMS its
// row and slot. Rows for a warp each follow, in the same form. Then it lists the heavy rows: row, first segment (for
// TEAMS first slot) and last + 1. The rows of part, ldp apart, are the segments' partial sums.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "csr", Args: spec.FormatArgs("rowptr u32", "colidx u32", "values T", "heavy u32", "part f32 written"),
		Params: spec.Params[params](), Files: files,
		Variants: append(spec.WithEpilogues(variants(), spec.TwoForms), spec.WithEpilogues(vectors, spec.OneForm)...),
	},
	Encode: encode, EncodeShare: encodeShare, Launch: launch, Suited: suited,
}

// params is the parameter block.
type params struct {
	phase         uint32 // 0: rows and segments; 1: sums of partial sums
	n             uint32
	ldb, ldc, ldp uint32
	segments      uint32
	warps         uint32 // rows for a warp each
	items         uint32 // of this phase: segments and rows, or heavy rows
	width         uint32 // of the grid in x
	per           uint32 // items of one workgroup; in phase 1 of skewed the items of a workgroup each, which are first
	longest       uint32 // rows with more entries are heavy
	across        uint32 // lanes, a power of two; on the CPU vectors of eight columns
	along         uint32 // a power of two; on the CPU, how many entries ahead rows of B are prefetched
	store         uint32 // type of c, and epilogue: spec.Problem.StoreWord
	alpha, beta   float32
}

// maxEntries is the most entries: 32 bits must hold their numbers, and the numbers past the last that kernels reach.
const maxEntries = math.MaxUint32 - 1<<16

var encode = spec.Encoder64(pack[half.F16], pack[half.BF16], pack[float32], pack[float64])

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if len(a.RowPtr) == 0 { // which Validate refuses
		return packShare(a, v, spec.Extent{})
	}
	return packShare(a, v, spec.NewExtent(a.Rows, a.Cols, a.RowPtr))
}

// encodeShare packs rows of a larger matrix. It cuts heavy rows where they are cut in that matrix.
func encodeShare(rows formats.Sparse, v *spec.Variant, of spec.Extent) (*spec.Packed, error) {
	return spec.Encoder64(share[half.F16](of), share[half.BF16](of), share[float32](of), share[float64](of))(rows, v)
}

func share[T formats.Value](of spec.Extent) func(*formats.CSR[T], *spec.Variant) (*spec.Packed, error) {
	return func(a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) { return packShare(a, v, of) }
}

// packShare packs a, which is some rows of a matrix with extent `of`.
func packShare[T formats.Value](a *formats.CSR[T], v *spec.Variant, of spec.Extent) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	const together = vectorGroup // entries that a lane of a GPU loads at once, at most
	lead := int(of.Offset % together)
	if v.Code == backend.CodeGo {
		lead = 0
	}
	if a.NNZ()+int64(lead) > maxEntries { // rows and columns are at most formats.MaxDim
		return nil, fmt.Errorf("kernel csr: %d entries do not fit 32-bit offsets: %w", a.NNZ(), backend.ErrUnsupported)
	}
	begins, colidx, values := a.RowPtr, a.ColIdx, a.Val
	if lead > 0 {
		begins = slices.Clone(begins)
		for i := range begins {
			begins[i] += int64(lead)
		}
		colidx, values = append(make([]int32, lead, lead+len(colidx)), colidx...),
			append(make([]T, lead, lead+len(values)), values...)
	}
	rowptr := make([]uint32, len(begins))
	for i, p := range begins {
		rowptr[i] = uint32(p)
	}
	longest := spec.LongestRow(of.Rows, of.NNZ)
	split, heavy := spec.SplitRows(begins, longest)
	switch x := packingOf(v); {
	case x.warps:
		limits, sorted := spec.WarpLimits(of.Rows, of.NNZ), isSkewed(of.Rows, of.NNZ, of.Segments)
		if sorted {
			limits.Most = skewedMost
		}
		if split, heavy = spec.ShareRows(begins, limits); sorted {
			sortSegments(&split, heavy, colidx)
		}
	case x.teams:
		split, heavy = spec.ShareRows(begins, spec.TeamLimits(of.Rows, of.NNZ))
	}
	if packingOf(v).chunks {
		heavy = addChunks(&split, heavy, rowptr, of.NNZ, v.In)
	}
	split.Average, split.Items, split.Lead = of.Average(), of.Rows+int(of.Segments), lead
	if hasShort(v, of) {
		heavy = addShort(&split, heavy, colidx, of.Cols)
	}
	if v.Code == backend.CodeGo || v.Code == backend.CodePTX {
		split.Scattered = scattered(a.ColIdx, a.Cols)
	}
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Format: split,
		Arrays: []spec.Array{
			spec.NewArray("rowptr", rowptr),
			spec.NewArray("colidx", colidx),
			spec.NewArray("values", values),
			spec.NewArray("heavy", heavy),
		},
		Stats: formats.Stats{Slots: a.NNZ(), MACs: a.NNZ(), Gathers: a.NNZ(), Sums: int64(split.Slots)},
		Items: int64(a.Rows) + int64(split.Slots),
	}
	if a.NNZ() > 0 {
		e.Stats.Fill = 1
	}
	e.Stats.StoredBytes = e.Bytes()
	if split.Short.Cols > 0 {
		e.Stats.StoredBytes -= int64(len(colidx)) * shortBytes // which is read in place of colidx
	}
	return e, nil
}

// shape is how a launch divides its work among lanes.
type shape struct {
	per           int // items of a workgroup
	across, along int
	columns       int // of a workgroup
}

func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := check(v, e, p); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel csr/%s: %w", v.Name, err)
	}
	split := e.Format.(spec.Split)
	switch v.Kind {
	case streamKind:
		return launchStream(v, split, p)
	case vectorKind:
		return launchVector(v, e, p)
	}
	if v.Kind == skewedKind {
		return launchSkewed(v, split, p)
	}
	ldp := (p.N + 7) &^ 7
	l := spec.Launch{Workspace: max(spec.NoWorkspace, int64(split.Slots)*int64(ldp)*int64(v.Sums().Size()))}
	if err := p.CheckBinding(v, "the workspace", l.Workspace); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel csr/%s: %w", v.Name, err)
	}
	first := pickShape(v, e, p)
	segments, warps := split.Segments, split.Warps+split.Middle
	if first.across == mostAcross(v) {
		segments, warps = segments+split.Middle, split.Warps
	}
	phase := func(number uint32, teams, items int64, s shape) error {
		groups, err := spec.Fold(teams+spec.Ceil(items, int64(s.per)), spec.Ceil(p.N, s.columns))
		if err != nil {
			return fmt.Errorf("kernel csr/%s: %w", v.Name, err)
		}
		l.Passes = append(l.Passes, spec.Pass{Variant: v.For(p), Groups: groups, Params: spec.BlockFor(v, params{
			phase: number, n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), ldp: uint32(ldp),
			segments: segments, warps: warps, items: uint32(items), width: groups[0], per: uint32(s.per),
			longest: split.Longest, across: uint32(s.across), along: uint32(s.along), store: p.StoreWord(),
			alpha: float32(p.Alpha), beta: float32(p.Beta),
		}, p.Alpha, p.Beta)})
		return nil
	}
	teams, items := int64(0), int64(split.Segments)+int64(p.M)
	if packingOf(v).teams {
		teams, items = int64(segments)+spec.Ceil(int64(warps), local/lanes), int64(p.M)
	}
	err := phase(0, teams, items, first)
	if err == nil && split.Rows > 0 {
		err = phase(1, 0, int64(split.Rows), sumShape(v))
	}
	return l, err
}

// check refuses problems that the kernel cannot compute. Errors name the limit.
func check(v *spec.Variant, e *spec.Packed, p spec.Problem) error {
	if err := p.Check(v, e); err != nil {
		return err
	}
	if v.Kind == wholeKind && e.Format.(spec.Split).Segments > 0 {
		return fmt.Errorf("a matrix with rows in segments: %w", backend.ErrUnsupported)
	}
	if v.Code == backend.CodeSPIRV && int64(p.K)*int64(p.LDB)*int64(v.In.Size()) >= 1<<35 {
		return fmt.Errorf("B of %d×%d exceeds 32 GiB: %w", p.K, p.LDB, backend.ErrUnsupported)
	}
	return nil
}

// pickShape divides a warp's 32 lanes among columns first, then among the entries of a row if rows are long enough,
// then among rows. If there are too few warps for the device, tiles of columns become narrower. For rows of a larger
// matrix the larger matrix decides, so that each row is summed in the same order as within it.
func pickShape(v *spec.Variant, e *spec.Packed, p spec.Problem) shape {
	if v.Code == backend.CodeGo {
		return goShape(v, e, p)
	}
	vec, most := columns(v), mostAcross(v)
	across := 1
	for across < most && across*vec < p.N {
		across *= 2
	}
	split := e.Format.(spec.Split)
	warps := func() int { return split.Items * spec.Ceil(p.N, across*vec) }
	for across > 8 && warps() < 16*p.Caps.Units {
		across /= 2
	}
	// Lane groups of one row help if they are idle otherwise: else each has few loads in flight for the row's bounds and
	// its first entries.
	fills := func(across, along int) bool {
		return across >= 8 && warps()*across*along > 2*waveLanes*max(1, p.Caps.Units)
	}
	along := 1
	for along < most/across && along*8 <= split.Average && !(v.Code == backend.CodePTX && fills(across, 2*along)) {
		along *= 2
	}
	if v.Code == backend.CodePTX && split.Scattered > 0.9 {
		across = inCache(v, across, p)
	}
	return gpuShape(v, across, along)
}

// inCache narrows tiles of columns if B exceeds the L2 cache. Tiles are computed one after the other, so that the
// columns of B of one tile stay in the cache, although A is read again for each tile. It is for matrices with scattered
// columns: others need few rows of B at a time. The order of sums does not change.
func inCache(v *spec.Variant, across int, p spec.Problem) int {
	const (
		cache = 40 << 20 // bytes of L2 of an A100; a Hopper GPU has 50 MiB
		least = 8        // narrower tiles read A so often that it costs more than it saves
	)
	column := int64(p.K) * int64(v.In.Size())
	if column*int64(p.N) <= cache {
		return across
	}
	for across > least && column*int64(across*columns(v)) > cache {
		across /= 2
	}
	return across
}

// sumShape returns the shape of phase 1, which has few items with many rows of the workspace each.
func sumShape(v *spec.Variant) shape {
	if v.Code == backend.CodeGo {
		return shape{per: 1, across: 8, along: 1, columns: 64}
	}
	return gpuShape(v, 4, lanes/4)
}

// waveLanes is the number of lanes of rowsKind that a multiprocessor of a CUDA device runs at the same time.
const waveLanes = 1024

// lanes is the most lanes that compute an item: a warp.
const lanes = 32

// mostAcross is the most of them that a row of B is divided among.
func mostAcross(v *spec.Variant) int {
	if v.Kind == wideKind && v.In == dtype.F32 {
		return lanes / 2 // 128 columns
	}
	return lanes
}

func gpuShape(v *spec.Variant, across, along int) shape {
	return shape{
		per: int(v.Local[0]) / (across * along), across: across, along: along,
		columns: across * columns(v),
	}
}

// columns returns the number of a lane's columns: 16 bytes of a row of B, or 32.
func columns(v *spec.Variant) int {
	if v.Kind == wideKind {
		return 2 * 16 / v.In.Size()
	}
	return 16 / v.In.Size()
}
