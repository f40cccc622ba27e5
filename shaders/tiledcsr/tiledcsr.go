// Package tiledcsr multiplies from Tiled-CSR (package formats/tiledcsr) with the kernels of package panel: a
// group of rows is a panel, its columns come in whole tiles, and the work list says which rows of C are its own. Heavy
// groups are cut into parts on GPUs.
//
// Workgroups are ordered as in the paper's 3D grid (§IV-B): columns of C are cut into strips; within a strip
// the blocks of columns of one group come next to each other, then those of the next group; then
// comes the next strip. So what runs at the same time is a block of C that is about as expensive to
// feed with A, from above, as with B, from the left.
package tiledcsr

import (
	"embed"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/tiledcsr"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Format is the table of the Tiled-CSR kernel.
var Format = &spec.Format{
	Program: &spec.Program{
		Name: "tiledcsr", Args: panel.Args,
		Params: spec.Params[params](), Files: files,
		Variants: spec.WithEpilogues(slices.Concat(cuda, panel.Vulkan(0), panel.WebGPU(0), panel.CPU(locate, 0)),
			panel.Splits),
	},
	Encode: encode, Adopt: adopt, Launch: launch,
}

// params is the parameter block.
type params struct {
	panel.Params
	strip uint32 // blocks of columns in a strip
}

// encode packs a matrix in groups of V rows; adopt packs one that is encoded already, in such groups.
var (
	encode = spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32])
	adopt  = spec.Adopter(take[half.F16], take[half.BF16], take[float32])
)

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if err := checkWidth(v, a.Cols); err != nil {
		return nil, err
	}
	m, err := tiledcsr.Encode(a, tiledcsr.Options{Height: panel.ShapeOf(v).V})
	if err != nil {
		return nil, err
	}
	return take(m, v)
}

func take[T formats.Value](m *tiledcsr.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	if want := panel.ShapeOf(v).V; m.Height != want {
		return nil, fmt.Errorf("kernel tiledcsr/%s takes height=%d, not height=%d", v.Name, want, m.Height)
	}
	if err := checkWidth(v, m.Cols); err != nil {
		return nil, err
	}
	e := &spec.Packed{Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Items: int64(len(m.TilePtr) - 1), Format: m}
	if staged(v) {
		return e, panel.Arrays(e, columns(m), m.RowIdx, v)
	}
	e.Stats = m.Stats()
	panels := make([]panel.Span, len(m.TilePtr)-1)
	for g := range panels {
		panels[g] = panel.Span{First: tiledcsr.TileCols * m.TilePtr[g], Last: tiledcsr.TileCols * m.TilePtr[g+1],
			Rows: uint32(g * m.Height)}
	}
	return e, panel.Lists(e, v, panels, m.RowIdx, m.ColIdx, m.Values, m.Mask)
}

// columns returns m with pointers to columns instead of tiles.
func columns[T formats.Value](m *tiledcsr.Matrix[T]) panel.Matrix[T] {
	ptr := slices.Clone(m.TilePtr)
	for g := range ptr {
		ptr[g] *= tiledcsr.TileCols
	}
	return panel.Matrix[T]{V: m.Height, Cols: m.Cols, Ptr: ptr, ColIdx: m.ColIdx, Values: m.Values, Mask: m.Mask}
}

// staged reports whether a variant has B in shared memory.
func staged(v *spec.Variant) bool { return panel.ShapeOf(v).Staged() }

// checkWidth refuses what staged variants cannot take.
func checkWidth(v *spec.Variant, cols int) error {
	if !staged(v) {
		return nil
	}
	if err := panel.CheckStaged(v, cols); err != nil {
		return fmt.Errorf("kernel tiledcsr: %w", err)
	}
	return nil
}

// launch lays the grid out: along x, folded along z, groups and the blocks of columns of a strip, the blocks
// first; along y strips.
func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := p.Check(v, e); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel tiledcsr/%s: %w", v.Name, err)
	}
	strip := 0
	block := func(common panel.Params) []byte { return spec.Block(params{common, uint32(strip)}) }
	if panel.InStreams(v) {
		return panel.LaunchStreams(v, e, p, block), nil
	}
	cols := groupCols(v)
	lay := func(groups int) ([3]uint32, error) {
		strip = stripBlocks(v, e, p, tiledcsr.Groups(p.M, panel.ShapeOf(v).V), cols)
		return spec.Fold(int64(groups)*int64(strip), spec.Ceil(spec.Ceil(p.N, cols), max(1, strip)))
	}
	if staged(v) { // one block of columns after the other: all that run at a time stage the same of B
		lay = func(groups int) ([3]uint32, error) {
			perBlock, cols := panel.StagedTile(v)
			return spec.Fold(int64(spec.Ceil(groups, perBlock)), spec.Ceil(p.N, cols))
		}
	}
	l, err := panel.Launch(v, e, p, lay, block)
	if err != nil {
		return l, fmt.Errorf("kernel tiledcsr/%s: %w", v.Name, err)
	}
	return l, nil
}

// groupCols returns the columns of C that a workgroup computes.
func groupCols(v *spec.Variant) int { return max(1, panel.ShapeOf(v).Warps) * v.Tile.Cols }

// stripBlocks returns the blocks of columns in a strip. With w blocks of each of h groups under way, w·h being
// what the device runs at a time, w times the bytes of a block of B and h times those of a group of A are
// needed at a time; their sum is least where the two are equal.
func stripBlocks(v *spec.Variant, e *spec.Packed, p spec.Problem, groups, cols int) int {
	blocks := spec.Ceil(p.N, cols)
	if groups == 0 || blocks == 0 {
		return blocks
	}
	const perUnit = 8 // workgroups of a multiprocessor
	wave := float64(max(1, p.Caps.Units))
	if v.Code != backend.CodeGo {
		wave *= perUnit
	}
	ofA := float64(e.Stats.StoredBytes) / float64(groups)
	ofB := float64(p.K) * float64(cols) * float64(v.In.Storage().Size())
	return min(blocks, int(max(1, math.Sqrt(wave*ofA/max(1, ofB)))))
}

// locate finds a workgroup's work on the CPU.
func locate(args [][]byte, block []byte, at [3]uint32, v int) (w panel.Group, ok bool) {
	p := spec.View[params](block)
	i := at[0] + at[2]*p.Width
	group, column := i/p.strip, (at[1]*p.strip+i%p.strip)*panel.CPUCols
	if group >= p.Panels || column >= p.N {
		return w, false
	}
	s, rows := panel.At(args, group), backend.View[uint32](args[panel.ArgWork])[p.Places:]
	return panel.Group{First: int(s.First), Last: int(s.Last), Rows: rows[s.Rows:][:v], Column: int(column)}, true
}
