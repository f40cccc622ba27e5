// Where a matrix has its entries, drawn with characters.

package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/spy"
)

// canvas is the size and the characters of a drawing.
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
	g := spy.New(a, h, width)
	var b strings.Builder
	edge := "+" + strings.Repeat("-", width*each) + "+\n"
	b.WriteString(edge)
	for i := range h {
		b.WriteByte('|')
		for j := range width {
			level := int(math.Ceil(g.Shade(i, j) * float64(len(c.shades)-1)))
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
