// Package nm multiplies from balanced N:M sparsity (package formats/nm), after nmSPARSE: single entries (EW),
// vectors (VW) and blocks (BW) of any N and M.
//
// N, M and the unit are the matrix's: encode detects them, and launch passes them on. What a variant fixes is the
// units that it takes, its constant V:
//
//	1     single entries. The rows of a workgroup have the same slots in every group of columns, so what they
//	      read of B at one slot lies within M rows of it: that part of B is brought to shared memory, and reads of
//	      it meet no bank conflict, or few (§3.2). Where there are tensor cores, a tile of 16-bit entries
//	      is put together again and multiplied densely; sparse tensor cores take 2:4 as it is.
//	8     any multiple of 8 rows, 8 of them to a workgroup or more, on scalar units.
//	more  that many rows, on matrix units (§3.3): the rows of B that a panel keeps are gathered into shared memory
//	      once for all its rows, and then the product is dense.
//
// A workgroup computes ROWS rows by COLS columns of C: the grid's x, folded along z, counts rows, y columns. Those of
// group24.cu take such tiles in turn, in clusters.
//
// Structural zeros never touch B. Values that pad a group are multiplied like all others, which is right as long
// as B is finite. An output that is not finite is computed again from the entries alone, which the format's mask
// tells apart.
//
// The format condenses along the columns of A, C = A·B. Networks keep weights on the right, Y = X·W, with W
// pruned along its rows: that is Yᵀ = Wᵀ·Xᵀ. Wᵀ is then the sparse A; a row-major X is a column-major Xᵀ, and a
// row-major Y a column-major Yᵀ: the front door's Options.Right sees them so.
package nm

import (
	"embed"
	"fmt"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed *.wgsl
var files embed.FS

// Format is the table of the N:M kernels. Array places is the format's Index.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "nm", Args: spec.FormatArgs("values T", "places u32", "mask u32"),
		Params: spec.Params[params](), Files: files,
		Variants: spec.WithEpilogues(slices.Concat(cudaVariants(), vulkanVariants(), webgpuVariants(), cpuVariants()),
			splits),
	},
	Encode: encode, EncodePart: encodePart, Adopt: adopt, Launch: launch,
	Suited: suited,
}

// splits reports whether a variant has a second form for epilogues. With their code in it, the wgmma kernels of 2:4
// matrices take 2 to 28 % longer for products without an epilogue; other kernels take as long.
func splits(v *spec.Variant) bool { return v.Kind == group24Kind || v.Kind == few24Kind }

const argB = 3 // the number of B among the arguments

// params is the parameter block.
type params struct {
	blocks      uint32 // workgroups along the rows
	rows, n     uint32
	ldb, ldc    uint32
	store       uint32 // type of C, and epilogue: spec.Problem.StoreWord
	alpha, beta float32
	cols        uint32 // of A: rows of B
	width       uint32 // of the grid in x
	groups      uint32 // of a panel
	keep, every uint32 // N and M
	wide        uint32 // log2 W; of group24.cu, that of the blocks that share A's columns
	tall        uint32 // V; of group24.cu, the rows of a tile
}

// What a variant's constant V says of the units that it takes, besides a number of rows.
const (
	anyTall = 8  // any multiple of 8 rows
	mostN   = 32 // slots of a group of single entries that kernels have room for
)

// encode packs a matrix in the pattern that takes least of those the variant takes; adopt packs one that is encoded
// already, in a pattern that the variant takes.
var (
	encode = spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32])
	adopt  = spec.Adopter(take[half.F16], take[half.BF16], take[float32])
)

// encodePart packs rows in the pattern of the matrix that they are of: by themselves they may fill too little
// of any.
func encodePart(rows formats.Sparse, v *spec.Variant, whole *spec.Packed) (*spec.Packed, error) {
	if err := v.Takes(rows); err != nil {
		return nil, err
	}
	return packPart(rows, as{v, obeyed(whole)})
}

var packPart = formats.ByType(packIn[half.F16], packIn[half.BF16], packIn[float32])

// as says how to pack a matrix.
type as struct {
	v *spec.Variant
	p nm.Pattern
}

// obeyed returns the pattern of an encoded matrix of any type.
func obeyed(e *spec.Packed) nm.Pattern {
	return e.Format.(interface{ Obeys() nm.Pattern }).Obeys()
}

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("kernel nm/%s: %w", v.Name, err)
	}
	p, err := detect(a, v)
	if err != nil {
		return nil, refused(v, err)
	}
	return packIn(a, as{v, p})
}

func packIn[T formats.Value](a *formats.CSR[T], to as) (*spec.Packed, error) {
	m, err := nm.Encode(a, to.p)
	if err != nil {
		return nil, refused(to.v, err)
	}
	return arrange(m, to.v)
}

// refused says that a variant cannot take a matrix.
func refused(v *spec.Variant, err error) error {
	return fmt.Errorf("kernel nm/%s: %w", v.Name, refusal{err})
}

// refusal is an error about the matrix that counts as ErrUnsupported, so that another format may be tried.
type refusal struct{ error }

func (r refusal) Unwrap() error        { return r.error }
func (r refusal) Is(target error) bool { return target == backend.ErrUnsupported }

func take[T formats.Value](m *nm.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if !takes(v, m.Pattern) {
		return nil, refused(v, fmt.Errorf("it does not take %v", m.Pattern))
	}
	return arrange(m, v)
}

// takes reports whether a variant takes matrices of a pattern.
func takes(v *spec.Variant, p nm.Pattern) bool {
	switch tall := int(sizesOf(v).unit); {
	case packs24(sizesOf(v).order):
		return p == nm.Sparse24
	case p.W&(p.W-1) != 0: // its logarithm is a parameter
		return false
	case tall == 1:
		return p.V == 1 && p.W == 1 && p.N <= mostN
	case tall == anyTall:
		return p.V%anyTall == 0
	default:
		return p.V == tall
	}
}

// arrange makes the arrays that a variant reads.
func arrange[T formats.Value](m *nm.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	values, places := m.Values, m.Index
	packing := sizesOf(v).order
	var err error
	switch {
	case packs24(packing):
		values, places, err = pack24(m, packing, 0)
	case packing == lanePack:
		values, places, err = packLanes(m)
	}
	if err != nil {
		return nil, refused(v, err)
	}
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: int64(spec.Ceil(m.Rows, v.Tile.Rows)), Panel: m.V, Format: m,
		Stats:  m.Stats(),
		Arrays: []spec.Array{spec.NewArray("values", values), spec.NewArray("places", places), spec.NewArray("mask", m.Mask)},
	}
	if m.V == 1 { // whole groups of B are brought for all the rows of a workgroup
		e.Stats.Gathers, e.Stats.Staged = int64(spec.Ceil(m.Rows, v.Tile.Rows))*int64(m.Cols), true
	} else if sizesOf(v).unit == uint32(m.V) { // each row once for a panel
		e.Stats.Staged = true
	}
	e.Stats.StoredBytes = e.Bytes()
	return e, nil
}

// detect returns the cheapest pattern that a obeys and the variant takes.
func detect[T formats.Value](a *formats.CSR[T], v *spec.Variant) (nm.Pattern, error) {
	if packs24(sizesOf(v).order) {
		return nm.Sparse24, nm.Fills24(a)
	}
	s := nm.Search{V: int(sizesOf(v).unit), MinFill: nm.DefaultFill}
	switch s.V {
	case 1:
		s.W = 1
	case anyTall:
		s.V, s.LeastV = 0, anyTall
	}
	return nm.Fit(a, s, func(p nm.Pattern) bool { return takes(v, p) })
}

// launch lays the grid out: rows along x, folded along z, and columns along y.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel nm/%s: %w", v.Name, err)
	}
	if v.Kind == coop24Kind && (int64(p.K)*int64(p.LDB) >= 1<<34 || e.Bytes() >= 1<<34) {
		return spec.Launch{}, fmt.Errorf("kernel nm/%s: an operand of %d×%d×%d is too large: %w", v.Name, p.M, p.K, p.N,
			backend.ErrUnsupported)
	}
	x, groups, maps, err := Lay(v, obeyed(e), p, argB)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel nm/%s: %w", v.Name, err)
	}
	return spec.Launch{Passes: []spec.Pass{{Variant: Form(v, p), Groups: groups, Params: spec.Block(x), Maps: maps}}}, nil
}

// Form returns the form of a variant that multiplies in p: those with tensor maps store C in batches.
func Form(v *spec.Variant, p spec.Problem) *spec.Variant {
	if v.Maps > 0 {
		return v.ForBatches(p)
	}
	return v.For(p)
}

// Lay returns the parameters of a launch, its grid and its tensor maps, b being the number of the argument B.
func Lay(v *spec.Variant, of nm.Pattern, p spec.Problem,
	b int) (x Params, groups [3]uint32, maps []backend.TileMap, err error) {
	shape, err := of.Shape(p.M, p.K)
	if err != nil {
		return x, groups, nil, err
	}
	x = params{
		rows: uint32(p.M), n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), store: p.StoreWord() | p.OrderWord(),
		alpha: float32(p.Alpha), beta: float32(p.Beta),
		cols: uint32(p.K), groups: uint32(shape.Groups), keep: uint32(of.N), every: uint32(of.M),
		wide: uint32(bits.Len(uint(of.W)) - 1), tall: uint32(of.V),
	}
	if sizesOf(v).parts > 0 {
		groups, maps, err = few(v, p, b, &x)
		return x, groups, maps, err
	}
	if sizesOf(v).order == groupPack {
		groups, maps = clusters(p, b, &x)
		return x, groups, maps, nil
	}
	rows, cols := tile(v, of, p)
	groups, err = v.Grid(spec.Ceil(p.M, rows), spec.Ceil(p.N, cols))
	x.blocks, x.width = uint32(spec.Ceil(p.M, rows)), groups[0]
	return x, groups, nil, err
}

// tile returns the rows and columns of C that a workgroup computes.
func tile(v *spec.Variant, of nm.Pattern, p spec.Problem) (rows, cols int) {
	rows, cols = v.Tile.Rows, v.Tile.Cols
	if v.Code == backend.CodePTX {
		return cudaTile(v, of, p, rows, cols)
	}
	return rows, cols
}
