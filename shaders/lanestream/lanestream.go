// Package lanestream multiplies from lane streams (package formats/lanestream), which hold matrices with scattered
// zeros for products with few columns. On CUDA each lane of a warp takes the values of its fragment of A from the
// stream, with one load from shared memory for each. On the CPU the values of some steps are transposed, so that those
// of a chain are neighbours, and expanded to vectors of 16 rows. On Vulkan and WebGPU, and on CUDA in f32, some columns
// are expanded to a dense tile in shared memory.
//
// Compute capability 9.0 has one kernel for many rows (staged.cu) and one for few (few.cu). Each has its own packing:
// with few rows, a group is split into as many streams as fill the device.
//
// For many columns, compute capability 9.0 has two kernels that multiply the same packed matrix by warpgroup MMA. One
// expands A to registers in the same way (prefill.cu). The other expands panels of rows to dense matrices in a
// workspace, and multiplies each while it expands the next (filled.cu). Suited picks the kernel for a matrix and a
// number of columns.
//
// On Vulkan devices of known fragment layout, matrices with few entries are packed as streams of twins (twins.go). A
// value is then two neighbouring elements of a row, which fill a whole register of the fragment, so that half as many
// values are taken.
//
// A quantised matrix (formats.Quantised) has 8-bit values. On CUDA a value of the streams is a pair of them, of
// neighbouring columns (quantised_cuda.go). It fills a whole register of the fragment, so that half as many values are
// taken.
//
// The grid's x counts sets of groups of 64 rows, its y blocks of columns of C. The streams of a group belong to warps
// of one CTA or cluster, whose partial sums are added in the order of the splits.
//
// Structural zeros never touch B. Places without an entry are multiplied like all others, which is right as long as B
// is finite. An output that is not finite is computed again from the entries alone; Stored tells them from other
// places.
package lanestream

import (
	"embed"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed scalar.wgsl
var files embed.FS

// Format is the table of the kernels. The array index has StreamPtr, SegmentRows, RemainderPtr, RemainderCol and
// Stored, and for a quantised matrix the scales.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "lanestream", Args: spec.FormatArgs("index u32", "mask u32", "values T"),
		Params: spec.Params[params](), Files: files,
		Variants: withColumns(spec.WithEpilogues(slices.Concat(cuda, scalarCUDA(), vulkan, webgpuVariants(), cpuVariants(),
			quantisedVariants()), spec.OneForm)),
	},
	Encode:          spec.Quantising(spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32]), packQuantised),
	EncodeQuantised: packQuantised,
	EncodePart:      packPart,
	Adopt:           adopt,
	Launch:          launch,
	Suited:          suited,
	// A mask has one bit for each place, and a slot counts as 16 bits.
	Slots:  func(rows, cols int) int64 { return int64(rows) * int64(cols) / 16 },
	Remake: remake,
}

var adoptStreams = spec.Adopter(take[half.F16], take[half.BF16], take[float32])

// params is the parameter block.
type params struct {
	rows, cols, n uint32
	ldb, ldc      uint32
	groups        uint32 // of 64 rows
	each          uint32 // groups of a cluster of CTAs; prefill.cu: band_tiles; filled.cu: panel_groups
	splits        uint32 // split-K: streams of a group
	segments      uint32 // of a group
	steps         uint32 // of a segment
	window        uint32 // segments of values that a step may read from
	store         uint32 // type of c, and epilogue: spec.Problem.StoreWord
	alpha, beta   float32
	width         uint32 // of the grid in x; filled.cu: panel_number; few.cu with B_LINES: stage buffer, in bytes
	maskLayout    uint32 // lanestream.Places or Pairs (in GLSL and WGSL "layout" is a keyword); few.cu with B_LINES: middles
}

// pack encodes a matrix with as many streams for each group as keep the device's warps busy.
func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	density := float64(len(a.Val)) / max(1, float64(a.Rows)*float64(a.Cols))
	if c, ok := any(a).(*formats.CSR[half.F16]); ok && v.Need.Lanes {
		if e, err := packTwins(c, density); e != nil || err != nil {
			return e, err
		}
	}
	o := options(v)
	o.Splits = splitsFor(a.Rows, v)
	shorten(&o, v, density)
	return packWith(a, v, o)
}

// packPart packs some rows of a matrix so that each row is summed in the same order as within the whole matrix: with
// the same number of streams, and segments of the same number of steps.
func packPart(rows formats.Sparse, v *spec.Variant, whole *spec.Packed) (*spec.Packed, error) {
	if f, ok := whole.Format.(*twinned); ok {
		return packTwinsPart(rows, v, f)
	}
	s, o := shapeOf(whole), options(v)
	o.Splits, o.SegmentSteps, o.Window = s.Splits, s.SegmentSteps, s.Window
	return spec.Encoder(partWith[half.F16](o), partWith[half.BF16](o), partWith[float32](o))(rows, v)
}

func partWith[T formats.Value](o lanestream.Options) func(*formats.CSR[T], *spec.Variant) (*spec.Packed, error) {
	return func(a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) { return packWith(a, v, o) }
}

// options returns the options that depend on the variant alone.
func options(v *spec.Variant) lanestream.Options {
	var o lanestream.Options
	o.Layout = int(sizesOf(v).layout)
	if staged(v) {
		o.RingRows = stagedRows(o.Layout)
	}
	return o
}

func packWith[T formats.Value](a *formats.CSR[T], v *spec.Variant, o lanestream.Options) (*spec.Packed, error) {
	if isFew(v) {
		fewSegments(&o, float64(len(a.Val))/max(1, float64(a.Rows)*float64(a.Cols)))
	}
	m, err := lanestream.Encode(a, o)
	if err != nil {
		return nil, err
	}
	return arrange(m, v)
}

// splitsFor returns the number of splits of a group of rows: the warps of a cluster, divided among the groups that the
// cluster gets when every multiprocessor has one CTA.
func splitsFor(rows int, v *spec.Variant) int {
	x := sizesOf(v)
	groups, clusters, warps := spec.Ceil(rows, lanestream.GroupRows), int(x.ctas/x.cluster), x.clusterWarps()
	each := max(1, spec.Ceil(groups, clusters))
	if staged(v) {
		each = max(each, stagedGroups)
	}
	return max(1, warps/min(warps, each))
}

// clusterWarps returns the number of warps of a cluster.
func (x sizes) clusterWarps() int { return int(x.warps * x.cluster) }

// atOnce returns how many streams a cluster multiplies at the same time.
func (x sizes) atOnce() int {
	if x.streams > 0 {
		return int(x.streams)
	}
	return x.clusterWarps()
}

// take adopts a matrix that is already encoded.
func take[T formats.Value](m *lanestream.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if want := int(sizesOf(v).layout); m.Layout != want && v.Code != backend.CodeGo {
		return nil, fmt.Errorf("kernel lanestream/%s takes a matrix of layout %d, not %d", v.Name, want, m.Layout)
	}
	if rows, most := m.RingRows(), stagedRows(m.Layout); staged(v) && rows > most {
		return nil, fmt.Errorf("kernel lanestream/%s takes a matrix whose segments need a ring of %d rows, not %d", v.Name, most, rows)
	}
	if isFew(v) && !fitsWidths(m.Shape()) {
		return nil, fmt.Errorf("kernel lanestream/%s has no room for segments of %d steps in a window of %d with %d rows of values and masks", v.Name, m.SegmentSteps, m.Window, m.RingRows())
	}
	if want := splitsFor(m.Rows, v); sizesOf(v).ring > 0 && m.Splits != want {
		return nil, fmt.Errorf("kernel lanestream/%s takes a matrix of %d rows in groups of %d streams, not %d", v.Name, m.Rows, want, m.Splits)
	}
	return arrange(m, v)
}

// arrange joins the arrays of indices.
func arrange[T formats.Value](m *lanestream.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	index := slices.Concat(m.StreamPtr, m.SegmentRows, m.RemainderPtr, m.RemainderCol, m.Stored)
	aside := 4 * int64(len(m.Stored)) // bytes that most products do not read
	var work any
	if s := m.Shape(); hasMiddles(v, s) {
		work = middlesAt(len(index))
		index = append(index, middles(m, firstRow(s, int(sizesOf(v).warps)/eachOf(v, s)))...)
		aside += 4 * int64(m.Rows)
	}
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Stats: m.Stats(), Items: int64(m.Groups()), Format: m,
		Panel: lanestream.GroupRows, Work: work,
		Arrays: []spec.Array{
			spec.NewArray("index", index),
			spec.NewArray("mask", m.Mask),
			spec.NewArray("values", m.Values),
		},
	}
	e.Stats.StoredBytes -= aside // Stored is read only where B is not finite, middles only where B is column-major
	e.Stats.Staged = true        // the warps of a group read the same rows of B at the same time
	return e, nil
}

// launch computes the grid: sets of groups along x, and blocks of columns along y.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel lanestream/%s: %w", v.Name, err)
	}
	if err := takes(v, e, p); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel lanestream/%s: %w", v.Name, err)
	}
	s := shapeOf(e)
	switch {
	case v.Kind == prefillKind:
		return launchPrefill(v, s, p), nil
	case v.Kind == filledKind:
		return launchFilled(v, s, p)
	}
	x, each := sizesOf(v), eachOf(v, s)
	blocks, across := spec.Ceil(s.Groups, each)*int(x.cluster), spec.Ceil(p.N, v.Tile.Cols)
	if n := int(x.groups); n > 0 { // wide.comp numbers its workgroups itself: those of the same rows are neighbours
		blocks, across = spec.Ceil(s.Groups, n)*across, 1
	}
	groups, err := v.Grid(blocks, across)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel lanestream/%s: %w", v.Name, err)
	}
	l := pass(v, s, p, groups, each)
	if v.Kind == linesKind {
		l.Passes[0].Params = spec.Block(inLines(v, e, p))
	}
	return l, nil
}

// eachOf returns how many groups of rows a cluster has.
func eachOf(v *spec.Variant, s lanestream.Shape) int { return max(1, sizesOf(v).atOnce()/s.Splits) }

// takes refuses a matrix that was packed for another kernel, for example with segments that the variant has no room
// for.
func takes(v *spec.Variant, e *spec.Packed, p spec.Problem) error {
	x, s := sizesOf(v), shapeOf(e)
	f, twins := e.Format.(*twinned)
	fits := twins == (x.twins != twinKind{}) && (!twins || x.twins == f.kind)
	switch {
	case v.Kind == linesKind:
		fits = linesFor(v, s, p) == v
	case v.Kind == stagedKind:
		fits = slices.ContainsFunc(stagedKernels, func(k stagedKernel) bool {
			return int(k.cols) == v.Tile.Cols && k.pairs == x.layout && int(k.pairs) == s.Layout && k.fits(s)
		})
	case v.Kind == prefillKind:
		fits = s.Layout == lanestream.Places
	case x.short && !twins:
		fits = shortSegments(e)
	}
	if !fits {
		return fmt.Errorf("the matrix is packed in segments that it does not take: %w", backend.ErrUnsupported)
	}
	if (v.Kind == teamsKind || v.Kind == twinsKind) && int64(p.K)*int64(p.LDB) >= 1<<31 {
		return fmt.Errorf("B of %d×%d has 2³¹ elements or more: %w", p.K, p.LDB, backend.ErrUnsupported)
	}
	return nil
}

// suited returns the variant of v's packing that multiplies in a problem.
func suited(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	switch {
	case v.Quant != dtype.Invalid && v.Code == backend.CodePTX:
		return pairsFor(v, p.N)
	case v.Quant != dtype.Invalid:
		return v
	case v.Code == backend.CodePTX:
		return forColumns(v, shapeOf(e), p)
	case v.Code == backend.CodeSPIRV:
		return vulkanFor(v, e, p)
	}
	return v
}

func shapeOf(e *spec.Packed) lanestream.Shape {
	return e.Format.(interface{ Shape() lanestream.Shape }).Shape()
}

// pass returns a launch of one grid.
func pass(v *spec.Variant, s lanestream.Shape, p spec.Problem, groups [3]uint32, each int) spec.Launch {
	x := paramsOf(s, p)
	x.each, x.width = uint32(each), groups[0]
	return spec.Launch{Passes: []spec.Pass{{Variant: v.For(p), Groups: groups, Params: spec.Block(x)}}}
}

// paramsOf returns the parameters that a matrix and a problem determine.
func paramsOf(s lanestream.Shape, p spec.Problem) params {
	return params{
		rows: uint32(p.M), cols: uint32(p.K), n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC),
		groups: uint32(s.Groups), splits: uint32(s.Splits), segments: uint32(s.Segments), steps: uint32(s.SegmentSteps),
		window: uint32(s.Window),
		store:  p.StoreWord() | p.OrderWord(), alpha: float32(p.Alpha), beta: float32(p.Beta), maskLayout: uint32(s.Layout),
	}
}
