// Package rfx multiplies reproducibly: RFX-p products, which package formats/rfx defines, of a matrix in
// compressed sparse rows, or in panels of rows, and a B that kernel quantise brought to fixed point. Any
// format can be lowered to these.
//
// The entries' integers are encoded once, on the host. Each kind of device sums products of
// the digits that suit its units, exactly:
//
//	CUDA            64-bit sums: whole integers at p = 15 and 23, those of A in halves of 16 bits at 31,
//	                both in halves of 24 bits at 47
//	CPU             the same products, in float64: exact sums of chunks of rows, see run.go
//	Vulkan, WebGPU  32-bit sums of products of digits of 12 bits (at p = 15 of 8 bits of A and all of B),
//	                added to a 128-bit integer before they can overflow
//	matrix units    (CUDA, Vulkan; panels, p to 31) 32-bit sums of products of digits of 8 bits, one for each
//	                sum of two places, which a segment of fewer than 2¹⁵ vectors cannot overflow;
//	                (CUDA 9.0; strips, every p) the same, of at most 2¹⁴ columns: see strips.go;
//	                (CUDA 9.0; pairs, every p) likewise, of two of every four columns: see pairs.go;
//	                (CUDA 9.0, Vulkan; dense, every p) 32-bit sums of products of residues: see residues.go;
//	                (Vulkan; dense, every p) as strips: see few.go
//	dot products    (Vulkan with shaderIntegerDotProduct, WebGPU with packed_4x8_integer_dot_product; dense,
//	                every p) as residues on CUDA; (Vulkan) as few.go
//
// Work is shared out as in kernel csr: an item is a row, or a segment of a row that is much longer than the
// average or than 2¹⁵ entries, which the sums above have room for. A segment leaves 128-bit sums in the
// workspace, which phase 1 adds up. So long rows take no other arithmetic than short ones. On CUDA from compute
// capability 9.0 on a workgroup has a segment, shorter rows are segments too, and one that is a whole row goes to C.
// Rows of middle length have a warp each. There are variants there (Direct) that read B in f32 with the ranges of its
// columns.
//
// The sum is rounded, and alpha and beta are applied, in integers (on CUDA the conversion of a 64-bit integer does it
// where the result is a normal number, on the CPU that of a float64). Where a range tells that the row or
// the column holds an element that is not finite, the output is decided by the entries' values as they
// are in A and B. So that structural zeros do not touch B, and nothing is paid where data are finite.
package rfx

import (
	"embed"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl residues.wgsl combine.wgsl
var files embed.FS

// storeWGSL is store.wgsl, which sources have as STORE.
//
//go:embed store.wgsl
var storeWGSL string

// Format is the table of the reproducible kernel. Variants differ in p, and take A and B in any type. It
// is no format: between b and c there is the quantised B.
//
//	rows    the rows, how they are shared out, and the entries' columns: see pack
//	ints    the entries as integers, see pack
//	values  the entries as they are
//	b, q    B as it is, and quantised
//	bias, c bits of f32
//	part    128-bit sums of segments, ldq columns
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "rfx", Args: spec.Args("rows u32", "ints u32", "values u32", "b u32", "q u32", "bias u32",
			"c u32 written", "part u32 written"),
		Params: spec.Params[params](), Variants: variants, Files: files,
	},
	Encode: encode, Launch: launch, Suited: suited,
}

// params is the parameter block.
type params struct {
	n        uint32
	ldb, ldc uint32
	ldq      uint32 // of q; with strips the blocks of A's columns; with B in shared memory its rows
	first    uint32 // word of q's rows; in combine.cu of the remainder
	// word of rows' segments: see pack and packPanels; of strips' segments: see packStrips
	heavy       uint32
	columns     uint32 // word of rows' columns of the entries
	segments    uint32 // segments; of a strip
	warps       uint32 // rows for a warp each
	items       uint32 // of this phase: segments and rows, or rows in segments; strips
	width       uint32 // of the grid in x
	per         uint32 // items of one workgroup; blocks of a segment
	longest     uint32 // rows with more entries are in segments; bytes of the largest segment
	shape       uint32 // four bytes: see packed
	store       uint32 // see spec.Problem.StoreWord; and scaled
	alpha, beta uint32 // bits of f32
}

// packed puts four numbers into a word, from the lowest byte on: across, lanes side by side; along, lanes that take
// entries in turn (both powers of two); the phase, 0 for rows and segments, 1 for the sums of segments; the type of
// values and b, 0 f32, 1 f16, 2 bf16.
func (s shape) packed(phase uint32, t dtype.Type) uint32 {
	return uint32(s.across) | uint32(s.along)<<8 | phase<<16 | include.Number(t)<<24
}

// scaled is set in the parameter store where alpha is not 1 or beta not 0. So kernels that find 0 there store the
// rounded sum as it is.
const scaled = 1 << 16

func storeWord(p spec.Problem) uint32 {
	if p.Alpha != 1 || p.Beta != 0 {
		return p.StoreWord() | scaled
	}
	return p.StoreWord()
}

// local is the number of invocations of a workgroup, shared the bytes in which they add up sums.
const (
	local  = 128
	shared = local * 64
)

// variants, those for rows first.
var variants = slices.Concat(byRows(), byMatrixUnits(), byDotResidues())

func byRows() []*spec.Variant {
	var vs []*spec.Variant
	for _, p := range rfx.All {
		name := func(backend string) string { return fmt.Sprintf("%s_p%d", backend, p) }
		bits := slices.Clip([]spec.Const{spec.Define("BITS", uint32(p))})
		gpu := spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: shared}, Consts: bits}
		web := gpu
		web.Unit.Defines = wgsl(p)
		vs = append(vs, rows90(name("cuda90"), p, rowsKind, bits))
		if p != rfx.P47 {
			vs = append(vs, rows90(name("cuda90_direct"), p, directKind, append(bits, spec.Define("DIRECT", 1))))
		}
		for _, v := range []*spec.Variant{
			spec.PTX(name("cuda"), spec.Variant{Entry: "rfx", Local: spec.Line(local), Consts: bits}),
			spec.SPIRV(name("vulkan"), gpu), spec.WGSL(name("webgpu"), web),
			spec.Go(name("cpu"), dtype.F32, group(p), bits...),
		} {
			vs = append(vs, sizes{p: p}.sized(v, rowsKind, 0))
		}
	}
	return vs
}

// rows90 returns a variant of kernel.cu from compute capability 9.0 on.
func rows90(name string, p rfx.P, kind *spec.Kind, consts []spec.Const) *spec.Variant {
	return sizes{p: p, teams: true}.sized(spec.PTX(name, spec.Variant{
		Entry: "rfx", Local: spec.Line(local), Overlaps: true, Need: spec.Need{Arch: 90},
		Consts: append(slices.Clip(consts), spec.Define("TEAMS", 1)),
		Unit:   spec.Unit{Defines: map[string]string{"OVERLAP": "1"}},
	}), kind, 0)
}

// Variant returns the variant for p and a kind that a device runs.
func Variant(caps backend.Caps, p rfx.P, k Kind) (*spec.Variant, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	for _, v := range variants {
		if v.Met(caps) && PrecisionOf(v) == p && kind(v) == k {
			return v, nil
		}
	}
	return nil, fmt.Errorf("reproducible kernel: the device runs none of its variants for %v at p = %d: %w", k, p,
		backend.ErrUnsupported)
}

// Split says for what a matrix is encoded, and how its rows or panels are shared out: the Format of matrices that this
// kernel encodes. Of panels, Longest counts vectors, 0 where none is in segments, and a segment of one counts V times,
// once for each row.
type Split struct {
	spec.Split
	P      rfx.P
	Type   dtype.Type
	V      int    // rows of a panel; 0: there are none
	Items  uint32 // panels and segments of panels
	Strips Strips
	Pairs  Strips
	// Columns is the word of the array rows at which the entries' columns begin, Table that of rfx.Residues.Table, Weights
	// that of rfx.Residues.DigitWeights.
	Columns, Table, Weights uint32
	Planes                  int    // bytes of an element as residues or digits; 0: it is not in planes
	Digits                  bool   // it is of kind Digits
	Remainder               uint32 // the word of rows at which a remainder begins: see packSparseResidues; 0: none
}

// maxEntries keeps entry numbers, and what kernels step past the last one, in 32 bits.
const maxEntries = math.MaxUint32 - 1<<17

func encode(a formats.Sparse, v *spec.Variant) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if err := fits32(a); err != nil {
		return nil, err
	}
	return packFor(a, v)
}

func fits32(a formats.Sparse) error {
	if rows, cols := a.Dims(); a.NNZ() > maxEntries || rows > math.MaxInt32/2 || cols > math.MaxInt32 {
		return fmt.Errorf("kernel rfx: %d rows, %d columns, %d entries do not fit 32-bit offsets: %w", rows, cols, a.NNZ(), backend.ErrUnsupported)
	}
	return nil
}

var packFor = formats.ByType(encodeFor[half.F16], encodeFor[half.BF16], encodeFor[float32])

func encodeFor[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	switch kind(v) {
	case Rows, Direct:
		return pack(a, v, longestRow(a.Rows, a.NNZ(), v)), nil
	case Residues, Digits:
		return packResidues(a, v)
	}
	return packForMatrixUnits(a, v)
}

// Layout is how a variant takes a B of k×n in fixed point.
func Layout(v *spec.Variant, k, n int) quantise.Layout {
	switch p := PrecisionOf(v); kind(v) {
	case Rows:
		return quantise.NewLayout(k, n, p)
	case Direct:
		return quantise.NewRanges(k, n, p)
	case Stationary:
		return quantise.NewNone(k, n, p)
	case InStrips, InPairs:
		return quantise.NewFragments(k, n, p)
	case Residues, SparseResidues, Digits:
		return quantise.NewPlanes(k, n, p, planesOf(k, v), inDigits(v))
	default:
		return quantise.NewDigits(k, n, p)
	}
}

// launch says how a variant multiplies with a B that kernel quantise brought to its Layout.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	m := e.Format.(Split)
	q := Layout(v, p.K, p.N)
	if err := check(v, e, p, q); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	switch {
	case kind(v) == Stationary:
		return launchStationary(v, e, p, q)
	case m.Strips.Blocks > 0:
		return launchStrips(v, e, p, q)
	case m.Pairs.Blocks > 0:
		return launchPairs(v, e, p, q)
	case kind(v) == Digits:
		return launchDigits(v, e, p, q)
	case m.Planes > 0:
		return launchResidues(v, e, p, q)
	}
	l := spec.Launch{Workspace: max(spec.NoWorkspace, int64(m.Slots)*int64(q.LD)*16)}
	var warps uint32
	phase := func(v *spec.Variant, number, heavy, segments uint32, teams, items int64, s shape) error {
		groups, err := spec.Fold(teams+spec.Ceil(items, int64(s.per)), spec.Ceil(p.N, s.columns))
		if err != nil {
			return fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
		}
		b := block(p, q, m)
		b.heavy, b.segments, b.items, b.width, b.per = heavy, segments, uint32(items), groups[0], uint32(s.per)
		b.warps, b.longest, b.shape = warps, m.Longest, s.packed(number, m.Type)
		l.Passes = append(l.Passes, spec.Pass{Variant: v, Groups: groups, Params: spec.Block(b)})
		return nil
	}
	var err error
	heavy, segments, second := uint32(2*(e.Rows+1)), m.Segments, v
	switch {
	case m.V > 0:
		err = phase(v, 0, heavy, 0, 0, int64(m.Items), panelShape(v))
		heavy, segments, second = heavy+m.Items*uint32(itemWords+m.V), 0, ofRows(v)
	case hasTeams(v):
		s := pickShape(v, e, p)
		if warps = m.Warps; s.across == lanes { // a warp would take the entries of a long row four at a time
			segments += m.Middle
		} else {
			warps += m.Middle
		}
		err = phase(v, 0, heavy, segments, int64(segments)+spec.Ceil(int64(warps), local/lanes), int64(p.M), s)
	default:
		err = phase(v, 0, heavy, segments, 0, int64(segments)+int64(p.M), pickShape(v, e, p))
	}
	if err == nil && m.Rows > 0 {
		err = phase(second, 1, heavy, segments, 0, int64(m.Rows), sumShape(second))
	}
	return l, err
}

// block returns the parameters that all launches of a product have.
func block(p spec.Problem, q quantise.Layout, m Split) params {
	return params{
		n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), ldq: uint32(q.LD), first: uint32(q.First()),
		columns: m.Columns, store: storeWord(p),
		alpha: math.Float32bits(float32(p.Alpha)), beta: math.Float32bits(float32(p.Beta)),
	}
}

// ofRows returns the variant for rows of the same p that runs on every device which runs one for panels.
func ofRows(v *spec.Variant) *spec.Variant {
	for _, x := range variants {
		if x.Code == v.Code && PrecisionOf(x) == PrecisionOf(v) && kind(x) == Rows && !hasTeams(x) {
			return x
		}
	}
	return nil
}

// check refuses what the kernel cannot do, in words that name the limit.
func check(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) error {
	m := e.Format.(Split)
	switch {
	case PrecisionOf(v) != m.P || panelRows(v) != m.V || kind(v).InPlanes() != (m.Planes > 0) ||
		kind(v) == SparseResidues != (m.Remainder > 0) || kind(v) == Digits != m.Digits:
		return fmt.Errorf("a matrix encoded for p = %d, panels of %d rows, %d bytes an element", m.P, m.V, m.Planes)
	case m.V > 0 && (kind(v) == Stationary) != (m.Longest == 0):
		return fmt.Errorf("a matrix in panels with segments of %d vectors", m.Longest)
	case (kind(v) == InStrips) != (m.Strips.Blocks > 0) || (kind(v) == InPairs) != (m.Pairs.Blocks > 0):
		return fmt.Errorf("a matrix in segments of %d blocks of strips, %d of pairs", m.Strips.Blocks, m.Pairs.Blocks)
	case p.M != e.Rows || p.K != e.Cols:
		return fmt.Errorf("a problem of %d×%d with a matrix of %d×%d", p.M, p.K, e.Rows, e.Cols)
	case p.N < 0 || p.LDB < p.N || p.LDC < p.N || p.LDB%8 != 0:
		return fmt.Errorf("%d columns with leading dimensions %d of B (a multiple of 8) and %d of C", p.N, p.LDB, p.LDC)
	case p.LDB > 1<<28 || p.LDC > 1<<28:
		return fmt.Errorf("leading dimensions %d and %d exceed 2²⁸: %w", p.LDB, p.LDC, backend.ErrUnsupported)
	case kind(v) == Direct && m.Type != dtype.F32:
		return fmt.Errorf("B of %v, which is not quantised before: %w", m.Type, backend.ErrUnsupported)
	case p.Out != dtype.F32:
		return fmt.Errorf("cannot write C as %v: %w", p.Out, backend.ErrUnsupported)
	case p.Epilogue.Activation != spec.NoActivation && p.Epilogue.Activation != spec.ReLU:
		return fmt.Errorf("cannot compute %v in reproducible mode: %w", p.Epilogue.Activation, backend.ErrUnsupported)
	case v.Code == backend.CodeSPIRV && q.Bytes() >= 1<<34:
		return fmt.Errorf("B of %d×%d quantised exceeds 16 GiB: %w", p.K, p.N, backend.ErrUnsupported)
	}
	for _, a := range e.Arrays {
		if err := p.CheckBinding(v, a.Name, int64(len(a.Data))); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		name  string
		bytes int64
	}{
		{"B", int64(p.K) * int64(p.LDB) * int64(m.Type.Size())},
		{"B quantised", q.Bytes()},
		{"C", int64(p.M) * int64(p.LDC) * 4},
		{"the workspace", int64(m.Slots) * int64(q.LD) * 16},
	} {
		if err := p.CheckBinding(v, x.name, x.bytes); err != nil {
			return err
		}
	}
	return nil
}
