// The same as a picture in a file.

package main

import (
	"fmt"
	"image"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/spy"
)

// mostPixels bounds the cells along each side of the picture.
const mostPixels = 1024

// checkPNG refuses names of files of other types.
func checkPNG(path string) error {
	if path != "" && !strings.EqualFold(filepath.Ext(path), ".png") {
		return fmt.Errorf("--spy %s: want a file whose name ends in .png", path)
	}
	return nil
}

// writeSpy draws a with axes and a title.
func writeSpy(w io.Writer, name string, a *formats.CSR[float32]) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: %d×%d, %d entries", filepath.Base(name), a.Rows, a.Cols, a.NNZ())
	p.X.Label.Text, p.Y.Label.Text = "column", "row"
	rows, cols := float64(max(1, a.Rows)), float64(max(1, a.Cols))
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, cols, 0, rows
	p.Y.Tick.Marker = fromTop(rows)
	if a.Rows > 0 && a.Cols > 0 {
		g := spy.New(a, min(mostPixels, a.Rows), min(mostPixels, a.Cols))
		p.Add(plotter.NewImage(picture(g), 0, 0, cols, rows))
	}
	const side, margin, least = 16 * vg.Centimeter, 2 * vg.Centimeter, 2 * vg.Centimeter
	width, height := side, side
	if rows > cols {
		width = max(least, side*vg.Length(cols/rows))
	} else {
		height = max(least, side*vg.Length(rows/cols))
	}
	file, err := p.WriterTo(width+margin, height+margin, "png")
	if err != nil {
		return err
	}
	_, err = file.WriteTo(w)
	return err
}

// fromTop labels an axis of rows, the first of which is at the top.
func fromTop(rows float64) plot.TickerFunc {
	return func(min, max float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(min, max)
		for i := range ticks {
			ticks[i].Value = rows - ticks[i].Value
		}
		return ticks
	}
}

// picture returns a pixel for each cell, white where there is no entry.
func picture(g *spy.Grid) image.Image {
	m := image.NewGray(image.Rect(0, 0, g.W, g.H))
	for i := range g.H {
		for j := range g.W {
			y := uint8(255)
			if s := g.Shade(i, j); s > 0 {
				y = uint8(160 * (1 - s))
			}
			m.SetGray(j, i, color.Gray{Y: y})
		}
	}
	return m
}
