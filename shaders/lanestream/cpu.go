// The kernel on the CPU: a workgroup is a group of 64 rows and some columns. The values of a chunk of steps are
// transposed, so that those of a chain are neighbours. Package simd expands them to vectors of 16 rows, and multiplies
// these like those of dense matrices.

package lanestream

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	chains   = lanestream.Chains
	rows     = lanestream.GroupRows
	stepCols = lanestream.StepCols

	cpuCols    = host.BlockCols
	chunkSteps = host.BlockDepth / stepCols
	// chunkRows is the most rows of values of a chunk's segments, and room to read beyond them.
	chunkRows = 320 + simd.ChainPadding
)

// onCPU is a variant for the CPU with tiles of cols columns.
func onCPU(name string, t dtype.Type, f backend.GroupFunc, cols uint32) *spec.Variant {
	v := spec.CPU(name, t, f, spec.Define("WARPS", 1), spec.Define("BLOCKS", 1), spec.Define("CLUSTER", 1),
		spec.Define("COLS", cols))
	v.Tile = columns(rows, cols)
	return sizes{packing: packing{warps: 1, cluster: 1}, ctas: 1}.sized(v, cpuKind)
}

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		f := host.For(t, cpuGroup(host.F16), cpuGroup(host.BF16), cpuGroup(host.F32))
		vs = append(vs, onCPU("cpu_"+t.String(), t, f, cpuCols))
	}
	return vs
}

// scratch is the memory of one workgroup: its sums; and of a chunk of steps the values, by rows and by chains, and the
// vectors of a panel.
type scratch[T formats.Value] struct {
	block  host.Block[T]
	rows   [chunkRows * chains]float32
	chains [chains * chunkRows]float32
	left   [host.BlockDepth * simd.VectorRows]float32
	from   int         // the first row of values of the chunk, counted in its stream
	next   [chains]int // how many rows each chain has taken from there
}

// groupStreams is A's arrays without its values, and the number of the group that a workgroup multiplies.
type groupStreams struct {
	params
	number                     int
	ptr, segmentRows           []uint32
	remainderPtr, remainderCol []uint32
	stored                     []uint32 // to the end of the index
	mask                       []uint32
	slots                      int
}

// groupOf finds the arrays in the arguments of workgroup `at`. It reports false if the workgroup has no group.
func groupOf(args [][]byte, block []byte, at [3]uint32) (groupStreams, bool) {
	p := spec.View[params](block)
	number := int(at[0]) + int(at[2])*int(p.width)
	if number >= int(p.groups) {
		return groupStreams{}, false
	}
	index, n := backend.View[uint32](args[0]), int(p.groups*p.splits)
	remainderPtr, tail := index[2*n+1:][:p.rows+1], index[2*n+1:][p.rows+1:]
	entries := remainderPtr[p.rows]
	return groupStreams{
		params: p, number: number, ptr: index[:n+1], segmentRows: index[n+1:][:n], remainderPtr: remainderPtr,
		remainderCol: tail[:entries], stored: tail[entries:],
		mask: backend.View[uint32](args[1]), slots: chains * int(index[n]),
	}, true
}

// group is a workgroup's work.
type group[T formats.Value] struct {
	groupStreams
	*scratch[T]
	values, remainder, b []T
	loops                host.Loops[T]
	firstColumn, columns int // of C
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(scratch[T]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		x, ok := groupOf(args, block, at)
		if !ok {
			return
		}
		values := backend.View[T](args[2])
		g := group[T]{
			groupStreams: x, loops: loops, values: values[:x.slots], remainder: values[x.slots:],
			b: backend.View[T](args[3]), firstColumn: int(at[1]) * cpuCols,
		}
		g.columns = min(cpuCols, int(g.n)-g.firstColumn)
		g.scratch = pool.Get().(*scratch[T])
		defer pool.Put(g.scratch)
		if g.maskLayout == lanestream.Pairs {
			g.multiplyPairs()
		} else {
			g.multiply()
		}
		out := host.Out{C: args[5], Bias: args[4], Store: g.store, LDC: g.ldc, Alpha: g.alpha, Beta: g.beta}
		for r := range min(rows, int(g.params.rows)-g.number*rows) {
			sums, tmp := g.block.Row(vectorRow(r))
			g.addRemainder(r, sums, tmp)
			host.Repair(sums, func(i int, add func(x, y float32)) { g.entries(r, g.firstColumn+i, add) })
			out.Row(g.number*rows+r, g.firstColumn, sums, tmp)
		}
	}
}

// vectorRow returns where row r of the group is in the block. A panel is the 16 rows of two rows of lanes, in the order
// of the expanded vectors.
func vectorRow(r int) int {
	lanes := r % 8
	return lanes/2*simd.VectorRows + lanes%2*8 + r/8
}

// split returns the first step of split q in the group, and the end of its steps.
func (g *group[T]) split(q int) (first, end int) {
	segment := func(q int) int { return int(uint64(g.segments) * uint64(q) / uint64(g.splits)) }
	return segment(q) * int(g.steps), segment(q+1) * int(g.steps)
}

// words returns the mask of a step of the group.
func (g *group[T]) words(step int) []uint32 {
	n := chains + lanes*int(g.maskLayout)
	return g.mask[(g.number*int(g.segments*g.steps)+step)*n:][:n]
}

// multiply computes the sums over the streams, for layout Places.
func (g *group[T]) multiply() {
	g.block.Start(g.loops, g.columns)
	for q := range int(g.splits) {
		first, end := g.split(q)
		g.from, g.next = 0, [chains]int{}
		for s := first; s < end; s += chunkSteps {
			n, k := min(chunkSteps, end-s), s*stepCols
			if k >= int(g.cols) { // fillers
				break
			}
			g.bring(q, s-first, n)
			g.block.Right(g.b[k*int(g.ldb)+g.firstColumn:], int(g.ldb), min(n*stepCols, int(g.cols)-k))
			mask := g.mask[(g.number*int(g.segments*g.steps)+s)*chains:]
			for p := range rows / simd.VectorRows {
				first := p * simd.ChainsTaken
				next := (*[simd.ChainsTaken]int)(g.next[first:])
				simd.ExpandChains(g.left[:], mask[first:], n, g.scratch.chains[first*chunkRows:], chunkRows, next)
				g.block.Add(p, g.left[:])
			}
		}
	}
}

// bring transposes the rows of values that n steps of split q may take, from step s of the split on.
func (g *group[T]) bring(q, s, n int) {
	stream := g.number*int(g.splits) + q
	begin, all := int(g.ptr[stream]), len(g.values)/chains
	from := g.from + slices.Min(g.next[:])
	end := int(g.segmentRows[stream]) * ((s+n-1)/int(g.steps) + int(g.window))
	count := min(end, int(g.ptr[stream+1])-begin) - from
	count = min(host.Pad(count), all) // perhaps with rows of the next stream
	from = min(from, all-begin-count)
	for c := range g.next {
		g.next[c] += g.from - from
	}
	g.from = from
	simd.Turn(g.scratch.chains[:], chunkRows, g.floats(g.values[(begin+from)*chains:][:count*chains]), chains, count,
		chains)
}

// floats returns rows of values in f32.
func (g *group[T]) floats(values []T) []float32 {
	if x, ok := any(values).([]float32); ok {
		return x
	}
	g.loops.Widen(g.scratch.rows[:], values)
	return g.scratch.rows[:len(values)]
}

// addRemainder adds the COO remainder of row r of the group to its sums. tmp is scratch memory.
func (g *group[T]) addRemainder(r int, sums, tmp []float32) {
	begin, end := g.remainderPtr[g.number*rows+r], g.remainderPtr[g.number*rows+r+1]
	if begin == end {
		return
	}
	g.loops.Row(tmp[:host.Pad(len(sums))], g.remainder[begin:end], g.remainderCol[begin:end], g.b[g.firstColumn:],
		int(g.ldb))
	simd.Axpby(sums, tmp[:len(sums)], 1, 1)
}

// entries calls add with each entry of row r of the group and the element of column j of B that it multiplies.
func (g *group[T]) entries(r, j int, add func(x, y float32)) {
	if g.maskLayout == lanestream.Pairs {
		g.entriesOfPairs(r, j, add)
	} else {
		g.entriesOfPlaces(r, j, add)
	}
	i := g.number*rows + r
	for at := g.remainderPtr[i]; at < g.remainderPtr[i+1]; at++ {
		add(g.loops.Wide(g.remainder[at]), g.loops.Wide(g.b[int(g.remainderCol[at])*int(g.ldb)+j]))
	}
}

// entriesOfPlaces is entries for layout Places, without the COO remainder.
func (g *group[T]) entriesOfPlaces(r, j int, add func(x, y float32)) {
	for q := range int(g.splits) {
		first, end := g.split(q)
		var next [chains]int // index of each chain's next value
		for c := range next {
			next[c] = chains*int(g.ptr[g.number*int(g.splits)+q]) + c
		}
		for s := first; s < end; s++ {
			words := g.words(s)
			for n := 8 * (r % 8); n < 8*(r%8)+8; n++ {
				for word := words[n]; word != 0; word &= word - 1 {
					bit := bits.TrailingZeros32(word)
					chain := n/2*2 + bit&1
					at := next[chain]
					next[chain] += chains
					if 2*(bit>>3)+bit>>1&1 == r/8 && g.stored[at/32]>>(at%32)&1 != 0 {
						col := s*stepCols + 16*(n%2) + 8*(bit>>2&1) + 4*(bit&1) + n/2%4
						add(g.loops.Wide(g.values[at]), g.loops.Wide(g.b[col*int(g.ldb)+j]))
					}
				}
			}
		}
	}
}
