// Package cvse multiplies from Sparse Vector Compression (package formats/cvse), after SSpMM: on CUDA
// tensor cores, on Vulkan cooperative matrices in whatever shape the device lists, on any GPU through
// Vulkan or WebGPU, and on the CPU.
//
// In all of them one workgroup computes COLS columns of C for a panel of V rows (on CUDA for several),
// taking the panels in the format's order: the grid's x, folded along z, counts panels, y blocks of
// columns. A vector's column says which row of B it multiplies; that row is fetched once for all V
// rows of the panel.
//
// Structural zeros never touch B. The slots inside a vector that hold no entry are multiplied like
// all others, which is right as long as B is finite. An output that is not finite is computed again
// from the entries alone, which the format's mask tells apart.
package cvse

import (
	"embed"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl z*
var files embed.FS

// Kernel is the table of the CVSE kernel.
var Kernel = &spec.Kernel{
	Name: "cvse",
	Args: []spec.Arg{
		{Name: "vecptr", Elem: "u32", ReadOnly: true},
		{Name: "colind", Elem: "u32", ReadOnly: true},
		{Name: "values", Elem: "T", ReadOnly: true},
		{Name: "mask", Elem: "u32", ReadOnly: true},
		{Name: "order", Elem: "u32", ReadOnly: true},
		{Name: "b", Elem: "T", ReadOnly: true},
		{Name: "c", Elem: "f32"},
	},
	Params: []spec.Param{
		{Name: "panels"},
		{Name: "rows"},
		{Name: "n"},
		{Name: "ldb"},
		{Name: "ldc"},
		{Name: "ctype"}, // type of C: 0 f32, 1 f16, 2 bf16
		{Name: "alpha", Float: true},
		{Name: "beta", Float: true},
		{Name: "cols"},  // of A: rows of B
		{Name: "width"}, // of the grid in x
	},
	Variants: slices.Concat(cudaVariants(), vulkanVariants(), webgpuVariants(), cpuVariants()),
	Packing:  []string{"V", "ALIGN", "WINDOW"},
	Files:    files,
	Encode:   encode,
	Launch:   launch,
}

// Where the Go kernel finds its parameters.
const (
	paramPanels = iota
	paramRows
	paramN
	paramLDB
	paramLDC
	paramCType
	paramAlpha
	paramBeta
	paramCols
	paramWidth
)

// encode packs a with a variant's constants V and ALIGN.
func encode(a formats.Sparse, v *spec.Variant) (*spec.Encoded, error) {
	if a.Type() != v.In.Storage() {
		return nil, fmt.Errorf("kernel cvse/%s packs %v, not %v", v.Name, v.In.Storage(), a.Type())
	}
	switch a := a.(type) {
	case *formats.CSR[half.F16]:
		return pack(a, v)
	case *formats.CSR[half.BF16]:
		return pack(a, v)
	case *formats.CSR[float32]:
		return pack(a, v)
	}
	return nil, fmt.Errorf("kernel cvse cannot pack a %T", a)
}

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Encoded, error) {
	if v.Const("WINDOW") > 0 {
		return packWindows(a, v)
	}
	m, err := cvse.Encode(a, cvse.Options{V: int(v.Const("V")), Align: int(v.Const("ALIGN"))})
	if err != nil {
		return nil, err
	}
	return &spec.Encoded{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(),
		Arrays: []spec.Array{
			spec.NewArray("vecptr", m.VecPtr),
			spec.NewArray("colind", m.ColInd),
			spec.NewArray("values", m.Values),
			spec.NewArray("mask", m.Mask),
			spec.NewArray("order", m.Order),
		},
		Stats:  m.Stats(),
		Format: m,
	}, nil
}

// launch lays the grid out: panels along x, folded along z, and column blocks along y.
func launch(v *spec.Variant, e *spec.Encoded, p spec.Problem) (spec.Launch, error) {
	if err := check(v, e, p); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel cvse/%s: %w", v.Name, err)
	}
	panels := cvse.Panels(p.M, int(v.Const("V")))
	perGroup, cols := groupTile(v)
	groups, err := grid(v, ceil(panels, perGroup), ceil(p.N, cols))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel cvse/%s: %w: %w", v.Name, err, backend.ErrUnsupported)
	}
	return spec.Launch{
		Groups: groups,
		Params: spec.Block{}.
			U(uint32(panels), uint32(p.M), uint32(p.N), uint32(p.LDB), uint32(p.LDC), outCode(p.Out)).
			F(p.Alpha, p.Beta).
			U(uint32(p.K), groups[0]),
	}, nil
}

// grid lays x by y workgroups out. CUDA's grids are wide enough for any x.
func grid(v *spec.Variant, x, y int) ([3]uint32, error) {
	groups, err := spec.Fold(int64(x), y)
	if err == nil && v.Code == backend.CodePTX {
		groups = [3]uint32{uint32(x), uint32(y), 1}
	}
	return groups, err
}

// groupTile returns the panels and the columns of C that a workgroup computes.
func groupTile(v *spec.Variant) (panels, cols int) {
	if v.Code == backend.CodePTX {
		return cudaTile(v)
	}
	return 1, int(v.Const("COLS"))
}

// check refuses what the kernel cannot do, in words that name the limit.
func check(v *spec.Variant, e *spec.Encoded, p spec.Problem) error {
	const maxLD = 1 << 29 // a row's bytes fit 32 bits
	switch {
	case p.M != e.Rows || p.K != e.Cols:
		return fmt.Errorf("a problem of %d×%d with a matrix of %d×%d", p.M, p.K, e.Rows, e.Cols)
	case p.N < 0 || p.LDB < p.N || p.LDC < p.N || p.LDB%8 != 0:
		return fmt.Errorf("%d columns with leading dimensions %d of B (a multiple of 8) and %d of C", p.N, p.LDB, p.LDC)
	case p.LDB > maxLD || p.LDC > maxLD:
		return fmt.Errorf("leading dimensions %d and %d exceed %d: %w", p.LDB, p.LDC, maxLD, backend.ErrUnsupported)
	case p.Out != dtype.F32 && !slices.Contains(v.Out, p.Out):
		return fmt.Errorf("cannot write C as %v: %w", p.Out, backend.ErrUnsupported)
	case v.Code == backend.CodeWGSL:
		return checkBindings(v, p)
	}
	return nil
}

// checkBindings holds B and C against what one binding covers.
func checkBindings(v *spec.Variant, p spec.Problem) error {
	limit := int64(math.MaxUint32)
	if l := p.Caps.MaxBinding; l > 0 {
		limit = min(limit, l)
	}
	b, c := int64(p.K)*int64(p.LDB)*int64(v.In.Size()), int64(p.M)*int64(p.LDC)*4
	if max(b, c) > limit {
		return fmt.Errorf("B takes %d bytes and C %d, a binding of this device covers %d: %w", b, c, limit, backend.ErrUnsupported)
	}
	return nil
}

// outCode is the parameter out for C of type t.
func outCode(t dtype.Type) uint32 {
	return map[dtype.Type]uint32{dtype.F16: include.F16, dtype.BF16: include.BF16}[t]
}

func ceil(a, b int) int { return (a + b - 1) / b }
