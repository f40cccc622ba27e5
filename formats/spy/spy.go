// Package spy counts where a matrix has its entries, for pictures of it.
package spy

import (
	"math"

	"github.com/spmmrun/spmm/formats"
)

// Grid counts the entries in H × W cells of about the same size that cover a matrix.
type Grid struct {
	H, W   int
	Counts []int64 // row after row
	Most   int64   // of a cell
}

// New counts a's entries. h and w are at most the rows and columns.
func New(a *formats.CSR[float32], h, w int) *Grid {
	g := &Grid{H: h, W: w, Counts: make([]int64, h*w)}
	for i := range a.Rows {
		cells := g.Counts[cell(i, a.Rows, h)*w:]
		for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
			cells[cell(int(c), a.Cols, w)]++
		}
	}
	for _, n := range g.Counts {
		g.Most = max(g.Most, n)
	}
	return g
}

// cell returns which of cells parts of 0 … of-1 has i.
func cell(i, of, cells int) int { return int(int64(i) * int64(cells) / int64(of)) }

// Shade returns how dark cell (i, j) is: 0 if it has no entry, 1 if it has the most. It is the square root of the share
// of the most, so that cells with few entries can be seen.
func (g *Grid) Shade(i, j int) float64 {
	return math.Sqrt(float64(g.Counts[i*g.W+j]) / float64(max(1, g.Most)))
}
