// Where a matrix has its entries: counted in cells, and drawn with characters.

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spmmrun/spmm/formats"
)

// grid counts the entries in h × w cells of about the same size that cover a matrix.
type grid struct {
	h, w   int
	counts []int64 // row after row
	most   int64
}

// newGrid counts a's entries. h and w are at most the rows and columns.
func newGrid(a *formats.CSR[float32], h, w int) *grid {
	g := &grid{h: h, w: w, counts: make([]int64, h*w)}
	for i := range a.Rows {
		cells := g.counts[cell(i, a.Rows, h)*w:]
		for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
			cells[cell(int(c), a.Cols, w)]++
		}
	}
	for _, n := range g.counts {
		g.most = max(g.most, n)
	}
	return g
}

// cell returns which of cells parts of 0 … of-1 has i.
func cell(i, of, cells int) int { return int(int64(i) * int64(cells) / int64(of)) }

// shade returns how dark cell (i, j) is: 0 without entries, 1 with most; the square root, so that cells
// with few can be seen.
func (g *grid) shade(i, j int) float64 {
	return math.Sqrt(float64(g.counts[i*g.w+j]) / float64(max(1, g.most)))
}

// canvas is what a matrix is drawn on with characters.
type canvas struct {
	width, height int    // at most, in characters; characters are twice as high as wide
	shades        []rune // from no entry to most
}

// The characters of a terminal, and of everything else.
var (
	blocks = []rune(" ░▒▓█")
	plain  = []rune(" .:+#")
)

// newCanvas returns one as wide as w if that is a terminal, with blocks if its locale has them.
func newCanvas(w io.Writer) canvas {
	c := canvas{width: 72, height: 32, shades: plain}
	f := terminal(w)
	if f == nil {
		return c
	}
	c.width = min(c.width, columns(f))
	if unicodeLocale() {
		c.shades = blocks
	}
	return c
}

// unicodeLocale tells whether the user's locale has other characters than ASCII's.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// draw draws a in a frame.
func (c canvas) draw(w io.Writer, a *formats.CSR[float32]) error {
	if a.Rows == 0 || a.Cols == 0 {
		return nil
	}
	h, width, each := c.size(a.Rows, a.Cols)
	g := newGrid(a, h, width)
	var b strings.Builder
	edge := "+" + strings.Repeat("-", width*each) + "+\n"
	b.WriteString(edge)
	for i := range h {
		b.WriteByte('|')
		for j := range width {
			level := int(math.Ceil(g.shade(i, j) * float64(len(c.shades)-1)))
			b.WriteString(strings.Repeat(string(c.shades[level]), each))
		}
		b.WriteString("|\n")
	}
	_, err := fmt.Fprint(w, b.String(), edge)
	return err
}

// size returns how many cells a matrix is drawn with, and of how many characters side by side each is:
// two for a matrix that is small enough for a cell to be one element, else one.
func (c canvas) size(rows, cols int) (h, w, each int) {
	width := max(1, c.width-2) // the frame
	if cols <= width/2 && rows <= c.height {
		return rows, cols, 2
	}
	w = min(width, cols)
	h = int(math.Round(float64(w) * float64(rows) / float64(cols) / 2))
	if h > c.height {
		h = c.height
		w = int(math.Round(2 * float64(h) * float64(cols) / float64(rows)))
	}
	return min(max(1, h), rows), min(max(1, w), cols), 1
}
