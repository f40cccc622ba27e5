// Package quantise brings a dense matrix B to RFX-p's fixed point on a device (package rfx defines it):
// every column to integers in units of its own.
//
// The result is one buffer of words, ldq columns wide, ldq being N rounded up to a multiple of 8:
//
//	ranges   ldq words           the rfx.Range of each column
//	parts    chunks × ldq words  ranges of the columns' parts, from which those are joined; 0 for those that are part
//	                             of the range before
//	rows     K × (words of ldq elements)
//
// An element of a row takes, least significant byte first,
//
//	p = 15      16 bits, two to a word
//	p = 23, 31  a word
//	p = 47      two words, balanced digits of 24 bits: the ldq lower ones, then the ldq upper ones
//
// or, for kernels on matrix units of 8-bit integers (Layout.Digits; not on WebGPU and the CPU), balanced digits of
// 8 bits, the rows being odd multiples of 32 bytes, so that four of them whose numbers differ mod 4 are in other banks:
//
//	2 bytes × ldq   for each pair of places, the lowest first: of every 8 columns, 8 digits of the lower place
//	                and then 8 of the higher
//	1 byte × ldq    the last place at p = 23
//
// or, for kernels of few columns on CUDA (Layout.Fragments), balanced digits of 8 bits in the order of operand B of
// mma.m16n8k32: for every 8 columns, for every 32 rows up to a multiple of 64, for each place, the lowest first,
//
//	8 bytes × 32    of lane 4g + t of a warp: of column g, rows 4t to 4t + 3 and 16 + 4t to 16 + 4t + 3
//
// or, for kernels on residues (Layout.Planes; not on the CPU), bytes, modulo the first of rfx.Moduli or digits, on
// CUDA at p = 15 alone:
//
//	128 × ldq bytes  for each modulus or digit, for each 128 rows of B: the rows' bytes of each column, side by side,
//	                 in which 16-byte chunk c is at c xor the column mod 8; on Vulkan and WebGPU four slices of 32 rows, which have
//	                 the rows' bytes of each column in their order
//
// or, for kernels on CUDA that quantise elements of B as they read them (Layout.Ranges), there are ranges alone.
//
// Columns N to ldq, and rows of fragments and residues from K on, are zeros. Elements that are not finite are zeros too;
// their columns' ranges tell.
//
// On CUDA and the CPU ranges of a B that is quantised tell no lowest bits, which no integer depends on: see Ranges.
//
// Two phases, each a launch: 0 (for fragments 4) finds the parts' ranges, a workgroup for each tile of rows and columns;
// 1 joins them and quantises, or does phase 2, to digits, or 3, to fragments, or residues.comp. On CUDA residues.cu does
// both. For ranges alone phase 6 joins those of parts in memory, by atomic maxima, whose order does not matter, after
// phase 5 has set them to zero. On CUDA from compute capability 9.0 on launches overlap.
package quantise

import (
	"embed"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl residues.wgsl
var files embed.FS

// Program is the table of the quantising kernel. It has no Encode; see Launch.
var Program = &spec.Program{
	Name: "quantise", Args: spec.Args("b u32", "q u32 written"), Params: spec.Params[params](), Files: files,
	Variants: []*spec.Variant{
		wide, narrow, cuda("cuda", local, spec.Variant{}), residues,
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: shared + 32*local},
			Consts: digits}),
		coopResidues[0], coopResidues[1],
		spec.WGSL("webgpu", spec.Variant{
			Local: spec.Line(local), Need: spec.Need{Shared: shared},
			Unit: spec.Unit{Defines: map[string]string{"HALF": include.HalfWGSL, "FIXED": include.FixedWGSL}},
		}),
		dotResidues,
		spec.Go("cpu", dtype.F32, group),
	},
}

// residues is residues.cu, which does in one launch what the phases do for other layouts.
var residues = spec.PTX("cuda_residues", spec.Variant{Entry: "quantise", Local: spec.Line(2 * local),
	Need: spec.Need{Arch: 90}, Overlaps: true, Unit: spec.Unit{Source: "residues.cu"}})

// coopResidues is residues.comp, which joins ranges and quantises after phase 0; the second for p = 47.
var coopResidues = [2]*spec.Variant{coop("vulkan_residues", 0), coop("vulkan_residues_p47", 1)}

func coop(name string, wide uint32) *spec.Variant {
	return spec.SPIRV(name, spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: 4 * local},
		Consts: []spec.Const{{Name: "WIDE", ID: 0, Value: wide}},
		Unit:   spec.Unit{Source: "residues.comp", Blob: "vulkan_residues.spv"}})
}

// dotResidues is residues.wgsl, which does the same.
var dotResidues = spec.WGSL("webgpu_residues", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: 4 * local},
	Unit: spec.Unit{Source: "residues.wgsl", Defines: map[string]string{
		"HALF": include.HalfWGSL, "FIXED": include.FixedWGSL, "RESIDUES": include.ResiduesWGSL}}})

// planesOf returns the variant that brings B to planes of a layout after phase 0, on the devices that v runs on.
func (l Layout) planesOf(v *spec.Variant) *spec.Variant {
	if v.Code == backend.CodeWGSL {
		return dotResidues
	}
	return coopResidues[spec.Flag(l.P == rfx.P47)]
}

// Depth is the rows of B that residues.cu puts side by side, residuesCols the columns and residuesCTAs the CTAs of a
// cluster of it.
const (
	Depth        = 128
	residuesCols = 16
	residuesCTAs = 8
	most         = 16 // planes
)

// params is the parameter block.
type params struct {
	phase    uint32
	k, n     uint32
	ldb, ldq uint32
	elem     uint32 // type of b: 0 f32, 1 f16, 2 bf16
	bits     uint32 // p; 0 in phase 0 for ranges with lowest bits
	chunks   uint32 // parts of a column
	rows     uint32 // of a workgroup in this phase
	// Lanes side by side, of two columns each, on CUDA of four, in phase 2 of eight; not on the CPU. In residues.cu and
	// residues.comp the moduli, 0 for digits.
	across uint32
}

// digits marks variants that have phase 2.
var digits = []spec.Const{spec.Define("DIGITS", 1)}

// cuda is a variant with workgroups of n threads, which has phase 3, too.
func cuda(name string, n uint32, v spec.Variant) *spec.Variant {
	v.Entry, v.Local = "quantise", spec.Line(n)
	v.Consts = append(slices.Clone(digits), spec.Define("FRAGMENTS", 1), spec.Define("LOCAL", n))
	return spec.PTX(name, v)
}

// narrowElems is the most elements of a workgroup in phase 0 for which narrow is taken: four for each of its threads.
const narrowElems = 16 * local

// wide and narrow are for CUDA from compute capability 9.0 on; narrow is for few columns.
var wide, narrow = hopper("cuda90", 4*local), hopper("cuda90_narrow", local)

func hopper(name string, n uint32) *spec.Variant {
	return cuda(name, n, spec.Variant{
		Need: spec.Need{Arch: 90}, Overlaps: true, Unit: spec.Unit{Defines: map[string]string{"OVERLAP": "1"}},
	})
}

// local is the invocations of a workgroup, shared the bytes in which they join ranges.
const (
	local  = 128
	shared = local * 8
)

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) { return Program.First(caps, dtype.F32) }

// Layout says where things are in the result for a B of K×N, in words.
type Layout struct {
	K, N   int
	LD     int // ldq
	Chunks int
	P      rfx.P
	Digits bool // rows are of digits of 8 bits
	Planes int  // if positive: bytes of an element, in planes, which are residues unless Digits
	// Fragments: digits of 8 bits are in the order of fragments.
	Fragments bool
	Ranges    bool // there are ranges alone
	None      bool // there is nothing
}

// chunkRows and maxChunks bound the parts of a column.
const (
	chunkRows = 64
	maxChunks = 128
	// wholeChunks bounds the parts where no workgroup reads the ranges of all.
	wholeChunks = 256
)

// NewLayout returns the layout of the result for p.
func NewLayout(k, n int, p rfx.P) Layout {
	l := Layout{K: k, N: n, LD: (n + 7) &^ 7, P: p, Chunks: 1}
	if k > 0 {
		l.Chunks = (k + l.chunk() - 1) / l.chunk()
	}
	return l
}

// NewDigits is NewLayout for digits, of p below 47.
func NewDigits(k, n int, p rfx.P) Layout {
	l := NewLayout(k, n, p)
	l.Digits = true
	return l
}

// NewFragments is NewLayout for digits in the order of fragments.
func NewFragments(k, n int, p rfx.P) Layout {
	l := NewLayout(k, n, p)
	l.Fragments = true
	return l
}

// NewRanges is NewLayout for ranges alone.
func NewRanges(k, n int, p rfx.P) Layout {
	return Layout{K: k, N: n, LD: (n + 7) &^ 7, P: p, Ranges: true}
}

// NewNone is NewLayout for kernels that quantise B themselves.
func NewNone(k, n int, p rfx.P) Layout { return Layout{K: k, N: n, LD: (n + 7) &^ 7, P: p, None: true} }

// NewPlanes is NewLayout for bytes in planes: residues modulo the first of rfx.Moduli, or digits.
func NewPlanes(k, n int, p rfx.P, planes int, digits bool) Layout {
	l := NewLayout(k, n, p)
	l.Planes, l.Digits = planes, digits
	return l
}

// Blocks returns how many times Depth rows there are.
func (l Layout) Blocks() int { return spec.Ceil(l.K, Depth) }

// chunk returns the rows of a part of a column.
func (l Layout) chunk() int { return max(chunkRows, (l.K+maxChunks-1)/maxChunks) }

// First returns the first word of the rows.
func (l Layout) First() int { return l.LD * (1 + l.Chunks) }

// Row returns the words of a row; of fragments and residues, those that its elements take.
func (l Layout) Row() int {
	switch {
	case l.Ranges, l.None:
		return 0
	case l.Planes > 0:
		return l.LD / 4 * l.Planes
	case l.Digits:
		return ((l.LD*l.P.Bytes()+31)/64*64 + 32) / 4
	case l.Fragments:
		return l.LD * l.P.Bytes() / 4
	}
	return l.LD * l.P.Size() / 4
}

// rows returns how many there are.
func (l Layout) rows() int {
	switch {
	case l.Fragments:
		return (l.K + 63) &^ 63
	case l.Planes > 0:
		return l.Blocks() * Depth
	}
	return l.K
}

// Bytes returns the size of the result, at least 16.
func (l Layout) Bytes() int64 {
	if l.None {
		return 16
	}
	return max(16, 4*(int64(l.First())+int64(l.rows())*int64(l.Row())))
}

// Launch says how a variant quantises a row-major B of the layout's K×N in elements of type t, ldb
// apart, a multiple of 8. Columns past N may hold anything.
func Launch(v *spec.Variant, l Layout, t dtype.Type, ldb int) (spec.Launch, error) {
	if err := check(v, l, t, ldb); err != nil {
		return spec.Launch{}, fmt.Errorf("quantising B of %d×%d: %w", l.K, l.N, err)
	}
	if l.None {
		return spec.Launch{}, nil
	}
	if l.Planes > 0 && v.Code == backend.CodePTX {
		return spec.Launch{Passes: []spec.Pass{l.planes(residues, residuesCTAs, t, ldb)}}, nil
	}
	v = l.sized(v)
	if l.Ranges {
		zero := l.pass(v, t, ldb, params{phase: 5, rows: uint32(max(1, l.K))})
		zero.Groups[1] = uint32(spec.Ceil(l.LD, int(v.Local[0])))
		rows := max(chunkRows, spec.Ceil(l.K, wholeChunks))
		scan := l.pass(v, t, ldb, params{phase: 6, bits: uint32(l.P), rows: uint32(rows)})
		return spec.Launch{Passes: []spec.Pass{zero, scan}}, nil
	}
	ranges := l.pass(v, t, ldb, params{phase: 0, bits: uint32(l.P), rows: uint32(l.chunk() * l.together(v))})
	values := params{phase: 1, bits: uint32(l.P), rows: uint32(rowsOf(l, leastRows(v, l)))}
	switch {
	case l.Planes > 0:
		planes := l.planes(l.planesOf(v), uint32(l.Blocks()), t, ldb)
		return spec.Launch{Passes: []spec.Pass{ranges, planes}}, nil
	case l.Digits:
		values.phase, values.rows = 2, uint32(rowsOf(l, 64))
	case l.Fragments:
		values.phase, values.rows = 3, v.Local[0] // a warp has 32 rows
		ranges = l.pass(v, t, ldb, params{phase: 4, bits: uint32(l.P), rows: uint32(l.chunk())})
	}
	return spec.Launch{Passes: []spec.Pass{ranges, l.pass(v, t, ldb, values)}}, nil
}

// Ranges is the pass of Launch that finds the ranges of the columns' parts. It leaves them whole, as choosing p needs
// them. The pass of Launch may leave out the lowest bits, on CUDA and the CPU.
func Ranges(v *spec.Variant, l Layout, t dtype.Type, ldb int) (spec.Launch, error) {
	if err := check(v, l, t, ldb); err != nil {
		return spec.Launch{}, fmt.Errorf("ranges of B of %d×%d: %w", l.K, l.N, err)
	}
	v = l.sized(v)
	ranges := l.pass(v, t, ldb, params{phase: 0, rows: uint32(l.chunk() * l.together(v))})
	return spec.Launch{Passes: []spec.Pass{ranges}}, nil
}

// sized returns the variant to take for v.
func (l Layout) sized(v *spec.Variant) *spec.Variant {
	if v == wide && (l.Fragments || l.chunk()*l.LD <= narrowElems) {
		return narrow
	}
	return v
}

// pass is a pass of kernel.cu and its likes, given the phase, its bits and the rows of a workgroup.
func (l Layout) pass(v *spec.Variant, t dtype.Type, ldb int, p params) spec.Pass {
	lane, most := 2, 32
	switch {
	case p.phase == 2:
		lane, most = 8, 16
	case p.phase == 3 || p.phase == 4:
		lane, most = 8, 1
	case v.Code == backend.CodePTX:
		lane = 4
	}
	across, columns := spread(v, l.LD, lane, most)
	p.k, p.n, p.ldb, p.ldq, p.elem = uint32(l.K), uint32(l.N), uint32(ldb), uint32(l.LD), include.Number(t)
	p.chunks, p.across = uint32(l.Chunks), uint32(across)
	groups := [3]uint32{uint32(max(1, spec.Ceil(p.k, p.rows))), uint32(columns), 1}
	if l.N == 0 {
		groups = [3]uint32{}
	}
	return spec.Pass{Variant: v, Groups: groups, Params: spec.Block(p)}
}

// planes is the pass of residues.cu or residues.comp, with that many workgroups along K.
func (l Layout) planes(v *spec.Variant, along uint32, t dtype.Type, ldb int) spec.Pass {
	moduli := l.Planes
	if l.Digits {
		moduli = 0
	}
	groups := [3]uint32{max(1, along), uint32(spec.Ceil(l.LD, residuesCols)), 1}
	if l.N == 0 {
		groups = [3]uint32{}
	}
	return spec.Pass{Variant: v, Groups: groups, Params: spec.Block(params{
		k: uint32(l.K), n: uint32(l.N), ldb: uint32(ldb), ldq: uint32(l.LD), elem: include.Number(t), bits: uint32(l.P),
		chunks: uint32(l.Chunks), across: uint32(moduli),
	})}
}

// spread returns how many lanes of `lane` columns, at most `most`, are side by side in a workgroup, and how many
// workgroups cover ld columns.
func spread(v *spec.Variant, ld, lane, most int) (across, groups int) {
	if v.Code == backend.CodeGo {
		return 1, 1
	}
	across = 1
	for across < most && across*lane < ld {
		across *= 2
	}
	return across, max(1, (ld/lane+across-1)/across)
}

// rowsOf returns the rows that a workgroup quantises: enough to be worth joining the ranges first, few
// enough to keep a device busy, and no more workgroups than a grid may have along a side.
func rowsOf(l Layout, least int) int { return max(least, (l.K+65534)/65535) }

// groupElements is the least elements of B that a workgroup takes on the CPU: to wake another core takes as long as to
// quantise them.
const groupElements = 1 << 15

// together returns how many parts of a column a workgroup finds the range of: on the CPU some that are few elements, in
// place of the first of them.
func (l Layout) together(v *spec.Variant) int {
	if v.Code != backend.CodeGo {
		return 1
	}
	return max(1, min(l.Chunks, groupElements/max(1, l.chunk()*l.LD)))
}

// leastRows returns the least rows that a workgroup quantises to integers. On the CPU joining the ranges of a column's
// parts must cost little compared with quantising its elements in these rows. On GPUs the lanes of a workgroup share
// that work; there are at most about as many workgroups as run at once, twice over, as each reads all ranges.
func leastRows(v *spec.Variant, l Layout) int {
	const least, most = 128, 512
	switch {
	case v.Code == backend.CodeGo:
		return max(least, 8*l.Chunks, groupElements/max(1, l.LD))
	case v == wide:
		return max(least/2, spec.Ceil(l.K, max(1, most*128/max(1, l.LD))))
	}
	return least
}

func check(v *spec.Variant, l Layout, t dtype.Type, ldb int) error {
	if err := l.P.Check(); err != nil {
		return err
	}
	switch {
	case l != NewLayout(l.K, l.N, l.P) && l != NewDigits(l.K, l.N, l.P) && l != NewFragments(l.K, l.N, l.P) &&
		l != NewRanges(l.K, l.N, l.P) && l != NewNone(l.K, l.N, l.P) &&
		(l.Planes <= 0 || l.Planes > most || l != NewPlanes(l.K, l.N, l.P, l.Planes, l.Digits)) || l.K < 0 || l.N < 0:
		return fmt.Errorf("not a layout: %+v", l)
	case l.Planes > 0 && l.Digits && l.Planes != l.P.Bytes():
		return fmt.Errorf("%d digits in planes at p = %d", l.Planes, l.P)
	case l.Planes > 2 && l.Digits && v.Code == backend.CodePTX:
		return fmt.Errorf("%d digits in planes on a device that runs %v: %w", l.Planes, v.Code, backend.ErrUnsupported)
	case l.Planes == 0 && l.Digits && (l.P == rfx.P47 || v.Const("DIGITS") == 0):
		return fmt.Errorf("digits of 8 bits at p = %d on a device that runs %v: %w", l.P, v.Code, backend.ErrUnsupported)
	case l.Planes > 0 && v.Code == backend.CodeGo:
		return fmt.Errorf("bytes in planes on a device that runs %v: %w", v.Code, backend.ErrUnsupported)
	case l.Planes > 0 && (l.LD/residuesCols > 65535 || l.Blocks() > 65535):
		return fmt.Errorf("bytes in planes of %d columns: %w", l.N, backend.ErrUnsupported)
	case l.Fragments && (v.Const("FRAGMENTS") == 0 || l.LD/8 > 65535):
		return fmt.Errorf("fragments of %d columns on a device that runs %v: %w", l.N, v.Code, backend.ErrUnsupported)
	case l.Ranges && v.Const("FRAGMENTS") == 0:
		return fmt.Errorf("ranges alone on a device that runs %v: %w", v.Code, backend.ErrUnsupported)
	case t != dtype.F16 && t != dtype.BF16 && t != dtype.F32:
		return fmt.Errorf("elements of type %v", t)
	case ldb < l.N || ldb%8 != 0:
		return fmt.Errorf("a leading dimension of %d (a multiple of 8, at least %d)", ldb, l.N)
	case ldb > 1<<28 || l.K > math.MaxInt32:
		return fmt.Errorf("%d rows, %d apart, exceed 2³¹ and 2²⁸: %w", l.K, ldb, backend.ErrUnsupported)
	case v.Code == backend.CodeWGSL && max(l.Bytes(), int64(l.K)*int64(ldb)*int64(t.Size())) > math.MaxUint32:
		return fmt.Errorf("%d bytes quantised, a binding's bytes are numbered in 32 bits: %w", l.Bytes(), backend.ErrUnsupported)
	}
	return nil
}
