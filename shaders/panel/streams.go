// The packing that panel_hopper.cuh reads: streams of steps for warps, arranged so that a ring of windows of B's rows
// in shared memory is read without bank conflicts.

package panel

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	noPanel    = ^uint32(0) // where a stream has fewer panels
	streamRows = 16         // rows that a warp computes
	mostLists  = 2          // panels of a stream
	swizzle    = 8          // chunks of 16 bytes in a row of the ring
	ringBanks  = 8          // rows of the ring that differ mod 8 lie in different banks
)

// Hopper is panel_hopper.cuh, the function entry of hopper.cu, for panels of v rows. Of the windows, rings and clusters
// tried, these are the fastest.
func Hopper(entry string, t dtype.Type, v uint32) *spec.Variant {
	const warps, feeders, window, stages, cols = 16, 4, 256, 6, 64
	x := CUDA(entry, "hopper.cu", fmt.Sprintf("cuda_v%d_hopper_%v", v, t), t, warps+feeders, []spec.Const{
		spec.Define("V", v), spec.Define("ALIGN", stepVectors), spec.Define("WINDOW", window), spec.Define("STAGES", stages),
		spec.Define("STAGE_ROWS", stages*window), spec.Define("SPAN", 3), spec.Define("WARPS", warps),
		spec.Define("CLUSTER", 2),
		spec.Define("COLS", cols),
	})
	x.Unit.Arch, x.Need.Arch, x.Need.Exact = "compute_90a", 90, true
	x.Overlaps, x.Maps, x.ColumnsOfC = true, 1, true
	x.Need.Shapes = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}
	x.Shared = stages*window*cols*2 + 16*stages // windows and barriers
	x.Need.Shared = x.Shared
	of := Packing{V: int(v), Align: stepVectors, Window: window, Ring: stages * window, Span: 3}
	return Shape{Packing: of, Warps: warps, Cluster: 2}.gathered(x, hopperKind, cols)
}

// InStreams reports whether a variant is one that Hopper made.
func InStreams(v *spec.Variant) bool { return v.Kind == hopperKind }

// LaunchStreams lays a problem out for such a variant: clusters that take tiles in turn. block makes a format's
// parameters.
func LaunchStreams(v *spec.Variant, e *spec.Packed, p spec.Problem, block func(Params) []byte) spec.Launch {
	panels := e.Work.(Work).Panels
	s := ShapeOf(v)
	cluster := s.Cluster
	across, streams := spec.Ceil(p.N, v.Tile.Cols), spec.Ceil(panels, lists(v))
	each, turns := streamsOfBlock(v, p, streams, across)
	tiles := spec.Ceil(streams, each*cluster) * across
	clusters := spec.Ceil(tiles, max(1, turns))
	b := backend.TileMap{Arg: ArgB, Rows: uint32(max(1, p.K)), Cols: uint32(p.LDB), Pitch: uint32(p.LDB),
		TileRows: uint32(s.Window / s.Cluster)}
	return spec.Launch{Workspace: spec.NoWorkspace, Passes: []spec.Pass{{
		Variant: v.For(p), Groups: [3]uint32{uint32(clusters * cluster), 1, 1},
		Params: block(newParams(e, p, panels, uint32(each))), Maps: []backend.TileMap{b},
	}}}
}

// streamsOfBlock returns the streams that a block takes at a time, at most as many as it has warps, and how often all
// that run at once take a tile. Each block reads all of B's rows; fewer streams of each let more blocks share the work.
func streamsOfBlock(v *spec.Variant, p spec.Problem, streams, across int) (each, turns int) {
	most, cluster := ShapeOf(v).Warps, ShapeOf(v).Cluster
	atOnce := max(1, p.Caps.Units/cluster)
	turnsOf := func(each int) int { return spec.Ceil(spec.Ceil(streams, each*cluster)*across, atOnce) }
	turns = turnsOf(most)
	for each = most; each > 1 && turnsOf(each-1) == turns; each-- {
	}
	return each, turns
}

// streams is a matrix as panel_hopper.cuh reads it: see there.
type streams[T formats.Value] struct {
	ptr    []uint32
	places []uint16
	values []T
	mask   []uint32
	rows   []uint32 // panels of each stream
	steps  int
	most   int // steps of the longest stream
}

// streamArrays sets the arrays and the stats of e that a variant in streams reads: rows is the format's own.
func streamArrays[T formats.Value](e *spec.Packed, m Matrix[T], rows []uint32, v *spec.Variant) error {
	s, err := newStreams(&m, v)
	if err != nil {
		return err
	}
	if err := setArrays(e, len(m.Ptr)-1, s.ptr, append(s.rows, rows...), s.places, s.values, s.mask); err != nil {
		return err
	}
	slots := int64(s.steps) * streamRows * stepVectors
	of := ShapeOf(v)
	perCluster := of.Warps * of.Cluster
	e.Stats = formats.Stats{
		// in proportion: it may be of a sample
		Slots: slots, MACs: slots, Gathers: int64(m.Cols * (len(s.rows) / lists(v)) / perCluster), Staged: true,
		Longest: int64(s.most) * stepVectors,
	}
	e.Items = int64(spec.Ceil(len(s.rows)/lists(v), of.Warps)) // a block's
	e.Stats.StoredBytes = e.Bytes()
	if slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(slots)
	}
	return nil
}

// newStreams deals a matrix's vectors to steps, streams in parallel, and packs them.
func newStreams[T formats.Value](m *Matrix[T], v *spec.Variant) (*streams[T], error) {
	lists := lists(v)
	of := ShapeOf(v)
	d := dealer{window: of.Window, span: of.Span, ring: of.Ring, cols: m.Cols}
	windows := spec.Ceil(m.Cols, d.window)
	s := &streams[T]{rows: pairUp(m, lists)}
	count := len(s.rows) / lists
	dealt := make([]dealtStream, count)
	parallel(count, func(i int) {
		columns := make([][]uint32, lists)
		for l, p := range s.rows[i*lists:][:lists] {
			if p != noPanel {
				columns[l] = m.ColIdx[m.Ptr[p]:m.end(int(p))]
			}
		}
		dealt[i] = d.deal(columns)
	})
	order := s.heaviestFirst(dealt, lists)
	s.ptr = make([]uint32, 0, count*windows+1)
	for _, i := range order {
		for _, n := range dealt[i].segments {
			s.ptr = append(s.ptr, uint32(s.steps+n))
		}
		s.steps += len(dealt[i].steps)
		s.most = max(s.most, len(dealt[i].steps))
	}
	s.ptr = append(s.ptr, uint32(s.steps))
	if uint64(s.steps) >= 1<<32-16 {
		return nil, errTooLarge
	}
	const slots = streamRows * stepVectors
	// A step more, which the kernel fetches and does not use.
	s.places, s.values = make([]uint16, (s.steps+1)*stepVectors*lists), make([]T, (s.steps+1)*slots)
	s.mask = make([]uint32, (s.steps+1)*slots/32)
	first := make([]int, count)
	for at, i := 0, 0; i < count; i++ {
		first[i] = at
		at += len(dealt[order[i]].steps)
	}
	parallel(count, func(i int) {
		for n, step := range dealt[order[i]].steps {
			s.fill(m, s.rows[i*lists:][:lists], first[i]+n, step)
		}
	})
	return s, nil
}

// parallel calls f for 0 to n-1, on all cores.
func parallel(n int, f func(i int)) {
	spec.Shares(n, max(1, spec.Ceil(n, 4*runtime.GOMAXPROCS(0))), 0, func(first, last int) {
		for i := first; i < last; i++ {
			f(i)
		}
	})
}

// pairUp returns the panels of each stream: those with about as many vectors go together.
func pairUp[T formats.Value](m *Matrix[T], lists int) []uint32 {
	panels := make([]uint32, len(m.Ptr)-1)
	for p := range panels {
		panels[p] = uint32(p)
	}
	slices.SortStableFunc(panels, func(a, b uint32) int {
		return (m.end(int(b)) - int(m.Ptr[b])) - (m.end(int(a)) - int(m.Ptr[a]))
	})
	for len(panels)%lists != 0 {
		panels = append(panels, noPanel)
	}
	return panels
}

// heaviestFirst orders the streams by falling number of steps, and s.rows with them. It returns their former numbers.
func (s *streams[T]) heaviestFirst(dealt []dealtStream, lists int) []int {
	order := make([]int, len(dealt))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(dealt[b].steps) - len(dealt[a].steps) })
	rows := make([]uint32, 0, len(s.rows))
	for _, i := range order {
		rows = append(rows, s.rows[i*lists:][:lists]...)
	}
	s.rows = rows
	return order
}

// fill writes step n, whose panels are given.
func (s *streams[T]) fill(m *Matrix[T], panels []uint32, n int, d dealtStep) {
	lists := len(panels)
	for l, p := range panels {
		for k := range stepVectors {
			s.places[(n*stepVectors+k)*lists+l] = d.place[l][k]
			if d.vector[l][k] < 0 {
				continue
			}
			q := int(m.Ptr[p]) + int(d.vector[l][k])
			mask := m.mask(q)
			for r := range m.V {
				at := streamSlot(n, l*m.V+r, k)
				s.values[at] = m.Values[q*m.V+r]
				s.mask[at/32] |= mask >> r & 1 << (at % 32)
			}
		}
	}
}

// streamSlot returns where the value of row r (of 16) and vector k of a step is: lane 4·(r mod 8) + k mod 8 / 2 has it.
func streamSlot(step, r, k int) int {
	lane := r%8*4 + k%8/2
	return (step*32+lane)*8 + r/8*4 + k/8*2 + k%2
}

// lists is how many panels a stream has.
func lists(v *spec.Variant) int { return streamRows / ShapeOf(v).V }

// dealtStep is the vectors of each panel of a stream that a step multiplies, and where in the ring their rows are; -1
// is no vector.
type dealtStep struct {
	vector [mostLists][stepVectors]int32
	place  [mostLists][stepVectors]uint16
}

// dealtStream is a stream's steps; segments[w] is how many there are before segment w.
type dealtStream struct {
	steps    []dealtStep
	segments []int
}

// dealer deals the vectors of panels to steps.
type dealer struct {
	window, span, ring int
	cols               int
}

// deal makes the steps of a stream, given the columns of each of its panels' vectors, ascending. In each segment it
// makes steps as long as these are free of bank conflicts and full, and while there are vectors whose window is given
// back after the segment. Others wait: so that residues even out.
func (d *dealer) deal(columns [][]uint32) dealtStream {
	var s dealtStream
	pools := make([]pool, len(columns))
	next := make([]int, len(columns))
	windows := spec.Ceil(d.cols, d.window)
	for w := range windows {
		s.segments = append(s.segments, len(s.steps))
		for l, cols := range columns {
			for ; next[l] < len(cols) && int(cols[next[l]]) < (w+1)*d.window; next[l]++ {
				pools[l].add(int(cols[next[l]]), next[l])
			}
		}
		due := (w + 2 - d.span) * d.window // columns before it are
		if w == windows-1 {
			due = d.cols
		}
		for every(pools, (*pool).even) || slices.ContainsFunc(pools, func(p pool) bool { return p.has(due) }) {
			s.steps = append(s.steps, d.step(pools, w, due))
		}
	}
	return s
}

func every(pools []pool, f func(*pool) bool) bool {
	for i := range pools {
		if !f(&pools[i]) {
			return false
		}
	}
	return true
}

// step takes a step's vectors from the pools, in segment w.
func (d *dealer) step(pools []pool, w, due int) dealtStep {
	var s dealtStep
	for l := range pools {
		for half := range 2 {
			taken := pools[l].take(due)
			for i := range ringBanks {
				k, col := half*ringBanks+i, 0
				s.vector[l][k] = -1
				if i < len(taken.vectors) {
					s.vector[l][k], col = int32(taken.vectors[i].number), taken.vectors[i].col
				} else { // of a row that is there, for what is no vector
					col = w*d.window + taken.free(i-len(taken.vectors))
				}
				row := col % d.ring
				s.place[l][k] = uint16(row*swizzle + row%swizzle)
			}
		}
	}
	return s
}

// A pool is the vectors of a panel that wait to be dealt, by column mod 8, ascending.
type pool struct {
	banks [ringBanks][]waiting
}

type waiting struct{ col, number int }

func (p *pool) add(col, number int) {
	b := &p.banks[col%ringBanks]
	*b = append(*b, waiting{col, number})
}

// even reports whether a step could be filled without a bank conflict.
func (p *pool) even() bool {
	for _, b := range p.banks {
		if len(b) < 2 {
			return false
		}
	}
	return true
}

// has reports whether there are vectors of columns before col.
func (p *pool) has(col int) bool {
	for _, b := range p.banks {
		if len(b) > 0 && b[0].col < col {
			return true
		}
	}
	return false
}

// taken is up to eight vectors that are read at once.
type taken struct {
	vectors []waiting
	used    [ringBanks]int
}

// free returns the i-th residue that none of the vectors has; any where there are not as many.
func (t *taken) free(i int) int {
	for r, n := range t.used {
		if n == 0 {
			if i == 0 {
				return r
			}
			i--
		}
	}
	return i
}

// take takes vectors for half a step: of the fewest from one bank that is worth it, those that are due first.
func (p *pool) take(due int) *taken {
	t := &taken{}
	most := p.depth()
	for len(t.vectors) < ringBanks {
		best := -1
		for r, b := range p.banks {
			if len(b) > 0 && t.used[r] < most && (best < 0 || p.before(r, best, due)) {
				best = r
			}
		}
		if best < 0 {
			break
		}
		t.vectors = append(t.vectors, p.banks[best][0])
		p.banks[best] = p.banks[best][1:]
		t.used[best]++
	}
	return t
}

// before reports whether a vector is rather taken from bank a than from b.
func (p *pool) before(a, b, due int) bool {
	dueA, dueB := p.banks[a][0].col < due, p.banks[b][0].col < due
	if dueA != dueB {
		return dueA
	}
	return len(p.banks[a]) > len(p.banks[b])
}

// depth returns how many vectors of one bank half a step should have at most: as many times it is read, 8 cycles each
// for 64 columns of B; what else a half takes is about 3 more.
func (p *pool) depth() int {
	best, least := 1, 0.0
	for depth := 1; depth <= ringBanks; depth *= 2 {
		count := 0
		for _, b := range p.banks {
			count += min(len(b), depth)
		}
		if cost := float64(8*depth+3) / float64(min(count, ringBanks)); count > 0 && (least == 0 || cost < least) {
			best, least = depth, cost
		}
	}
	return best
}
