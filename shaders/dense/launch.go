// Launches: the tile for a problem, and how tiles are divided among CTAs.

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
	x := paramsOf(v, p)
	x.words = bitWords(e)
	if p.CCol {
		p.Epilogue = p.Epilogue.Transposed()
	}
	x.store = p.StoreWord()
	if isVulkanTile(v) {
		tile := *v
		tile.Any = false
		s := tileFor(&tile, x, p.Caps)
		if s == nil {
			return spec.Launch{}, fmt.Errorf("kernel dense/%s: an operand of %d×%d×%d is too large: %w", v.Name, p.M, p.K, p.N,
				backend.ErrUnsupported)
		}
		x.across, x.whole, x.splits = s.across, uint32(s.whole), s.splits
		return launchTile(s, x, p)
	}
	s := split(v, x, p.Caps)
	if u := upright(v, x); u.order != x.order {
		x = u
		x.store = spec.Problem{Out: p.Out, Epilogue: p.Epilogue.Transposed()}.StoreWord() |
			spec.Problem{CCol: true}.OrderWord()
	}
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
	l := spec.Launch{Passes: []spec.Pass{{Variant: form(ordered(s.variant, x), p), Groups: groups, Params: spec.Block(x),
		Maps: s.maps(x)}}, Workspace: max(spec.NoWorkspace, s.workspace())}
	if err := p.CheckBinding(v, "the workspace", l.Workspace); err != nil {
		return spec.Launch{}, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	return l, nil
}

// check is spec.Problem.Check, but kernels that compute Cᵀ also take a column-major B.
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

// transposed returns the parameters of a kernel that computes Cᵀ for a row-major C.
func (x params) transposed() params {
	x.rows, x.n = x.n, x.rows
	x.order |= cBit
	return x
}

// mostUpright is the most columns of a column-major C that is computed as A·B, not as Cᵀ = Bᵀ·Aᵀ. A tile has at least
// 64 rows; most of them would lie past such a Cᵀ.
const mostUpright = 128

// upright returns the parameters with which a variant computes a column-major C of few columns as A·B: those with
// split-K or tiles of few columns store columns of C.
func upright(v *spec.Variant, x params) params {
	if t, ok := tileOf(v); !ok || !t.columns() || x.order&cBit == 0 || x.rows > mostUpright {
		return x
	}
	x.rows, x.n = x.n, x.rows
	x.order &^= cBit
	return x
}

// paramsOf returns the parameters that a problem determines.
func paramsOf(v *spec.Variant, p spec.Problem) params {
	x := params{
		rows: uint32(p.M), n: uint32(p.N), cols: uint32(p.K), lda: uint32(lda(p.K)), ldb: uint32(p.LDB),
		ldc:   uint32(p.LDC),
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

// suited returns the variant with the tile for a problem.
func suited(v *spec.Variant, _ *spec.Packed, p spec.Problem) *spec.Variant {
	if isVulkanTile(v) {
		if s := tileFor(v, paramsOf(v, p), p.Caps); s != nil {
			return s.variant
		}
		v = coops[0]
	}
	return share(v, paramsOf(v, p), p.Caps).variant
}

// shared is how tiles are divided among CTAs: see work_tiles.cuh and stream_k.cuh. If there are clusters, a tile is the
// block of C that a cluster computes.
type shared struct {
	variant    *spec.Variant
	blocks     uint32 // CTAs of a cluster
	across     uint32 // tiles in a row of tiles
	tiles      int64
	whole      int64  // tiles that are not split
	splits     uint32 // of each of the others; 0: clusters share the steps of these equally (stream-K)
	atOnce     int64  // CTAs or clusters that run at the same time
	persistent bool   // each of these takes one work tile after another
}

// share returns the division of least cost, among all tiles of the variants that v stands for.
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
		if len(vs) > 1 && s.leftOut(x) {
			continue
		}
		if cost := s.cost(x); best.variant == nil || cost < least {
			best, least = s, cost
		}
	}
	return best
}

// leftOut reports whether a tile is not worth considering where there are others. Where a column-major C has few
// columns, the kernel with split-K was never the fastest without splits (testdata/tiles.txt).
func (s *shared) leftOut(x params) bool {
	t, _ := tileOf(s.variant)
	u := upright(s.variant, x)
	return s.wasteful(u) || x.order&cBit != 0 && (t.transposed || t.splits == 1 && u != x)
}

// split returns how a variant's tiles are divided: those of the last round are split if they leave CTAs idle.
func split(v *spec.Variant, x params, caps backend.Caps) shared {
	t, ok := tileOf(v)
	if !ok || !t.hopper {
		t.down, t.across = 1, 1
	}
	if t.transposed {
		x = x.transposed()
	}
	x = upright(v, x)
	rows, cols := sides(v)
	s := shared{variant: v, blocks: t.down * t.across * max(1, t.splits), across: spec.Ceil(x.n, cols*t.across), splits: 1,
		persistent: ok && t.hopper && t.splits == 0}
	s.tiles = int64(spec.Ceil(x.rows, rows*t.down)) * int64(s.across)
	s.whole = s.tiles
	if !ok || s.tiles == 0 {
		return s
	}
	s.atOnce = int64(max(1, min(caps.Units, mostBlocks)/int(s.blocks)) * t.resident)
	if s.blocks > 2 { // A cluster is within one group of multiprocessors, so some of these stay idle.
		s.atOnce = max(1, s.atOnce*8/9)
	}
	if t.splits > 0 {
		return s
	}
	rest := s.tiles % s.atOnce
	if rest == 0 || t.transposed {
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

// suits reports whether stream-K is worth considering, given the tiles of the last round: they should be neither too
// few nor nearly as many as clusters; and stream_k.cuh counts steps in 32 bits. (hopper.cu with stream-K was not
// faster.)
func (s *shared) suits(x params, rest int64) bool {
	t, _ := tileOf(s.variant)
	steps := int64(spec.Ceil(x.cols, depth))
	return t.quantised && 5*rest <= 4*s.atOnce && 3*rest >= s.atOnce && steps*rest >= s.atOnce*leastSteps &&
		steps*(s.tiles-s.whole) < (1<<32)/(s.atOnce+1)
}

// shareSteps returns the division by stream-K: clusters share equally the steps of the tiles of the last round, or of
// all tiles if there are fewer than two rounds.
func (s *shared) shareSteps() shared {
	even := *s
	even.whole, even.splits = s.tiles-s.tiles%s.atOnce, 0
	if even.whole == s.atOnce {
		even.whole = 0
	}
	return even
}

// transposed reports whether the kernel computes Cᵀ for a row-major C.
func (s *shared) transposed() bool {
	t, _ := tileOf(s.variant)
	return t.transposed
}

// wasteful reports whether a tile is not worth considering: half of it or more would be past C, or K would be split
// although there are tiles for all multiprocessors.
func (s *shared) wasteful(x params) bool {
	t, _ := tileOf(s.variant)
	if t.transposed {
		rows := t.rows * t.down
		return x.n <= rows/2 || x.n > rows && x.n <= rows*3/2
	}
	return t.hopper && t.cols > 16 && x.n <= t.cols/2 || t.splits > 0 && s.tiles > s.atOnce*int64(3-min(2, t.splits))
}

// mostSplits is the most splits of a sum.
const mostSplits = 8

// leastSteps is the least steps of depth values of k in a split.
const leastSteps = 4

// items returns the number of work tiles.
func (s *shared) items() int64 { return s.whole + (s.tiles-s.whole)*int64(s.splits) }

// even reports whether clusters share the steps of some tiles equally (stream-K).
func (s *shared) even() bool { return s.splits == 0 }

// grid returns the grid: a CTA or cluster for each work tile, or as many as run at the same time.
func (s *shared) grid() ([3]uint32, error) {
	if s.even() {
		return [3]uint32{uint32(s.atOnce) * s.blocks, 1, 1}, nil
	}
	if s.persistent {
		return [3]uint32{uint32(min(s.items(), s.atOnce)) * s.blocks, 1, 1}, nil
	}
	if s.blocks > 1 || s.variant.Maps > 0 { // a grid of clusters has one dimension
		if n := s.tiles * int64(s.blocks); n > 1<<31-1 {
			return [3]uint32{}, fmt.Errorf("%d workgroups exceed %d: %w", n, 1<<31-1, backend.ErrUnsupported)
		}
		return [3]uint32{uint32(s.tiles) * s.blocks, 1, 1}, nil
	}
	return spec.Fold(s.items(), 1)
}

// workspace returns the bytes of partial sums.
func (s *shared) workspace() int64 {
	partial := (s.tiles - s.whole) * int64(s.splits)
	switch {
	case s.even():
		partial = s.atOnce
	case s.splits < 2:
		return 0
	}
	const pair = 16 // columns that are added together: split_k.cuh
	rows, cols := sides(s.variant)
	return 4 * partial * int64(s.blocks) * int64(rows) * int64(max(pair, cols))
}

// maps returns the tensor maps of both operands, L and then R (gemm.cuh), for variants that need them. Each CTA of a
// cluster copies a share of what it needs in common with others.
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

// tileMap returns the tensor map of an operand of `lines` lines of k elements. Each of `share` CTAs copies a share of a
// tile.
func tileMap(arg int, lines, k, ld uint32, along bool, tile, share uint32) backend.TileMap {
	if along {
		return backend.TileMap{Arg: arg, Rows: max(1, lines), Cols: max(1, k), Pitch: max(align, ld), TileRows: tile / share,
			TileCols: depth}
	}
	return backend.TileMap{Arg: arg, Rows: max(1, k), Cols: max(1, ld), Pitch: max(align, ld), TileRows: depth / share,
		TileCols: slab(tile)}
}

// slab returns the lines of a slab of a tile that lies across (hopper.cuh).
func slab(lines uint32) uint32 { return min(64, lines) }
