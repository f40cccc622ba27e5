// The kernel on the CPU: a workgroup takes a part apart into rows again, some blocks at a time, and
// multiplies each row's entries with package simd. Slots that hold nothing are never multiplied, so
// that sparse bricks cost no more than CSR.

package hrpb

import (
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuCols   = 256 // columns of a workgroup: the sums of its 16 rows stay in the first-level cache
	cpuBlock  = 16  // active columns of a block
	cpuChunk  = 16  // blocks that are taken apart at a time
	cpuWorker = 64  // parts at a time: a panel is split only where it would keep one core busy after the others are done
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		f := host.For(t, cpuGroup(narrow(host.F16)), cpuGroup(narrow(host.BF16)), cpuGroup(narrow(host.F32)))
		vs = append(vs, cpuSizes.sized(spec.CPU("cpu_"+t.String(), t, f, cpuConsts...), cpuKind, hrpb.PanelRows, cpuCols))
	}
	return append(vs, cpuSizes.sized(spec.Go("cpu_f64", dtype.F64, cpuGroup(double), cpuConsts...), cpuKind,
		hrpb.PanelRows, cpuCols))
}

var cpuSizes = sizes{block: cpuBlock, workers: cpuWorker}

var cpuConsts = []spec.Const{spec.Define("BLOCK", cpuBlock), spec.Define("WORKERS", cpuWorker),
	spec.Define("COLS", cpuCols)}

// arithmetic holds the kernel's functions for elements of T and sums of S.
type arithmetic[T formats.Value, S host.Real] struct {
	host.Sums[S]
	row func(acc []S, vals []T, cols []uint32, b []T, ldb int)
}

// narrow is the arithmetic whose sums are f32, with the row loop for T.
func narrow[T formats.Value](loops host.Loops[T]) arithmetic[T, float32] {
	return arithmetic[T, float32]{host.Single, loops.Row}
}

// double is the arithmetic of f64.
var double = arithmetic[float64, float64]{host.Double, simd.RowF64}

// scratch is the entries of some blocks by row, and sums.
type scratch[T formats.Value, S host.Real] struct {
	len  [hrpb.PanelRows]int
	cols [hrpb.PanelRows][cpuChunk * cpuBlock]uint32
	vals [hrpb.PanelRows][cpuChunk * cpuBlock]T
	acc  [hrpb.PanelRows][cpuCols]S
	row  [cpuCols]S // sums of a chunk, or a row of C on its way from and to 16 bits
}

// cpuGroup returns the function of one workgroup.
func cpuGroup[T formats.Value, S host.Real](do arithmetic[T, S]) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(scratch[T, S]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		item := int(at[0]) + int(at[2])*int(p.width)
		if item >= int(p.items) {
			return
		}
		s := pool.Get().(*scratch[T, S])
		defer pool.Put(s)
		g := group[T, S]{params: p, scratch: s, do: &do, block: block, args: args, j: int(at[1]) * cpuCols}
		g.n = min(cpuCols, int(p.n)-g.j)
		if p.phase == 1 {
			g.sum(item)
		} else {
			g.multiply(item)
		}
	}
}

// group is a workgroup's work: columns j to j + n.
type group[T formats.Value, S host.Real] struct {
	params
	*scratch[T, S]
	do    *arithmetic[T, S]
	block []byte
	args  [][]byte
	j, n  int
}

// work returns item i of the work list: panel, first block, last + 1, slot.
func (g *group[T, S]) work(i int) []uint32 { return backend.View[uint32](g.args[0])[4*i:][:4] }

// rows returns the rows that there are of a panel.
func (g *group[T, S]) rows(panel int) int {
	return min(hrpb.PanelRows, int(g.params.rows)-panel*hrpb.PanelRows)
}

// part returns row r of a slot of the workspace, at the workgroup's columns.
func (g *group[T, S]) part(slot, r int) []S {
	return backend.View[S](g.args[7])[(slot*hrpb.PanelRows+r)*int(g.ldp)+g.j:][:host.Pad(g.n)]
}

// store writes the sums of row r of a panel to C.
func (g *group[T, S]) store(panel, r int) {
	place := panel*hrpb.PanelRows + r
	if g.places != 0 {
		place = int(backend.View[uint32](g.args[0])[int(g.places)+place])
	}
	out := host.Out{C: g.args[6], Bias: g.args[5], Store: g.params.store, LDC: g.ldc, Alpha: g.alpha, Beta: g.beta}
	g.do.Row(out, g.block, place, g.j, g.acc[r][:g.n], g.row[:g.n])
}

// sum adds up the parts of a split panel.
func (g *group[T, S]) sum(item int) {
	w := g.work(int(g.parts) + item)
	panel, slot, slots := int(w[0]), int(w[3]), int(spec.Ceil(w[2]-w[1], g.longest))
	for r := range g.rows(panel) {
		acc := g.acc[r][:host.Pad(g.n)]
		clear(acc)
		for i := range slots {
			g.do.Add(acc, g.part(slot+i, r))
		}
		g.store(panel, r)
	}
}

// multiply does a part.
func (g *group[T, S]) multiply(item int) {
	w := g.work(item)
	panel, last, slot, padded := int(w[0]), int(w[2]), w[3], host.Pad(g.n)
	m := blocks[T]{active: backend.View[uint32](g.args[1]), sizes: backend.View[uint32](g.args[2]), packed: g.args[3]}
	b := backend.View[T](g.args[4])
	for q, first := int(w[1]), true; first || q < last; q, first = q+cpuChunk, false {
		unpack(m, g.scratch, q, min(q+cpuChunk, last))
		for r := range g.rows(panel) {
			cols, vals, acc := g.cols[r][:g.len[r]], g.vals[r][:g.len[r]], g.acc[r][:padded]
			switch {
			case first:
				g.do.row(acc, vals, cols, b[g.j:], int(g.ldb))
			case len(cols) > 0:
				g.do.row(g.row[:padded], vals, cols, b[g.j:], int(g.ldb))
				g.do.Add(acc, g.row[:padded])
			}
		}
	}
	for r := range g.rows(panel) {
		if slot != hrpb.NoSlot {
			copy(g.part(int(slot), r), g.acc[r][:padded])
		} else {
			g.store(panel, r)
		}
	}
}

// blocks is the format's arrays.
type blocks[T formats.Value] struct {
	active, sizes []uint32
	packed        []byte
}

// unpack puts the entries of blocks first to last-1 in s, by row.
func unpack[T formats.Value, S host.Real](m blocks[T], s *scratch[T, S], first, last int) {
	const bricks = cpuBlock / hrpb.BrickCols
	clear(s.len[:])
	for q := first; q < last; q++ {
		from := m.packed[16*int(m.sizes[q]) : 16*int(m.sizes[q+1])]
		patterns, values := backend.View[uint64](from)[:bricks], backend.View[T](from[8*bricks:])
		cols := m.active[q*cpuBlock:][:cpuBlock]
		k := 0
		for i, w := range patterns {
			for ; w != 0; w &= w - 1 {
				bit := bits.TrailingZeros64(w)
				r := bit / hrpb.BrickCols % hrpb.PanelRows
				at := s.len[r]
				s.cols[r][at], s.vals[r][at] = cols[i*hrpb.BrickCols+bit%hrpb.BrickCols], values[k]
				s.len[r]++
				k++
			}
		}
	}
}
