// Package dense multiplies from dense matrices: A·B where every element of A is stored.
//
// A workgroup computes a tile of ROWS × COLS of C. Steps of the sum are brought to shared memory for both operands and
// multiplied from there; the sum is taken in the order of k. The grid's x, folded along z, counts tiles, those of the same
// rows side by side.
//
// B and C may be column-major, so that activations and outputs of a layer Y = X·W, which is Yᵀ = Wᵀ·Xᵀ, are taken as they
// lie. Kernels write row by row: where C is column-major they compute Cᵀ = Bᵀ·Aᵀ, with A as the right operand. Either
// operand may lie along the sum or across it (see gemm.cuh).
//
// Every element touches B: there are no structural zeros. An output that is not finite is computed again, so that what it
// is does not depend on the order of the sum.
package dense

import (
	"embed"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the kernels for dense matrices.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "dense",
		Args: []spec.Arg{
			{Name: "a", Elem: "T", ReadOnly: true}, // rows, lda apart; where A is quantised bytes, and behind them the scales
			{Name: "b", Elem: "T", ReadOnly: true},
			{Name: "bias", Elem: "f32", ReadOnly: true},
			{Name: "c", Elem: "f32"},
		},
		Params:   spec.Params[params](),
		Variants: spec.SplitEpilogues(variants()),
		Files:    files,
	},
	Full:            true,
	Encode:          spec.Quantising(spec.Encoder(encode[half.F16], encode[half.BF16], encode[float32]), packQuantised),
	EncodeQuantised: packQuantised,
	Adopt:           spec.Adopter(pack[half.F16], pack[half.BF16], pack[float32]),
	Launch:          launch,
}

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
}

// Bits of params.order: B is column-major, C is.
const (
	bBit = 1 << iota
	cBit
)

// align is what A's leading dimension is a multiple of: 16 bytes of elements, or more.
const align = 8

// notFull is the refusal of a matrix that does not store every element. It counts as ErrUnsupported, so that another
// format may be tried.
type notFull struct{ error }

func (e notFull) Unwrap() error        { return e.error }
func (e notFull) Is(target error) bool { return target == backend.ErrUnsupported }

func encode[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	m, err := a.Full()
	if err != nil {
		return nil, fmt.Errorf("kernel dense/%s: %w", v.Name, notFull{err})
	}
	return pack(m, v)
}

// pack lays the rows out side by side, as they are if they lie so.
func pack[T formats.Value](m *formats.Dense[T], v *spec.Variant) (*spec.Packed, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	ld := spec.Ceil(m.Cols, align) * align
	if ld > spec.MaxLD {
		return nil, fmt.Errorf("kernel dense/%s: %d columns exceed %d: %w", v.Name, m.Cols, spec.MaxLD, backend.ErrUnsupported)
	}
	m = m.Compact()
	rows := m
	if m.LD != ld {
		rows = m.Layout(false, ld)
	}
	array := spec.NewArray("a", rows.Data[:m.Rows*ld])
	tiles := spec.Ceil(m.Rows, int(v.Const("ROWS")))
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Arrays: []spec.Array{array}, Items: int64(tiles), Format: m,
		Stats: formats.Stats{
			StoredBytes: int64(len(array.Data)), Slots: int64(m.Rows) * int64(ld), MACs: int64(computed(m.Rows, v)) * int64(m.Cols),
			Gathers: int64(tiles) * int64(m.Cols), Staged: true,
		},
	}
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return e, nil
}

// computed is the number of rows that a variant computes for so many.
func computed(rows int, v *spec.Variant) int {
	whole := int(v.Const("ROWS"))
	if v.Code == backend.CodeGo {
		whole = simd.PanelRows
	}
	return spec.Ceil(rows, whole) * whole
}

func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	x := params{
		rows: uint32(p.M), n: uint32(p.N), cols: uint32(p.K), lda: uint32(spec.Ceil(p.K, align) * align), ldb: uint32(p.LDB), ldc: uint32(p.LDC),
		alpha: p.Alpha, beta: p.Beta,
	}
	if p.BCol {
		x.order |= bBit
	}
	if p.CCol {
		x.order |= cBit
		x.rows, x.n = x.n, x.rows
		p.Epilogue = p.Epilogue.Turned()
	}
	x.store = p.StoreWord()
	x.across = spec.Ceil(x.n, v.Const("COLS"))
	groups, err := spec.Fold(int64(spec.Ceil(x.rows, v.Const("ROWS")))*int64(x.across), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	x.width = groups[0]
	return spec.Launch{Passes: []spec.Pass{{Variant: v.For(p), Groups: groups, Params: spec.Block(x)}}}, nil
}
