// A as residues of every element, dense: what the variants on warpgroup matrix instructions, on Vulkan's cooperative
// matrices (residues_coop.go), and by dot products (residues_dot.go) multiply from.
//
// Each element's integer is taken modulo coprime numbers of at most 8 bits (rfx.Moduli). residues.cu multiplies A and B
// once for each modulus and leaves the residues of the sums; combine.cu puts those together. That takes one product of
// 8-bit integers a modulus, where digits take one for each pair: 8, 10, 14 rather than 9, 16, 36 for 4096 columns. At
// p = 15 digits take 4, and residues would take 6: there the same kernels multiply digits.

package rfx

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	tileRows      = 256       // of a cluster
	mostColumns   = 1<<16 - 1 // of A: sums of so many products of residues fit 31 bits
	combineLocal  = 256       // invocations of combine.cu
	residuesBytes = 1 << 36   // the most that A may take
)

// byResidues are the variants for residues on CUDA, the widest tiles first.
func byResidues() []*spec.Variant {
	return slices.Concat(residuesOf(256, false), residuesOf(128, false), residuesOf(64, false))
}

// residuesOf are the variants with tiles of cols columns, for dense or for 2:4 matrices.
func residuesOf(cols uint32, sparse bool) []*spec.Variant {
	infix, kind := pick(sparse, "24", ""), pick(sparse, sparseResiduesKind, residuesKind)
	residues := sumsOf(fmt.Sprintf("cuda_residues%s_n%d", infix, cols), cols, false, sparse)
	digits := sumsOf(fmt.Sprintf("cuda_digits%s_n%d", infix, cols), cols, true, sparse)
	var vs []*spec.Variant
	for _, p := range rfx.All {
		sums := pick(p == digitsAt, digits, residues)
		v := spec.PTX(fmt.Sprintf("cuda_residues%s_p%d_n%d", infix, p, cols), spec.Variant{
			Entry: "rfx", Local: spec.Line(combineLocal), Before: sums, Overlaps: true,
			Consts: []spec.Const{spec.Define("BITS", uint32(p)), spec.Define("LIMBS", uint32(p.Limbs())),
				spec.Define("DIGITS", spec.Flag(p == digitsAt)), spec.Define("SPARSE", spec.Flag(sparse))},
			Need: spec.Need{Arch: 90, Exact: true, Shared: sums.Shared,
				Shapes: []backend.MatrixShape{spec.Shape(16, 8, 32, dtype.S8)}},
			Unit: spec.Unit{Source: "combine.cu", Blob: fmt.Sprintf("cuda_combine%s_p%d.ptx", infix, p)},
		})
		sizes{p: p, residues: true, sparse: sparse}.sized(v, kind, cols)
		v.Tile.Rows, v.Tile.Cluster = 128, 2
		vs = append(vs, v)
	}
	return vs
}

// sumsOf is residues.cu with tiles of cols columns, which has 192 KiB of stage buffers.
func sumsOf(name string, cols uint32, digits, sparse bool) *spec.Variant {
	stage := (pick[uint32](sparse, 64, 128) + cols) * quantise.Depth
	stages := 196608 / stage
	return spec.PTX(name, spec.Variant{
		Entry: "rfx", Local: spec.Line(384), Need: spec.Need{Arch: 90, Exact: true},
		Consts: []spec.Const{spec.Define("COLS", cols), spec.Define("STAGES", stages),
			spec.Define("DIGITS", spec.Flag(digits)), spec.Define("SPARSE", spec.Flag(sparse))},
		Shared: stages * (stage + 16), Overlaps: true, Unit: spec.Unit{Source: "residues.cu"},
	})
}

// digitsAt is the precision at which these variants multiply digits, as that takes fewer products.
const digitsAt = rfx.P15

// inDigits tells whether a variant multiplies digits, of those that take bytes in planes.
func inDigits(v *spec.Variant) bool { return PrecisionOf(v) == digitsAt || kind(v) == Digits }

// suited returns the variant with the narrowest tiles that take all columns at once, v if none does.
func suited(v *spec.Variant, _ *spec.Packed, p spec.Problem) *spec.Variant {
	best := v
	for _, x := range variants {
		if (kind(v) == Residues || kind(v) == Digits) && kind(x) == kind(v) && x.Code == v.Code && x.Shape == v.Shape &&
			PrecisionOf(x) == PrecisionOf(v) && x.Tile.Cols >= p.N &&
			(best.Tile.Cols < p.N || x.Tile.Cols < best.Tile.Cols) {
			best = x
		}
	}
	return best
}

// moduliOf returns the moduli for matrices of k columns.
func moduliOf(k int, p rfx.P) int {
	n, _ := rfx.ModuliFor(int64(max(1, k)), p)
	return n
}

// planesOf returns the bytes of an element for a variant.
func planesOf(k int, v *spec.Variant) int {
	if inDigits(v) {
		return PrecisionOf(v).Bytes()
	}
	return moduliOf(k, PrecisionOf(v))
}

// digitSums is the sums of places of two digits.
const digitSums = 3

// ResidueStats tells what packing a matrix of a size as residues makes, or why it cannot be packed.
func ResidueStats(rows, cols int, nnz int64, p rfx.P) (formats.Stats, error) {
	if cols > mostColumns {
		return formats.Stats{}, fmt.Errorf("kernel rfx: %d columns as residues: %d are possible: %w", cols, mostColumns,
			backend.ErrUnsupported)
	}
	if p == digitsAt {
		return planeStats(rows, cols, nnz, p.Bytes())
	}
	return planeStats(rows, cols, nnz, moduliOf(cols, p))
}

// planeStats is ResidueStats given the bytes of an element.
func planeStats(rows, cols int, nnz int64, planes int) (formats.Stats, error) {
	elements := int64(spec.Ceil(rows, tileRows)*tileRows) * int64(spec.Ceil(cols, quantise.Depth)*quantise.Depth)
	s := formats.Stats{Slots: elements, MACs: elements, StoredBytes: elements * int64(planes)}
	if s.StoredBytes > residuesBytes || s.StoredBytes < 0 {
		return s, fmt.Errorf("kernel rfx: residues of %d×%d take %d bytes, more than %d: %w", rows, cols, s.StoredBytes,
			int64(residuesBytes), backend.ErrUnsupported)
	}
	if elements > 0 {
		s.Fill = float64(nnz) / float64(elements)
	}
	return s, nil
}

// packResidues encodes a as residues, or digits. The words of the array rows are, behind what pack puts first,
// rfx.Residues.Table, rfx.Residues.DigitWeights, and the entries' columns. The array ints is rfx.Planes.
func packResidues[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	p, stats := PrecisionOf(v), ResidueStats
	if kind(v) == Digits {
		stats = DigitStats
	}
	s, err := stats(a.Rows, a.Cols, a.NNZ(), p)
	if err != nil {
		return nil, err
	}
	ranges := rfx.Rows(a)
	words, f, part := residueWords(a, ranges, v)
	words, f.Columns = appendColumns(words, a.ColIdx)
	l := planesLayout(a.Rows, a.Cols)
	l.Slices = v.Packing.(sizes).slices
	ints := rfx.PackPlanes(a, ranges, p, l, f.Planes, part)
	return packedResidues(a, f, s, words, ints), nil
}

// residueWords returns the words of the array rows before the entries' columns, what they hold, and what makes bytes of
// integers.
func residueWords[T formats.Value](a *formats.CSR[T], ranges []rfx.Range, v *spec.Variant) (words []uint32, f Split,
	part func(q int64, i int) int8) {
	words = rowWords(a.RowPtr, ranges)
	p := PrecisionOf(v)
	f = Split{P: p, Type: a.Type(), Planes: planesOf(a.Cols, v), Digits: kind(v) == Digits, Table: uint32(len(words))}
	if inDigits(v) {
		return words, f, digit
	}
	r := rfx.NewResidues(f.Planes)
	words = append(words, r.Table(p.Limbs())...)
	f.Weights = uint32(len(words))
	return append(words, r.DigitWeights()...), f, r.A
}

// planesLayout is how a matrix of rows×cols lies in planes.
func planesLayout(rows, cols int) rfx.Planes {
	return rfx.Planes{Rows: spec.Ceil(rows, tileRows) * tileRows, Cols: spec.Ceil(cols, quantise.Depth) * quantise.Depth}
}

func packedResidues[T formats.Value](a *formats.CSR[T], f Split, stats formats.Stats, words []uint32,
	ints []byte) *spec.Packed {
	return &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Format: f, Stats: stats,
		Items: int64(spec.Ceil(a.Rows, tileRows) * f.Planes),
		Arrays: []spec.Array{
			spec.NewArray("rows", words),
			{Name: "ints", Data: ints},
			spec.NewArray("values", a.Val),
		},
	}
}

// digit returns digit i of q.
func digit(q int64, i int) int8 { return int8((q+0x808080808080)>>(8*i) ^ 0x80) }

// launchResidues is launch for residues.
func launchResidues(v *spec.Variant, e *spec.Packed, p spec.Problem, q quantise.Layout) (spec.Launch, error) {
	if v.Code != backend.CodePTX {
		return launchCoopResidues(v, e, p, q)
	}
	m := e.Format.(Split)
	high, wide := int64(spec.Ceil(e.Rows, tileRows)), int64(spec.Ceil(q.LD, v.Tile.Cols))
	tiles := high * wide
	words := tiles * tileRows * int64(v.Tile.Cols) / 16 // of 16 bytes, for a modulus
	if words > math.MaxInt32 {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: C of %d×%d does not fit 32-bit offsets: %w", v.Name, p.M, p.N,
			backend.ErrUnsupported)
	}
	products, workspace := m.Planes, words*16*int64(m.Planes) // residues are bytes
	if inDigits(v) {
		products, workspace = digitSums, words*64*digitSums
	}
	clusters := min(tiles*int64(products), int64(max(1, p.Caps.Units/v.Tile.Cluster)))
	finish, err := spec.Fold(int64(spec.Ceil(words, combineLocal)), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rfx/%s: %w", v.Name, err)
	}
	sums := [3]uint32{uint32(clusters) * uint32(v.Tile.Cluster), 1, 1}
	if clusters == 0 {
		sums = [3]uint32{}
	}
	b := block(p, q, m)
	b.heavy, b.segments, b.items, b.width = m.Table, uint32(products), uint32(p.M), finish[0]
	b.per, b.longest = uint32(q.Blocks()), uint32(high)
	b.shape = shape{across: v.Tile.Cols / 8}.packed(0, m.Type)
	second := b
	second.first = m.Remainder
	return spec.Launch{
		Workspace: max(spec.NoWorkspace, workspace),
		Passes: []spec.Pass{
			{Variant: v.Before, Groups: sums, Params: spec.Block(b)},
			{Variant: v, Groups: finish, Params: spec.Block(second)},
		},
	}, nil
}
