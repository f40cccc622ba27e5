// The kernel on the CPU: a workgroup is a group of 64 rows and as many columns as leave its sums in the first-level cache.
// Steps are expanded to dense vectors of 8 rows, those without entries left out, and package simd multiplies them.

package lanestream

import (
	"math/bits"
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
	cpuCols  = 128 // columns of a workgroup
	cpuSteps = 4   // steps expanded at a time

	chains   = lanestream.Chains
	rows     = lanestream.GroupRows
	panels   = rows / simd.PanelRows
	stepCols = lanestream.StepCols
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, &spec.Variant{
			Name: "cpu_" + t.String(), In: t, Code: backend.CodeGo, Func: host.For(t, cpuGroup(host.F16), cpuGroup(host.BF16), cpuGroup(host.F32)),
			Local:  [3]uint32{1, 1, 1},
			Consts: []spec.Const{spec.Define("WARPS", 1), spec.Define("BLOCKS", 1), spec.Define("CLUSTER", 1), spec.Define("COLS", cpuCols)},
			Out:    []dtype.Type{dtype.F16, dtype.BF16},
		})
	}
	return vs
}

// scratch is the sums of one workgroup, the vectors of some steps, and a row of C on its way from and to 16 bits.
type scratch[T formats.Value] struct {
	acc    [rows * cpuCols]float32
	dense  [panels][cpuSteps * stepCols * simd.PanelRows]T
	wide   [cpuSteps * stepCols * simd.PanelRows]float32
	used   [panels][cpuSteps]uint32 // the columns that have entries
	packed [cpuSteps * stepCols * simd.PanelRows]float32
	cols   [cpuSteps * stepCols]uint32
	next   [chains]int
	c      [cpuCols]float32
}

// group is what a workgroup works on.
type group[T formats.Value] struct {
	params
	*scratch[T]
	number               int
	ptr, restPtr         []uint32
	restCol, stored      []uint32
	mask                 []uint32
	values, rest, b      []T
	loops                host.Loops[T]
	firstColumn, columns int // of C
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(scratch[T]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		number := int(at[0]) + int(at[2])*int(p.width)
		if number >= int(p.groups) {
			return
		}
		index, streams := backend.View[uint32](args[0]), int(p.groups*p.parts)
		tail := index[2*streams+1:]
		restPtr := tail[:p.rows+1]
		tail = tail[p.rows+1:]
		values, slots := backend.View[T](args[2]), chains*int(index[streams])
		g := group[T]{
			params: p, number: number, loops: loops, ptr: index[:streams+1],
			restPtr: restPtr, restCol: tail[:restPtr[p.rows]], stored: tail[restPtr[p.rows]:],
			mask: backend.View[uint32](args[1]), values: values[:slots], rest: values[slots:], b: backend.View[T](args[3]),
			firstColumn: int(at[1]) * cpuCols,
		}
		g.columns = min(cpuCols, int(p.n)-g.firstColumn)
		g.scratch = pool.Get().(*scratch[T])
		defer pool.Put(g.scratch)
		g.multiply()
		out := host.Out{C: args[5], Bias: args[4], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		for r := range min(rows, int(p.rows)-number*rows) {
			acc := g.acc[r*cpuCols:][:g.columns]
			g.addRest(r)
			host.Repair(acc, func(i int, add func(x, y float32)) { g.entries(r, g.firstColumn+i, add) })
			out.Row(number*rows+r, g.firstColumn, acc, g.c[:g.columns])
		}
	}
}

// part returns the steps of a part, counted in the group, and begins its chains.
func (g *group[T]) part(q int) (first, end int) {
	at := chains * int(g.ptr[g.number*int(g.parts)+q])
	for c := range g.next {
		g.next[c] = at + c
	}
	piece := func(q int) int { return int(uint64(g.pieces) * uint64(q) / uint64(g.parts)) }
	return piece(q) * int(g.steps), piece(q+1) * int(g.steps)
}

// words returns the mask of a step of the group.
func (g *group[T]) words(step int) []uint32 {
	return g.mask[(g.number*int(g.pieces*g.steps)+step)*chains:][:chains]
}

func (g *group[T]) multiply() {
	clear(g.acc[:])
	for q := range int(g.parts) {
		first, end := g.part(q)
		for s := first; s < end; s += cpuSteps {
			n := min(cpuSteps, end-s)
			clear(g.used[0][:])
			for p := range g.dense {
				clear(g.dense[p][:n*stepCols*simd.PanelRows])
				clear(g.used[p][:])
			}
			for i := range n {
				g.expand(g.words(s+i), i)
			}
			g.flush(s, n)
		}
	}
}

// expand puts a step's values into the vectors of their columns, as step i of those under way.
func (g *group[T]) expand(words []uint32, i int) {
	for n, word := range words {
		lane, w := n/2, n%2
		at := (stepCols*i + 16*w + lane%4) * simd.PanelRows
		for ; word != 0; word &= word - 1 {
			bit := bits.TrailingZeros32(word) // 8·t + 4·k + 2·r + h
			h := bit & 1
			col := 8*(bit>>2&1) + 4*h
			panel := 2*(bit>>3) + bit>>1&1
			chain := 2*lane + h
			g.dense[panel][at+col*simd.PanelRows+lane/4] = g.values[g.next[chain]]
			g.next[chain] += chains
			g.used[panel][i] |= 1 << (16*w + lane%4 + col)
		}
	}
}

// flush multiplies the vectors of n steps from step s on.
func (g *group[T]) flush(s, n int) {
	for p := range panels {
		g.loops.Widen(g.wide[:n*stepCols*simd.PanelRows], g.dense[p][:n*stepCols*simd.PanelRows])
		k := 0
		for i, used := range g.used[p][:n] {
			for ; used != 0; used &= used - 1 {
				col := stepCols*i + bits.TrailingZeros32(used)
				if s*stepCols+col >= int(g.params.cols) { // fillers
					break
				}
				g.scratch.cols[k] = uint32(s*stepCols + col)
				*(*[simd.PanelRows]float32)(g.packed[k*simd.PanelRows:]) = [simd.PanelRows]float32(g.wide[col*simd.PanelRows:])
				k++
			}
		}
		if k > 0 {
			g.loops.Panel(g.acc[p*simd.PanelRows*cpuCols:], cpuCols, g.packed[:k*simd.PanelRows], simd.PanelRows, g.scratch.cols[:k], g.b[g.firstColumn:], int(g.ldb), host.Pad(g.columns))
		}
	}
}

// addRest adds the rest of row r of the group to its sums.
func (g *group[T]) addRest(r int) {
	begin, end := g.restPtr[g.number*rows+r], g.restPtr[g.number*rows+r+1]
	if begin == end {
		return
	}
	padded := host.Pad(g.columns)
	g.loops.Row(g.c[:padded], g.rest[begin:end], g.restCol[begin:end], g.b[g.firstColumn:], int(g.ldb))
	simd.Axpby(g.acc[r*cpuCols:][:padded], g.c[:padded], 1, 1)
}

// entries calls add with each entry of row r of the group and the element of column j of B that it multiplies.
func (g *group[T]) entries(r, j int, add func(x, y float32)) {
	for q := range int(g.parts) {
		first, end := g.part(q)
		for s := first; s < end; s++ {
			words := g.words(s)
			for n := 8 * (r % 8); n < 8*(r%8)+8; n++ {
				for word := words[n]; word != 0; word &= word - 1 {
					bit := bits.TrailingZeros32(word)
					chain := n/2*2 + bit&1
					at := g.next[chain]
					g.next[chain] += chains
					if 2*(bit>>3)+bit>>1&1 == r/8 && g.stored[at/32]>>(at%32)&1 != 0 {
						col := s*stepCols + 16*(n%2) + 8*(bit>>2&1) + 4*(bit&1) + n/2%4
						add(g.loops.Wide(g.values[at]), g.loops.Wide(g.b[col*int(g.ldb)+j]))
					}
				}
			}
		}
	}
	i := g.number*rows + r
	for at := g.restPtr[i]; at < g.restPtr[i+1]; at++ {
		add(g.loops.Wide(g.rest[at]), g.loops.Wide(g.b[int(g.restCol[at])*int(g.ldb)+j]))
	}
}
