// Package hrpb multiplies from Hierarchical Row-Panel-Blocking (package formats/hrpb), after cuTeSpMM: on
// CUDA tensor cores, on Vulkan cooperative matrices, on any GPU through Vulkan or WebGPU, and on the CPU.
//
// The format's work list says what a workgroup does: multiply one part, some blocks of a panel of 16 rows,
// by a tile of columns of B. The grid's x, folded along z, counts parts, y tiles of columns. Each
// active column fetches its row of B once for all 16 rows. A part that is a whole panel writes C; one of
// several leaves its sums in its slot of the workspace `part`, 16 rows of ldp each, and a second launch
// of the same kernel (phase 1) adds the slots of each split panel up in order. There are no atomics,
// and the order of every sum depends on the matrix and the variant alone.
//
// On CUDA and Vulkan f32 itself is multiplied on the float units, by strips of 4 rows of a panel, whose vectors are a
// packing of their own (strips.go); on Vulkan f16 and bf16, too. On CUDA it is also multiplied on matrix units, in
// three parts of bf16 for each number (kernel_f32.cu). In tf32 both operands are rounded to 11 significant bits, and
// sums are kept in f32. CUDA's matrix units do that by themselves. Those of Vulkan do not know tf32, but f16 has as
// many bits: kernel_coop.comp and lanes.comp scale rows of A and columns of B by powers of two, which is exact, into
// the range of f16. See there for the bound on the error.
//
// f64 is multiplied on the f64 matrix units of CUDA's GPUs (double.cu) and on the CPU.
//
// Structural zeros never touch B. Bits of a brick that are not stored are multiplied as zeros, which is
// right as long as B is finite. An output that is not finite is computed again from the entries alone,
// which the patterns tell apart. (On the CPU only entries are multiplied.)
package hrpb

import (
	"cmp"
	"embed"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the HRPB kernel. Its array work has the parts, then the split panels, each as
// panel, first block, last + 1 and slot; then the row in each place. In part are sums of parts, slot after slot.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "hrpb", Args: spec.FormatArgs("work u32", "columns u32", "sizes u32", "packed u32", "part f32 written"),
		Params: spec.Params[params](), Variants: spec.WithEpilogues(variants(), spec.OneForm), Files: files,
	},
	Encode: encode, Adopt: adopt, Launch: launch,
	Suited: suited,
}

// params is the parameter block.
type params struct {
	phase         uint32 // 0: parts; 1: sums of split panels
	items         uint32 // of this phase: parts, or split panels
	parts         uint32 // of the work list
	longest       uint32
	rows, n       uint32
	ldb, ldc, ldp uint32
	store         uint32 // type of c, and epilogue: spec.Problem.StoreWord
	width         uint32 // of the grid in x
	fours, twos   uint32 // parts for teams of four warps, and of two: CUDA
	places        uint32 // where work has the rows in each place; 0: they lie as in the matrix
	alpha, beta   float32
}

// encode packs a matrix with a variant's constants BLOCK, WORKERS and ORDER; adopt packs one that is encoded already,
// and makes its work list for the variant.
var (
	encode = spec.Encoder64(pack[half.F16], pack[half.BF16], pack[float32], pack[float64])
	adopt  = spec.Adopter64(take[half.F16], take[half.BF16], take[float32], take[float64])
)

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	s := sizesOf(v)
	m, err := hrpb.Encode(a, hrpb.Options{BlockCols: int(s.block), Workers: int(s.workers), Order: s.ordered})
	if err != nil {
		return nil, err
	}
	return arrange(m, v)
}

func take[T formats.Value](m *hrpb.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if want := int(sizesOf(v).block); m.BlockCols != want {
		return nil, fmt.Errorf("kernel hrpb/%s takes blocks of %d columns, not %d", v.Name, want, m.BlockCols)
	}
	return arrange(m.For(int(sizesOf(v).workers)), v)
}

// workList lists parts and split panels as kernels read them.
func workList(parts, splits []hrpb.Part) []uint32 {
	list := make([]uint32, 0, 4*(len(parts)+len(splits)))
	for _, p := range slices.Concat(parts, splits) {
		list = append(list, p.Panel, p.First, p.Last, p.Slot)
	}
	return list
}

// arrange makes the arrays that the kernel reads.
func arrange[T formats.Value](m *hrpb.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if sizesOf(v).height > 0 {
		return arrangeStrips(m, v)
	}
	list := append(workList(m.Parts, m.Splits), m.RowIdx...)
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Arrays: []spec.Array{
			spec.NewArray("work", list),
			spec.NewArray("columns", m.Active),
			spec.NewArray("sizes", m.SizePtr),
			spec.NewArray("packed", m.Packed),
		},
		Stats:  m.Stats().Stats,
		Items:  int64(len(m.Parts)),
		Format: m,
	}
	e.Stats.Sums = int64(m.Work().Slots) * hrpb.PanelRows
	if v.Code == backend.CodeGo { // multiplies entries alone
		e.Stats.MACs = e.NNZ
	}
	return e, nil
}

// launch lays the grid out and adds the second phase where panels are split.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	fail := func(err error) (spec.Launch, error) {
		return spec.Launch{}, fmt.Errorf("kernel hrpb/%s: %w", v.Name, err)
	}
	if err := p.Check(v, e); err != nil {
		return fail(err)
	}
	w := e.Format.(interface{ Work() hrpb.Work }).Work() // a *hrpb.Matrix of any type
	if v.Code == backend.CodeSPIRV && v.Kind == stripsKind && int64(p.K)*int64(p.LDB) >= 1<<33 {
		return fail(fmt.Errorf("B of %d×%d has 2^33 elements or more: %w", p.K, p.LDB, backend.ErrUnsupported))
	}
	ldp := (p.N + 7) &^ 7
	l := spec.Launch{Workspace: max(spec.NoWorkspace,
		int64(w.Slots)*int64(cmp.Or(sizesOf(v).height, hrpb.PanelRows))*int64(ldp)*int64(v.Sums().Size()))}
	if err := p.CheckBinding(v, "the workspace", l.Workspace); err != nil {
		return fail(err)
	}
	phase := func(number, items int, g grid) error {
		groups, err := spec.Fold(g.x, spec.Ceil(p.N, g.cols))
		if err != nil {
			return err
		}
		l.Passes = append(l.Passes, spec.Pass{Variant: v.For(p), Groups: groups, Params: spec.BlockFor(v, params{
			phase: uint32(number), items: uint32(items), parts: uint32(w.Parts), longest: uint32(w.PartBlocks),
			rows: uint32(p.M), n: uint32(p.N), ldb: uint32(p.LDB), ldc: uint32(p.LDC), ldp: uint32(ldp), store: p.StoreWord(),
			width: groups[0], fours: uint32(w.Fours), twos: uint32(w.Twos), places: uint32(w.Places), alpha: float32(p.Alpha),
			beta: float32(p.Beta),
		}, p.Alpha, p.Beta)})
		return nil
	}
	cols := v.Tile.Cols
	first, second := grid{int64(w.Parts), cols}, grid{int64(w.Splits), cols}
	switch {
	case sizesOf(v).height > 0:
		first, second = stripParts(v, w), stripSums(v, w)
	case v.Code == backend.CodePTX:
		first, second = cudaParts(w, cols), cudaSums(w)
	}
	if err := phase(0, w.Parts, first); err != nil {
		return fail(err)
	}
	if w.Splits > 0 {
		if err := phase(1, w.Splits, second); err != nil {
			return fail(err)
		}
	}
	return l, nil
}

// grid is the workgroups of a phase: x along x, and along y one for each tile of cols columns.
type grid struct {
	x    int64
	cols int
}
