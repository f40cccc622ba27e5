// Package cvse multiplies from Sparse Vector Compression (package formats/cvse), after SSpMM: on CUDA
// tensor cores, on Vulkan cooperative matrices in whatever shape the device lists, on any GPU through
// Vulkan or WebGPU, and on the CPU.
//
// In all of them one workgroup computes COLS columns of C for a panel of V rows (on CUDA for several),
// taking the panels in the format's order: the grid's x, folded along z, counts panels, y blocks of
// columns. A vector's column says which row of B it multiplies; that row is fetched once for all V
// rows of the panel. On GPUs heavy panels are cut into parts of their own workgroups, whose sums a second launch adds
// up in order (package panel), but in variants that have B in shared memory.
//
// Structural zeros never touch B. The slots inside a vector that hold no entry are multiplied like
// all others, which is right as long as B is finite. An output that is not finite is computed again
// from the entries alone, which the format's mask tells apart.
package cvse

import (
	"embed"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the CVSE kernel.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "cvse", Args: panel.Args,
		Params: spec.Params[panel.Params](), Files: files,
		Variants: spec.WithEpilogues(slices.Concat(cuda, panel.Vulkan(unaligned), panel.WebGPU(unaligned),
			panel.CPU(locate, unaligned)), panel.Splits),
	},
	Encode: encode, Adopt: adopt,
	Launch: launch,
}

// unaligned: panels of any number of vectors.
const unaligned = 1

// locate finds a workgroup's work on the CPU.
func locate(args [][]byte, block []byte, at [3]uint32, _ int) (w panel.Group, ok bool) {
	p := spec.View[panel.Params](block)
	slot := at[0] + at[2]*p.Width
	if slot >= p.Panels {
		return w, false
	}
	s := panel.At(args, slot)
	return panel.Group{First: int(s.First), Last: int(s.Last), Row: int(s.Rows), Column: int(at[1]) * panel.CPUCols}, true
}

// packing returns how a variant's matrices are encoded. What is cut by windows needs no padding.
func packing(v *spec.Variant) cvse.Options {
	s := panel.ShapeOf(v)
	if s.Staged() {
		return cvse.Options{V: s.V, Align: 1}
	}
	return cvse.Options{V: s.V, Align: s.Align}
}

// encode packs a matrix with a variant's constants V and ALIGN, or WINDOW; adopt packs one that is encoded already, as
// the variant needs.
var (
	encode = spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32])
	adopt  = spec.Adopter(take[half.F16], take[half.BF16], take[float32])
)

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if err := checkWidth(v, a.Cols); err != nil {
		return nil, err
	}
	m, err := cvse.Encode(a, packing(v))
	if err != nil {
		return nil, err
	}
	return arrange(m, v)
}

func take[T formats.Value](m *cvse.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if want := packing(v); m.V != want.V || m.Align != want.Align {
		return nil, fmt.Errorf("kernel cvse/%s takes v=%d, align=%d, not v=%d, align=%d", v.Name, want.V, want.Align, m.V,
			m.Align)
	}
	if err := checkWidth(v, m.Cols); err != nil {
		return nil, err
	}
	return arrange(m, v)
}

// checkWidth refuses what staged variants cannot take.
func checkWidth(v *spec.Variant, cols int) error {
	if !panel.ShapeOf(v).Staged() {
		return nil
	}
	if err := panel.CheckStaged(v, cols); err != nil {
		return fmt.Errorf("kernel cvse: %w", err)
	}
	return nil
}

// arrange makes the arrays that a variant reads.
func arrange[T formats.Value](m *cvse.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	e := &spec.Packed{Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: int64(len(m.Order)), Format: m}
	if panel.ShapeOf(v).Staged() {
		lists := panel.Matrix[T]{V: m.V, Cols: m.Cols, Ptr: m.VecPtr, ColIdx: m.ColInd, Values: m.Values, Mask: m.Mask}
		if panel.InStreams(v) {
			return e, panel.Arrays(e, lists, nil, v)
		}
		return e, panel.Arrays(e, lists, m.Order, v)
	}
	e.Stats = m.Stats()
	panels := make([]panel.Span, len(m.Order))
	for i, n := range m.Order {
		panels[i] = panel.Span{First: m.VecPtr[n], Last: m.VecPtr[n+1], Rows: n * uint32(m.V)}
	}
	return e, panel.Lists(e, v, panels, nil, m.ColInd, m.Values, m.Mask)
}

// launch lays the grid out: panels and parts of them along x, folded along z, and column blocks along y.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel cvse/%s: %w", v.Name, err)
	}
	if panel.InStreams(v) {
		return panel.LaunchStreams(v, e, p, spec.Block[panel.Params]), nil
	}
	perGroup, cols := groupTile(v)
	lay := func(panels int) ([3]uint32, error) { return v.Grid(spec.Ceil(panels, perGroup), spec.Ceil(p.N, cols)) }
	l, err := panel.Launch(v, e, p, lay, spec.Block[panel.Params])
	if err != nil {
		return l, fmt.Errorf("kernel cvse/%s: %w", v.Name, err)
	}
	return l, nil
}

// groupTile returns the panels and the columns of C that a workgroup computes.
func groupTile(v *spec.Variant) (panels, cols int) {
	s := panel.ShapeOf(v)
	return max(1, s.Panels) * max(1, s.Warps), v.Tile.Cols
}
