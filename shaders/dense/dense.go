// Package dense multiplies from dense matrices: A·B where every element of A lies in memory.
//
// A workgroup computes a tile of C. Steps of the sum are brought to shared memory for both operands and multiplied from
// there; the sum is taken in the order of k, or, where tiles are too few for the device, in parts of it (launch.go).
//
// B and C may be column-major, so that activations and outputs of a layer Y = X·W, which is Yᵀ = Wᵀ·Xᵀ, are taken as
// they lie. Kernels write row by row: where C is column-major they compute Cᵀ = Bᵀ·Aᵀ, with A as the right operand.
// Either operand may lie along the sum or across it (see gemm.cuh). Some for CUDA compute Cᵀ of a row-major C, for the
// choice of tiles that gives (hopper.cu).
//
// A *formats.Dense stores every element, and each touches B. A sparse matrix is filled with zeros, and a bit for each
// element tells which are entries (filled.go). What is filled in is multiplied like entries, which is right as long as
// B is finite; an output that is not finite is computed again from the entries alone, so that what it is does not
// depend on the order of the sum either.
package dense

import (
	"embed"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the kernels for dense matrices. Rows of a are lda apart; where A is quantised they are bytes,
// and behind them are the scales. For stored see params.words, for work, sums of parts, launch.go.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "dense", Args: spec.FormatArgs("a T", "stored u32", "work f32 written"),
		Params: spec.Params[params](), Variants: spec.WithEpilogues(variants(), splits), Files: files,
	},
	Full: true, Encode: encodeSparse, EncodeQuantised: packQuantised, Adopt: adopt, Measure: measure,
	Launch: launch, Suited: suited,
}

// splits reports whether a variant has a second form for epilogues: with their code in it, kernels of 16-bit and of
// quantised operands take up to 42 % longer for products without an epilogue, those of f32 and tf32 as long.
func splits(v *spec.Variant) bool { return v.In.Size() == 2 }

// params is the parameter block. Rows and columns are those of the product that is written row by row: of C, or, where
// that is column-major, of Cᵀ.
type params struct {
	rows, n, cols uint32 // cols is K
	lda, ldb, ldc uint32
	order         uint32 // bBit | cBit
	store         uint32 // see spec.Problem.StoreWord
	alpha, beta   float32
	width         uint32 // of the grid in x
	across        uint32 // tiles side by side
	words         uint32 // of a row's bits in stored; 0: all elements are entries
	whole, splits uint32 // tiles that one workgroup sums, and the parts of the sums of the others: work_tiles.cuh
}

// Bits of params.order: B is column-major, C is.
const (
	bBit = 1 << iota
	cBit
)

// A's leading dimension is a multiple of align: 16 bytes of elements, or more.
const align = 8

// encode fills a sparse matrix with zeros.
func encode[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if m, err := a.Full(); err == nil {
		return pack(m, v)
	}
	if _, _, err := measure(a.Rows, a.Cols, a.NNZ(), v); err != nil {
		return nil, err
	}
	return fill(a, v)
}

// adopt takes dense matrices, and sparse ones, which plan makes of what fill keeps.
func adopt(m formats.Encoded, v *spec.Variant) (*spec.Packed, error) {
	if a, ok := m.(formats.Sparse); ok {
		return encodeSparse(a, v)
	}
	return adoptDense(m, v)
}

var (
	encodeSparse = spec.Quantising(spec.Encoder(encode[half.F16], encode[half.BF16], encode[float32]), packQuantised)
	adoptDense   = spec.Adopter(pack[half.F16], pack[half.BF16], pack[float32])
)

// pack lays the rows out side by side, as they are if they lie so.
func pack[T formats.Value](m *formats.Dense[T], v *spec.Variant) (*spec.Packed, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	stats, items, err := measure(m.Rows, m.Cols, m.NNZ(), v)
	if err != nil {
		return nil, err
	}
	m = m.Compact()
	rows := m
	if ld := lda(m.Cols); m.LD != ld {
		rows = m.Layout(false, ld)
	}
	return &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: items, Format: m, Stats: stats,
		Arrays: []spec.Array{spec.NewArray("a", rows.Data[:m.Rows*rows.LD]), spec.NewArray[uint32]("stored", nil)},
	}, nil
}

// lda is A's leading dimension.
func lda(cols int) int { return spec.Ceil(cols, align) * align }

// measure tells what any matrix of a size becomes.
func measure(rows, cols int, nnz int64, v *spec.Variant) (formats.Stats, int64, error) {
	if v.Quant != dtype.Invalid {
		return measureQuantised(rows, cols, v)
	}
	ld := int64(spec.Ceil(int64(cols), align) * align)
	if ld > spec.MaxLD {
		return formats.Stats{}, 0, fmt.Errorf("kernel dense/%s: %d columns exceed %d: %w", v.Name, cols, spec.MaxLD,
			backend.ErrUnsupported)
	}
	s, tiles := stats(rows, cols, ld, nnz, v)
	return s, tiles, nil
}

// stats tells what rows of cols columns become, each with room for ld elements of v's type, and in how many tiles of
// rows.
func stats(rows, cols int, ld, nnz int64, v *spec.Variant) (formats.Stats, int64) {
	side, _ := sides(v)
	tiles := int64(spec.Ceil(rows, int(side)))
	s := formats.Stats{
		StoredBytes: int64(rows) * ld * int64(v.In.Size()), Slots: int64(rows) * ld,
		MACs:    int64(computed(rows, v)) * int64(cols),
		Gathers: tiles * int64(cols), Staged: true,
	}
	if s.Slots > 0 {
		s.Fill = float64(nnz) / float64(s.Slots)
	}
	return s, tiles
}

// computed is the number of rows that a variant computes for a matrix of these rows.
func computed(rows int, v *spec.Variant) int {
	side, _ := sides(v)
	whole := int(side)
	if v.Code == backend.CodeGo {
		whole = simd.PanelRows
	}
	return spec.Ceil(rows, whole) * whole
}
