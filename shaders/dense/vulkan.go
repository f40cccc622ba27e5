// The variants for Vulkan devices of known fragment layout: coop.comp for many columns, with split-K if there are few
// tiles, and few.comp for few columns.

package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// vulkanTile is a tile of coop.comp or few.comp. Its costs are in the device model: see costs.go.
type vulkanTile struct {
	coopTile
	name     string
	few      bool // few.comp: the subgroups split K
	resident int  // workgroups of a multiprocessor
}

// wideUnit is the operation of tiles of coop.comp on devices of known fragment layout.
var wideUnit = spec.AMD32

var vulkanTiles = []vulkanTile{
	{name: "n8", coopTile: coopTile{rows: 32, cols: 8, subs: 16}, few: true, resident: 1},
	{name: "n16", coopTile: coopTile{rows: 32, cols: 16, subs: 16}, few: true, resident: 1},
	{name: "n32", coopTile: coopTile{rows: 32, cols: 32, subs: 8}, few: true, resident: 1},
	tileOn(wideUnit, 32, 64, 2, 4, 128, 1),
	tileOn(wideUnit, 64, 64, 2, 2, 128, 1),
	tileOn(wideUnit, 64, 128, 2, 2, 96, 1),
	tileOn(wideUnit, 128, 128, 2, 1, 64, 1),
	tileOn(wideUnit, 128, 256, 4, 1, 16, 2),
}

// tileOn returns a tile of coop.comp for eight subgroups.
func tileOn(u spec.MatrixUnit, rows, cols, across, slices, step, stages uint32) vulkanTile {
	return vulkanTile{name: fmt.Sprintf("%dx%d", rows, cols), resident: 1, coopTile: coopTile{
		unit: u, rows: rows, cols: cols, subs: 8, across: across, slices: slices, step: step, stages: stages,
	}}
}

// vulkanOrder says which operands are K-major: for B and C row-major, for B column-major, for C column-major, for both.
type vulkanOrder struct {
	name        string
	left, right bool // K-major
}

var vulkanOrders = []vulkanOrder{
	{"", true, false}, {"_along", true, true}, {"_transposed", false, true}, {"_along", true, true},
}

// vulkans is the variants.
var vulkans = func() (vs []*spec.Variant) {
	for _, t := range vulkanTiles {
		vs = append(vs, t.variant(vulkanOrders[0]))
	}
	return vs
}()

func (t vulkanTile) variant(o vulkanOrder) *spec.Variant {
	name := "vulkan_tiles_" + t.name
	if !t.few {
		v := t.coopTile.variant(name, o)
		v.Shape, v.Need.Lanes = t, true // measured on such devices alone
		return v
	}
	v := &spec.Variant{
		Name: name + o.name, In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{F16: true, Lanes: true, Shapes: []backend.MatrixShape{spec.Shape(16, 8, 16, dtype.F16)}},
		Sub:  32, Matrix: true, Out: []dtype.Type{dtype.F16}, AnyOrder: true,
		Kind: fewKind, Tile: spec.Tile{Rows: int(t.rows), Cols: int(t.cols)}, Shape: t,
		Local: spec.Line(32 * t.subs), Unit: spec.Unit{Source: "few.comp", Blob: "few.spv"},
	}
	v.Need.Shared = t.subs * t.rows * (t.cols + 4) * 4
	v.Consts = []spec.Const{
		{Name: "LOCAL", ID: 0, Value: v.Local[0]}, {Name: "SUBS", ID: 1, Value: t.subs},
		{Name: "ROWS", ID: 2, Value: t.rows},
		{Name: "COLS", ID: 3, Value: t.cols}, {Name: "RIGHT_ALONG", ID: 4, Value: spec.Flag(o.right)},
	}
	return v
}

// adder returns the variant of coop.comp that adds partial sums.
func adder() *spec.Variant {
	v := tileFamily()
	v.Name, v.Any = v.Name+"_add", false
	for i := range v.Consts {
		switch v.Consts[i].Name {
		case "LOCAL":
			v.Consts[i].Value = addLocal
		case "ADDS":
			v.Consts[i].Value = 1
		}
	}
	v.Local[0] = addLocal
	return v
}

// addLocal is the number of its invocations.
const addLocal = 128

// isVulkanTile reports whether a variant is of vulkanTiles.
func isVulkanTile(v *spec.Variant) bool {
	_, ok := v.Shape.(vulkanTile)
	return ok
}

// anyTile is the variant that picks a tile for the problem.
var anyTile = tileFamily()

func tileFamily() *spec.Variant {
	v := vulkanTiles[len(vulkanTiles)-1].variant(vulkanOrders[0])
	v.Name, v.Any = "vulkan_tiles", true
	v.Need.Shapes = append(v.Need.Shapes, spec.NVIDIA.Shape(dtype.F16)) // of few.comp
	return v
}

// orderOf returns the order of a problem's operands.
func orderOf(x params) vulkanOrder { return vulkanOrders[x.order&(bBit|cBit)] }

// tileFor returns the tile of v for a problem, and its splits. It returns nil if an operand is too large: it must have
// less than 2^31 octets, and for few.comp B less than 2^31 elements.
func tileFor(v *spec.Variant, x params, caps backend.Caps) *shared {
	order, a, b := orderOf(x), int64(x.rows)*int64(x.lda), int64(x.cols)*int64(x.ldb)
	if x.order&cBit != 0 {
		a = int64(x.n) * int64(x.lda)
	}
	if x.order&bBit != 0 {
		b = max(int64(x.rows), int64(x.n)) * int64(x.ldb)
	}
	var best *shared
	least := 0.0
	for _, t := range vulkanTiles {
		of := v.Shape.(vulkanTile)
		if !v.Any && of != t {
			continue
		}
		if a >= 1<<34 || b >= 1<<34 || t.few && (x.order&cBit != 0 || b >= 1<<31) {
			continue
		}
		s := shared{variant: t.variant(order), blocks: 1, across: spec.Ceil(x.n, t.cols), splits: 1}
		s.tiles = int64(spec.Ceil(x.rows, t.rows)) * int64(s.across)
		s.whole = s.tiles
		s.atOnce = int64(max(1, caps.Units) * t.resident)
		if !t.few && s.tiles > 0 {
			if n := uint32(min(s.atOnce/s.tiles, mostSplits, int64(x.cols/(depth*leastSteps)))); n > 1 {
				s.whole, s.splits = 0, n
			}
		}
		if cost := s.tileTime(x); best == nil || cost < least {
			best, least = &s, cost
		}
	}
	return best
}

// launchTile is launch for vulkans.
func launchTile(s *shared, x params, p spec.Problem) (spec.Launch, error) {
	groups, err := spec.Fold(s.items(), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", s.variant.Name, err)
	}
	x.width = groups[0]
	l := spec.Launch{Passes: []spec.Pass{{Variant: s.variant.For(p), Groups: groups, Params: spec.Block(x)}},
		Workspace: spec.NoWorkspace}
	if s.splits < 2 {
		return l, nil
	}
	quads := int64(x.rows) * int64(spec.Ceil(x.n, 4))
	l.Workspace = 16 * quads * int64(s.splits)
	if err := p.CheckBinding(s.variant, "the workspace", l.Workspace); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", s.variant.Name, err)
	}
	if groups, err = spec.Fold(spec.Ceil(quads, addLocal), 1); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", s.variant.Name, err)
	}
	x.width = groups[0]
	l.Passes = append(l.Passes, spec.Pass{Variant: adder().For(p), Groups: groups, Params: spec.Block(x)})
	return l, nil
}
