// Drawing: rectangles, lines and words, one element a line, so that a changed picture shows in a diff.

package main

import (
	"bytes"
	"fmt"
	"html"
)

type canvas struct {
	body          bytes.Buffer
	width, height int
}

// A style of words.
const (
	small  = "s"
	bold   = "b"
	middle = "m"
)

func (c *canvas) reach(x, y int) { c.width, c.height = max(c.width, x), max(c.height, y) }

func (c *canvas) box(x, y, w, h int, fill, line string) {
	fmt.Fprintf(&c.body, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" stroke=\"%s\"/>\n", x, y, w, h, fill, line)
	c.reach(x+w, y+h)
}

// words writes a line whose foot is at y; in style middle x is its middle.
func (c *canvas) words(x, y int, style, s string) {
	fmt.Fprintf(&c.body, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, style, html.EscapeString(s))
	if style != middle {
		c.reach(x+7*len([]rune(s)), y)
	}
}

func (c *canvas) arrow(x1, y1, x2, y2 int) {
	fmt.Fprintf(&c.body, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#555\" marker-end=\"url(#head)\"/>\n", x1, y1, x2, y2)
}

// text is the picture on a white ground, so that it is legible where pages are dark.
func (c *canvas) text() []byte {
	const margin = 12
	w, h := c.width+2*margin, c.height+2*margin
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="%d %d %d %d">
<style>text{font:13px sans-serif;fill:#222}.b{font-weight:bold}.s{font-size:11px;fill:#555}.m{text-anchor:middle}</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"
><path d="M0,0L8,4L0,8z" fill="#555"/></marker></defs>
<rect x="%d" y="%d" width="%d" height="%d" fill="#fff"/>
%s</svg>
`, w, h, -margin, -margin, w, h, -margin, -margin, w, h, c.body.Bytes())
}
