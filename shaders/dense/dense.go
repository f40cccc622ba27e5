// Package dense multiplies from dense matrices: A·B where every element of A lies in memory.
//
// A workgroup computes a tile of C. It loads both operands into shared memory step by step along K, and multiplies from
// there. Sums are taken in the order of k. If there are too few tiles for the device, K is split (launch.go).
//
// B and C may be column-major. So the activations and outputs of a layer Y = X·W, which is Yᵀ = Wᵀ·Xᵀ, are used without
// a copy. Kernels write row by row: for a column-major C they compute Cᵀ = Bᵀ·Aᵀ, with A as the right operand. Either
// operand may be K-major ("along") or MN-major ("across"), see gemm.cuh. Some kernels for CUDA compute Cᵀ for a
// row-major C, too, because that allows other tiles (hopper.cu).
//
// A *formats.Dense stores every element, and each touches B. A sparse matrix is filled with zeros, and a bit for each
// element says whether it is an entry (filled.go). Zeros that were filled in are multiplied like entries, which is
// right as long as B is finite. An output that is not finite is computed again from the entries alone, so that it does
// not depend on the order of the sum.
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

// Format is the table of the kernels for dense matrices. Rows of a are lda apart; if A is quantised they are bytes, and
// the scales are behind them. stored has the bits that params.words describes, work the partial sums of split-K.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "dense", Args: spec.FormatArgs("a T", "stored u32", "work f32 written"),
		Params: spec.Params[params](), Variants: spec.WithEpilogues(variants(), splits), Files: files,
	},
	Full: true, Encode: encodeSparse, EncodeQuantised: packQuantised, Adopt: adopt, Measure: measure,
	Launch: launch, Suited: suited,
}

// splits reports whether a variant has a second form for epilogues. With the code of epilogues, kernels of 16-bit and
// of quantised operands take up to 42 % longer for products without one; those of f32 and tf32 do not.
func splits(v *spec.Variant) bool { return v.In.Size() == 2 }

// params is the parameter block. Rows and columns are those of the product that is written row by row: C or, if C is
// column-major, Cᵀ.
type params struct {
	rows, n, cols uint32 // cols is K
	lda, ldb, ldc uint32
	order         uint32 // bBit | cBit
	store         uint32 // see spec.Problem.StoreWord
	alpha, beta   float32
	width         uint32 // of the grid in x
	across        uint32 // tiles in a row of tiles
	words         uint32 // of a row's bits in stored; 0: all elements are entries
	whole, splits uint32 // tiles that are not split; splits of each of the others: work_tiles.cuh
}

// Bits of params.order: B is column-major, C is.
const (
	bBit = 1 << iota
	cBit
)

// A's leading dimension is a multiple of align: 16 bytes of elements, or more.
const align = 8

// encode packs a sparse matrix: it fills it with zeros, unless every element is an entry.
func encode[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if m, err := a.Full(); err == nil {
		return pack(m, v)
	}
	if _, _, err := measure(a.Rows, a.Cols, a.NNZ(), v); err != nil {
		return nil, err
	}
	return fill(a, v)
}

// adopt packs dense matrices, and sparse ones, which filled.WithValues returns.
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

// pack packs a dense matrix by rows. It does not copy one that has this layout already.
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

// lda returns A's leading dimension.
func lda(cols int) int { return spec.Ceil(cols, align) * align }

// measure returns the costs of any matrix of a size, and the number of its tiles of rows.
func measure(rows, cols int, nnz int64, v *spec.Variant) (formats.Stats, int64, error) {
	if v.Quant != dtype.Invalid {
		return measureQuantised(rows, cols, v)
	}
	ld := int64(lda(cols))
	if ld > spec.MaxLD {
		return formats.Stats{}, 0, fmt.Errorf("kernel dense/%s: %d columns exceed %d: %w", v.Name, cols, spec.MaxLD,
			backend.ErrUnsupported)
	}
	s, tiles := stats(rows, cols, ld, nnz, v)
	return s, tiles, nil
}

// stats returns the costs of rows with cols columns, each stored in ld elements of v's type, and the number of tiles of
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

// computed returns the number of rows that a variant computes for a matrix of this number of rows.
func computed(rows int, v *spec.Variant) int {
	side, _ := sides(v)
	whole := int(side)
	if v.Code == backend.CodeGo {
		whole = simd.PanelRows
	}
	return spec.Ceil(rows, whole) * whole
}
