// Launches: which tiles a problem takes, and how they are shared out.

package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

func launch(v *spec.Variant, e *spec.Packed, p spec.Problem) (spec.Launch, error) {
	if err := check(v, e, p); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	x := paramsOf(p)
	x.words = bitWords(e)
	if p.CCol {
		p.Epilogue = p.Epilogue.Transposed()
	}
	x.store = p.StoreWord()
	if isLanes(v) {
		tile := *v
		tile.Any = false
		s := lanesFor(&tile, x, p.Caps)
		if s == nil {
			return spec.Launch{}, fmt.Errorf("kernel dense/%s: an operand of %d×%d×%d is too large: %w", v.Name, p.M, p.K, p.N,
				backend.ErrUnsupported)
		}
		x.across, x.whole, x.splits = s.across, uint32(s.whole), s.splits
		return launchLanes(s, x, p)
	}
	s := split(v, x, p.Caps)
	if s.transposed() {
		x = x.transposed()
		x.store = spec.Problem{Out: p.Out, Epilogue: p.Epilogue.Transposed()}.StoreWord()
	}
	x.across, x.whole, x.splits = s.across, uint32(min(s.whole, 1<<32-1)), s.splits
	groups, err := s.grid()
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	x.width = groups[0]
	l := spec.Launch{Passes: []spec.Pass{{Variant: form(s.variant, p), Groups: groups, Params: spec.Block(x),
		Maps: s.maps(x)}}, Workspace: max(spec.NoWorkspace, s.workspace())}
	if err := p.CheckBinding(v, "the workspace", l.Workspace); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	return l, nil
}

// check is spec.Problem.Check; transposed tiles take a column-major B too.
func check(v *spec.Variant, e *spec.Packed, p spec.Problem) error {
	if v.Kind == transposedKind && !p.CCol {
		any := *v
		any.AnyOrder = true
		v = &any
	}
	return p.Check(v, e)
}

// form returns the form of a variant that multiplies in p.
func form(v *spec.Variant, p spec.Problem) *spec.Variant {
	if t, ok := tileOf(v); ok && t.hopper {
		return v.ForBatches(p)
	}
	return v.For(p)
}

// transposed returns the parameters of Cᵀ, of a row-major C.
func (x params) transposed() params {
	x.rows, x.n = x.n, x.rows
	x.order |= cBit
	return x
}

// paramsOf returns what a problem says of the parameters.
func paramsOf(p spec.Problem) params {
	x := params{
		rows: uint32(p.M), n: uint32(p.N), cols: uint32(p.K), lda: uint32(lda(p.K)), ldb: uint32(p.LDB), ldc: uint32(p.LDC),
		alpha: float32(p.Alpha), beta: float32(p.Beta),
	}
	if p.BCol {
		x.order |= bBit
	}
	if p.CCol {
		x.order |= cBit
		x.rows, x.n = x.n, x.rows
	}
	return x
}

// suited returns the tile that a problem takes.
func suited(v *spec.Variant, _ *spec.Packed, p spec.Problem) *spec.Variant {
	if isLanes(v) {
		if s := lanesFor(v, paramsOf(p), p.Caps); s != nil {
			return s.variant
		}
		v = coops[0]
	}
	return share(v, paramsOf(p), p.Caps).variant
}

// shared is how tiles are shared out: see work_tiles.cuh and stream_k.cuh. A tile is the block of C that a cluster
// computes: in hopper_split_k.cu by parts of its sum, or two tiles of blocks side by side.
type shared struct {
	variant    *spec.Variant
	blocks     uint32 // of a cluster
	across     uint32 // tiles side by side
	tiles      int64
	whole      int64  // tiles that are not split
	splits     uint32 // 0: clusters share the steps of the others evenly
	atOnce     int64  // blocks or clusters that run at once
	persistent bool   // these take work items in turn
}

// share picks the tile that takes least, for a variant that stands for several, and the parts that its tiles are cut
// into.
func share(v *spec.Variant, x params, caps backend.Caps) shared {
	if w := wider(v); w != nil && w.Met(caps) {
		if s := split(w, x, caps); s.tiles >= int64(caps.Units) {
			return s
		}
	}
	var best shared
	least := 0.0
	vs := family(v)
	for _, t := range vs {
		s := split(t, x, caps)
		if len(vs) > 1 && (s.wasteful(x) || s.transposed() && x.order&cBit != 0) {
			continue
		}
		if cost := s.cost(x); best.variant == nil || cost < least {
			best, least = s, cost
		}
	}
	return best
}

// split cuts the tiles that do not fill the device by themselves.
func split(v *spec.Variant, x params, caps backend.Caps) shared {
	t, ok := tileOf(v)
	if !ok || !t.hopper {
		t.down, t.across = 1, 1
	}
	if t.turned {
		x = x.transposed()
	}
	rows, cols := sides(v)
	s := shared{variant: v, blocks: t.down * t.across * max(1, t.parts), across: spec.Ceil(x.n, cols*t.across), splits: 1,
		persistent: ok && t.hopper && t.parts == 0}
	s.tiles = int64(spec.Ceil(x.rows, rows*t.down)) * int64(s.across)
	s.whole = s.tiles
	if !ok || s.tiles == 0 {
		return s
	}
	s.atOnce = int64(max(1, min(caps.Units, mostBlocks)/int(s.blocks)) * t.resident)
	if s.blocks > 2 { // some multiprocessors are left over where clusters must not reach beyond a group of them
		s.atOnce = max(1, s.atOnce*8/9)
	}
	if t.parts > 0 {
		return s
	}
	rest := s.tiles % s.atOnce
	if rest == 0 || t.turned {
		return s
	}
	if n := uint32(min(s.atOnce/rest, mostSplits, int64(x.cols/(depth*leastSteps)))); n > 1 {
		s.whole, s.splits = s.tiles-rest, n
	}
	if even := s.shareSteps(); even.suits(x, rest) && even.cost(x) < s.cost(x) {
		return even
	}
	return s
}

// suits tells whether clusters may share steps evenly: few of them should share a tile, and not nearly as many as there
// are tiles; and stream_k.cuh counts steps in 32 bits. (hopper.cu with such shares took as long or longer.)
func (s *shared) suits(x params, rest int64) bool {
	t, _ := tileOf(s.variant)
	steps := int64(spec.Ceil(x.cols, depth))
	return t.quantised && 5*rest <= 4*s.atOnce && 3*rest >= s.atOnce && steps*rest >= s.atOnce*leastSteps &&
		steps*(s.tiles-s.whole) < (1<<32)/(s.atOnce+1)
}

// shareSteps has clusters share the steps of tiles evenly: of those that are left over where all have had as many, or
// of all tiles where each would have one.
func (s *shared) shareSteps() shared {
	even := *s
	even.whole, even.splits = s.tiles-s.tiles%s.atOnce, 0
	if even.whole == s.atOnce {
		even.whole = 0
	}
	return even
}

// transposed tells that tiles are of Cᵀ and C is row-major.
func (s *shared) transposed() bool {
	t, _ := tileOf(s.variant)
	return t.turned
}

// wasteful tells that a tile of hopper.cu is not worth considering: most of it would lie past C, or the sum would be
// split although there are tiles for all multiprocessors.
func (s *shared) wasteful(x params) bool {
	t, _ := tileOf(s.variant)
	if t.turned {
		rows := t.rows * t.down
		return x.n <= rows/2 || x.n > rows && x.n <= rows*3/2
	}
	return t.hopper && t.cols > 16 && x.n <= t.cols/2 || t.parts > 0 && s.tiles > s.atOnce*int64(3-min(2, t.parts))
}

// mostSplits is how many parts a sum has at most.
const mostSplits = 8

// leastSteps is how many times `depth` places of the sum a part has at least.
const leastSteps = 4

// items returns the number of work items.
func (s *shared) items() int64 { return s.whole + (s.tiles-s.whole)*int64(s.splits) }

// even tells that clusters share the steps of some tiles.
func (s *shared) even() bool { return s.splits == 0 }

// grid lays blocks out: one for each work item, or as many as run at once.
func (s *shared) grid() ([3]uint32, error) {
	if s.even() {
		return [3]uint32{uint32(s.atOnce) * s.blocks, 1, 1}, nil
	}
	if s.persistent {
		return [3]uint32{uint32(min(s.items(), s.atOnce)) * s.blocks, 1, 1}, nil
	}
	if s.blocks > 1 || s.variant.Maps > 0 { // clusters' grids are one line
		if n := s.tiles * int64(s.blocks); n > 1<<31-1 {
			return [3]uint32{}, fmt.Errorf("%d workgroups exceed %d: %w", n, 1<<31-1, backend.ErrUnsupported)
		}
		return [3]uint32{uint32(s.tiles) * s.blocks, 1, 1}, nil
	}
	return spec.Fold(s.items(), 1)
}

// workspace is the bytes of the sums of parts.
func (s *shared) workspace() int64 {
	parts := (s.tiles - s.whole) * int64(s.splits)
	switch {
	case s.even():
		parts = s.atOnce
	case s.splits < 2:
		return 0
	}
	const pair = 16 // columns that are added up together: split_k.cuh
	rows, cols := sides(s.variant)
	return 4 * parts * int64(s.blocks) * int64(rows) * int64(max(pair, cols))
}

// maps describes both operands to the variants that copy them by tensor maps, each block bringing a part of what it
// shares with its neighbours: L, then R (see gemm.cuh).
func (s *shared) maps(x params) []backend.TileMap {
	if s.variant.Maps == 0 {
		return nil
	}
	t, _ := tileOf(s.variant)
	const a, b = 0, 2 // arguments
	if x.order&cBit != 0 {
		return []backend.TileMap{tileMap(b, x.rows, x.cols, x.ldb, x.order&bBit != 0, t.rows, t.across),
			tileMap(a, x.n, x.cols, x.lda, true, t.cols, t.down)}
	}
	return []backend.TileMap{tileMap(a, x.rows, x.cols, x.lda, true, t.rows, t.across),
		tileMap(b, x.n, x.cols, x.ldb, x.order&bBit != 0, t.cols, t.down)}
}

// tileMap describes an operand of `lines` lines, of k elements each: one of `share` blocks brings a part of a tile.
func tileMap(arg int, lines, k, ld uint32, along bool, tile, share uint32) backend.TileMap {
	if along {
		return backend.TileMap{Arg: arg, Rows: max(1, lines), Cols: max(1, k), Pitch: max(align, ld), TileRows: tile / share,
			TileCols: depth}
	}
	return backend.TileMap{Arg: arg, Rows: max(1, k), Cols: max(1, ld), Pitch: max(align, ld), TileRows: depth / share,
		TileCols: slab(tile)}
}

// slab is how many lines of a tile lie side by side in shared memory where they lie across.
func slab(lines uint32) uint32 { return min(64, lines) }
