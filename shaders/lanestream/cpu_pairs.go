// The kernel on the CPU for layout Pairs: values are put into the vectors one by one.

package lanestream

import (
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/internal/simd"
)

const (
	lanes = chains / 2
	quads = 16 // fours of columns of a lane in a step
)

// lastWords returns, for each chain of split q, the index of the word before its first one.
func (g *group[T]) lastWords(q int) (last [lanes]int) {
	for l := range last {
		last[l] = chains*(int(g.ptr[g.number*int(g.splits)+q])-1) + 2*l
	}
	return last
}

// eachPair calls f with the index of each value that the slots of a lane take in a step, and its row and column there.
func eachPair(words []uint32, lane int, last *[lanes]int, f func(at, row, col int)) {
	if words[chains+lane] == 0 {
		return
	}
	for i := range quads {
		x := lanestream.PairAt(words, lane, i)
		row, col := lanestream.Quad(lane, i)
		if x.Next {
			last[lane] += chains
			f(last[lane], row, col+x.Col[0])
		}
		if x.Upper {
			f(last[lane]+1, row, col+x.Col[1])
		}
	}
}

// multiplyPairs is multiply for layout Pairs.
func (g *group[T]) multiplyPairs() {
	const lanesOfVector = lanes / 8 * simd.VectorRows / 8
	g.block.Start(g.loops, g.columns)
	for q := range int(g.splits) {
		first, end := g.split(q)
		last := g.lastWords(q)
		for s := first; s < end; s += chunkSteps {
			n, k := min(chunkSteps, end-s), s*stepCols
			if k >= int(g.cols) { // fillers
				break
			}
			g.block.Right(g.b[k*int(g.ldb)+g.firstColumn:], int(g.ldb), min(n*stepCols, int(g.cols)-k))
			for p := range rows / simd.VectorRows {
				clear(g.left[:])
				for l := p * lanesOfVector; l < (p+1)*lanesOfVector; l++ {
					for i := range n {
						eachPair(g.words(s+i), l, &last, func(at, row, col int) {
							g.left[(i*stepCols+col)*simd.VectorRows+vectorRow(row)%simd.VectorRows] = g.loops.Wide(g.values[at])
						})
					}
				}
				g.block.Add(p, g.left[:])
			}
		}
	}
}

// entriesOfPairs is entries for layout Pairs, without the COO remainder.
func (g *group[T]) entriesOfPairs(r, j int, add func(x, y float32)) {
	for q := range int(g.splits) {
		first, end := g.split(q)
		last := g.lastWords(q)
		for s := first; s < end; s++ {
			for l := 4 * (r % 8); l < 4*(r%8)+4; l++ {
				eachPair(g.words(s), l, &last, func(at, row, col int) {
					if row == r && g.stored[at/32]>>(at%32)&1 != 0 {
						add(g.loops.Wide(g.values[at]), g.loops.Wide(g.b[(s*stepCols+col)*int(g.ldb)+j]))
					}
				})
			}
		}
	}
}
