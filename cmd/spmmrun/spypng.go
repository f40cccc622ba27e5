// The same as a picture in a file.

package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"path/filepath"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/spy"
	"github.com/spmmrun/spmm/internal/chart"
)

// Sizes in pixels: of the matrix's longer side, what the other one has at least, and what is around it.
const (
	longer, least = 800, 60
	around        = 64
)

// writeSpy draws a with axes and a title.
func writeSpy(w io.Writer, name string, a *formats.CSR[float32]) error {
	rows, cols := max(1, a.Rows), max(1, a.Cols)
	title := fmt.Sprintf("%s: %d x %d, %d entries", filepath.Base(name), a.Rows, a.Cols, a.NNZ())
	size := image.Pt(max(least, longer*cols/max(rows, cols)), max(least, longer*rows/max(rows, cols)))
	whole := image.Rect(0, 0, max(size.X+2*around, lengthOf(title)+around), size.Y+2*around)
	corner := image.Pt((whole.Dx()-size.X)/2, around)
	area := image.Rectangle{corner, corner.Add(size)}
	m := image.NewGray(whole)
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	if a.Rows > 0 && a.Cols > 0 {
		drawCells(m, area, spy.New(a, min(area.Dy(), a.Rows), min(area.Dx(), a.Cols)))
	}
	drawFrame(m, area)
	write(m, image.Pt(whole.Dx()/2, around/2), title)
	write(m, image.Pt(whole.Dx()/2, area.Max.Y+40), "column")
	write(m, image.Pt(area.Min.X-around/2, area.Min.Y-16), "row")
	for _, x := range chart.Ticks(0, float64(cols)) {
		at := area.Min.X + int(x/float64(cols)*float64(area.Dx()))
		draw.Draw(m, image.Rect(at, area.Max.Y, at+1, area.Max.Y+5), image.Black, image.Point{}, draw.Src)
		write(m, image.Pt(at, area.Max.Y+20), chart.Label(x))
	}
	for _, y := range chart.Ticks(0, float64(rows)) {
		at := area.Min.Y + int(y/float64(rows)*float64(area.Dy()))
		draw.Draw(m, image.Rect(area.Min.X-5, at, area.Min.X, at+1), image.Black, image.Point{}, draw.Src)
		write(m, image.Pt(area.Min.X-around/2, at+4), chart.Label(y))
	}
	return png.Encode(w, m)
}

// drawCells fills the area with the cells, white where there is no entry.
func drawCells(m *image.Gray, area image.Rectangle, g *spy.Grid) {
	for y := range area.Dy() {
		for x := range area.Dx() {
			if s := g.Shade(y*g.H/area.Dy(), x*g.W/area.Dx()); s > 0 {
				m.SetGray(area.Min.X+x, area.Min.Y+y, color.Gray{Y: uint8(160 * (1 - s))})
			}
		}
	}
}

// drawFrame draws a line around the area.
func drawFrame(m *image.Gray, area image.Rectangle) {
	outer := area.Inset(-1)
	for _, side := range []image.Rectangle{
		{outer.Min, image.Pt(outer.Max.X, area.Min.Y)}, {image.Pt(outer.Min.X, area.Max.Y), outer.Max},
		{outer.Min, image.Pt(area.Min.X, outer.Max.Y)}, {image.Pt(area.Max.X, outer.Min.Y), outer.Max},
	} {
		draw.Draw(m, side, image.Black, image.Point{}, draw.Src)
	}
}

// write writes a line that has a point at the middle of its foot.
func write(m *image.Gray, at image.Point, s string) {
	d := font.Drawer{Dst: m, Src: image.Black, Face: basicfont.Face7x13, Dot: fixed.P(at.X-lengthOf(s)/2, at.Y)}
	d.DrawString(s)
}

func lengthOf(s string) int { return font.MeasureString(basicfont.Face7x13, s).Ceil() }
