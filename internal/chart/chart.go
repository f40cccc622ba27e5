// Package chart draws points and lines over axes, as SVG.
package chart

import (
	"bytes"
	"fmt"
	"html"
	"io"
)

// Chart is one pair of axes and what is drawn over them.
type Chart struct {
	Title  string
	X, Y   Axis
	series []series
}

// Point is a point in the units of the axes.
type Point struct{ X, Y float64 }

// Style is how the points and lines of one series look.
type Style struct {
	Colour string // as SVG writes it, such as "#123456"
	Shape  Shape
	Dashes string // lengths of strokes and gaps, such as "6 3"; "" is a whole line
}

type series struct {
	name   string // in the legend; "" is not there
	style  Style
	points []Point
	line   bool
}

// Points draws points.
func (c *Chart) Points(s Style, points []Point) {
	c.series = append(c.series, series{style: s, points: points})
}

// Line joins points. A name is written in the chart's upper left corner.
func (c *Chart) Line(s Style, name string, points []Point) {
	c.series = append(c.series, series{name: name, style: s, points: points, line: true})
}

// Name is a line of what is written below all charts.
type Name struct {
	Text  string
	Style Style
}

// Sizes in pixels.
const (
	width, height = 480, 350 // of a chart, with these around the axes:
	left, right   = 70, 20
	top, bottom   = 30, 48
	line          = 18 // from one line of text to the next
	columns       = 3  // of names
)

// Write draws charts in rows, and names below them.
func Write(w io.Writer, rows [][]*Chart, names []Name) error {
	var body bytes.Buffer
	across := 0
	for i, row := range rows {
		for j, c := range row {
			fmt.Fprintf(&body, "<g transform=\"translate(%d,%d)\">\n", j*width, i*height)
			c.draw(&body)
			body.WriteString("</g>\n")
		}
		across = max(across, len(row)*width)
	}
	foot := len(rows) * height
	per := (len(names) + columns - 1) / columns
	for i, n := range names {
		x, y := left/2+i/per*(across-left)/columns, foot+i%per*line+line/2
		n.Style.Shape.mark(&body, float64(x), float64(y), n.Style.Colour)
		text(&body, float64(x+12), float64(y+4), "", n.Text)
	}
	foot += per*line + line/2
	_, err := fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">
<style>text{font:13px sans-serif;fill:#222}.t{font-size:11px}.m{text-anchor:middle}.e{text-anchor:end}</style>
<rect width="%[1]d" height="%[2]d" fill="#fff"/>
%[3]s</svg>
`, across, foot, body.Bytes())
	return err
}

// draw draws a chart with its upper left corner at 0, 0.
func (c *Chart) draw(b *bytes.Buffer) {
	const w, h = width - left - right, height - top - bottom
	x := c.X.scale(c.values(func(p Point) float64 { return p.X }), w)
	y := c.Y.scale(c.values(func(p Point) float64 { return p.Y }), h)
	text(b, left+w/2, top-10, "m", c.Title)
	text(b, left+w/2, top+h+38, "m", c.X.Label)
	fmt.Fprintf(b, "<text transform=\"translate(14,%d) rotate(-90)\" class=\"m\">%s</text>\n", top+h/2, html.EscapeString(c.Y.Label))
	for _, t := range x.ticks {
		at := left + x.pixels(t.position)
		fmt.Fprintf(b, "<path d=\"M%.1f,%dv%d\" stroke=\"#ddd\"/>\n", at, top, h)
		text(b, at, top+h+16, "t m", t.label)
	}
	for _, t := range y.ticks {
		at := top + h - y.pixels(t.position)
		fmt.Fprintf(b, "<path d=\"M%d,%.1fh%d\" stroke=\"#ddd\"/>\n", left, at, w)
		text(b, left-6, at+4, "t e", t.label)
	}
	fmt.Fprintf(b, "<path d=\"M%d,%dv%dh%d\" fill=\"none\" stroke=\"#222\"/>\n", left, top, h, w)
	// A picture in the picture cuts off what lies outside of the axes, but not what lies on them.
	const edge = 4
	fmt.Fprintf(b, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\">\n", left-edge, top-edge, w+2*edge, h+2*edge)
	named := 0
	for _, s := range c.series {
		var points []Point
		for _, p := range s.points {
			if x.has(p.X) && y.has(p.Y) {
				points = append(points, Point{edge + x.pixels(x.position(p.X)), edge + h - y.pixels(y.position(p.Y))})
			}
		}
		s.draw(b, points)
		if s.name != "" {
			at := Point{2 * edge, float64(4*edge + named*line)}
			s.draw(b, []Point{at, {at.X + 24, at.Y}})
			text(b, at.X+30, at.Y+4, "t", s.name)
			named++
		}
	}
	b.WriteString("</svg>\n")
}

// values are the coordinates of all points.
func (c *Chart) values(of func(Point) float64) (all []float64) {
	for _, s := range c.series {
		for _, p := range s.points {
			all = append(all, of(p))
		}
	}
	return all
}

// draw draws points that are in pixels.
func (s *series) draw(b *bytes.Buffer, points []Point) {
	if !s.line {
		for _, p := range points {
			s.style.Shape.mark(b, p.X, p.Y, s.style.Colour)
		}
		return
	}
	b.WriteString("<polyline points=\"")
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", p.X, p.Y)
	}
	fmt.Fprintf(b, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"", s.style.Colour)
	if s.style.Dashes != "" {
		fmt.Fprintf(b, " stroke-dasharray=\"%s\"", s.style.Dashes)
	}
	b.WriteString("/>\n")
}

// text writes a line whose foot is at y.
func text(b *bytes.Buffer, x, y float64, class, s string) {
	if class != "" {
		class = fmt.Sprintf(" class=\"%s\"", class)
	}
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, class, html.EscapeString(s))
}

// Shape is a point's mark.
type Shape int

// The shapes.
const (
	Circle Shape = iota
	Square
	Triangle
	Cross
	Shapes // how many there are
)

// mark draws the shape about a point.
func (s Shape) mark(b *bytes.Buffer, x, y float64, colour string) {
	switch s {
	case Square:
		fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" fill=\"%s\"/>\n", x-3, y-3, colour)
	case Triangle:
		fmt.Fprintf(b, "<path d=\"M%.1f,%.1fl4,7h-8z\" fill=\"%s\"/>\n", x, y-4, colour)
	case Cross:
		fmt.Fprintf(b, "<path d=\"M%.1f,%.1fl6,6m0,-6l-6,6\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x-3, y-3, colour)
	default:
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y, colour)
	}
}
