// The variants for Vulkan devices of known fragment layout: lanes.comp for many columns, with split-K if there are few
// tiles, and few.comp for few columns.

package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// vulkanTile is a tile of lanes.comp or few.comp. Its costs are in the device model: see costs.go.
type vulkanTile struct {
	name       string
	rows, cols uint32
	down       uint32 // lanes.comp: operations of 16 rows of a subgroup
	subs       uint32 // few.comp: subgroups, which split K; 0: lanes.comp
	resident   int    // workgroups of a multiprocessor
}

var vulkanTiles = []vulkanTile{
	{name: "n8", rows: 32, cols: 8, subs: 16, resident: 1},
	{name: "n16", rows: 32, cols: 16, subs: 16, resident: 1},
	{name: "n32", rows: 32, cols: 32, subs: 8, resident: 1},
	{name: "n64", rows: 128, cols: 64, down: 2, resident: 2},
	{name: "n256", rows: 128, cols: 256, down: 4, resident: 1},
}

// vulkanOrder says which operands are K-major: for B and C row-major, for B column-major, for C column-major. If both
// are column-major, it is the second.
type vulkanOrder struct {
	name        string
	left, right bool // K-major
}

var vulkanOrders = []vulkanOrder{{"", true, false}, {"_along", true, true}, {"_transposed", false, true}}

// vulkans is the variants.
var vulkans = func() (vs []*spec.Variant) {
	for _, t := range vulkanTiles {
		vs = append(vs, t.variant(vulkanOrders[0]))
	}
	return vs
}()

func (t vulkanTile) variant(o vulkanOrder) *spec.Variant {
	v := &spec.Variant{
		Name: fmt.Sprintf("vulkan_lanes_%s%s", t.name, o.name), In: dtype.F16, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{F16: true, Lanes: true, Shapes: []backend.MatrixShape{spec.Shape(16, 8, 16, dtype.F16)}},
		Sub:  32, Matrix: true, Out: []dtype.Type{dtype.F16}, AnyOrder: true,
		Kind: lanesKind, Tile: spec.Tile{Rows: int(t.rows), Cols: int(t.cols)}, Shape: t,
	}
	if t.subs > 0 {
		v.Kind = fewKind
		v.Local = [3]uint32{32 * t.subs, 1, 1}
		v.Need.Shared = t.subs * t.rows * (t.cols + 4) * 4
		v.Unit = spec.Unit{Source: "few.comp", Blob: "few.spv"}
		v.Consts = []spec.Const{
			{Name: "LOCAL", ID: 0, Value: v.Local[0]}, {Name: "SUBS", ID: 1, Value: t.subs},
			{Name: "ROWS", ID: 2, Value: t.rows},
			{Name: "COLS", ID: 3, Value: t.cols}, {Name: "RIGHT_ALONG", ID: 4, Value: spec.Flag(o.right)},
		}
		return v
	}
	subs := t.rows / (16 * t.down) * (t.cols / 64)
	octets := max(2*(t.rows+t.cols)*4, subs*16*17)
	v.Local = [3]uint32{32 * subs, 1, 1}
	v.Need.Shared = 16 * octets
	v.Unit = spec.Unit{Source: "lanes.comp", Blob: "lanes.spv"}
	v.Consts = []spec.Const{
		{Name: "LOCAL", ID: 0, Value: v.Local[0]}, {Name: "ROWS", ID: 1, Value: t.rows}, {Name: "COLS", ID: 2, Value: t.cols},
		{Name: "DOWN", ID: 3, Value: t.down}, {Name: "LEFT_ALONG", ID: 4, Value: spec.Flag(o.left)},
		{Name: "RIGHT_ALONG", ID: 5, Value: spec.Flag(o.right)},
		{Name: "SHARED", ID: 6, Value: octets}, {Name: "ADDS", ID: 7, Value: 0},
	}
	return v
}

// adder returns the variant of lanes.comp that adds partial sums.
func adder() *spec.Variant {
	v := vulkanTiles[len(vulkanTiles)-1].variant(vulkanOrders[0])
	v.Name += "_add"
	v.Consts[0].Value, v.Consts[len(v.Consts)-1].Value = addLocal, 1
	v.Local[0] = addLocal
	return v
}

// addLocal is the number of its invocations.
const addLocal = 128

// isLanes reports whether a variant is of lanes.comp or few.comp.
func isLanes(v *spec.Variant) bool { return v.Kind == lanesKind || v.Kind == fewKind }

// anyLanes is the variant that picks a tile for the problem.
var anyLanes = func() *spec.Variant {
	v := vulkanTiles[len(vulkanTiles)-1].variant(vulkanOrders[0])
	v.Name, v.Any = "vulkan_lanes", true
	return v
}()

// orderOf returns which operands of a problem are K-major.
func orderOf(x params) vulkanOrder {
	switch x.order {
	case 0:
		return vulkanOrders[0]
	case cBit:
		return vulkanOrders[2]
	}
	return vulkanOrders[1]
}

// lanesFor returns the tile of v for a problem, and its splits. It returns nil if an operand is too large: it must have
// less than 2^31 octets, and for few.comp B less than 2^31 elements.
func lanesFor(v *spec.Variant, x params, caps backend.Caps) *shared {
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
		if !v.Any && v.Shape.(vulkanTile) != t {
			continue
		}
		if a >= 1<<34 || b >= 1<<34 || t.subs > 0 && (x.order&cBit != 0 || b >= 1<<31) {
			continue
		}
		s := shared{variant: t.variant(order), blocks: 1, across: spec.Ceil(x.n, t.cols), splits: 1}
		s.tiles = int64(spec.Ceil(x.rows, t.rows)) * int64(s.across)
		s.whole = s.tiles
		s.atOnce = int64(max(1, caps.Units) * t.resident)
		if t.subs == 0 && s.tiles > 0 {
			if n := uint32(min(s.atOnce/s.tiles, mostSplits, int64(x.cols/(depth*leastSteps)))); n > 1 {
				s.whole, s.splits = 0, n
			}
		}
		if cost := s.lanesCost(x); best == nil || cost < least {
			best, least = &s, cost
		}
	}
	return best
}

// launchLanes is launch for vulkans.
func launchLanes(s *shared, x params, p spec.Problem) (spec.Launch, error) {
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
