package main

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

func TestDraw(t *testing.T) {
	small := &formats.CSR[float32]{Rows: 3, Cols: 4, RowPtr: []int64{0, 1, 1, 3}, ColIdx: []int32{0, 1, 3},
		Val: []float32{1, 2, 3}}
	for _, c := range []struct {
		name   string
		canvas canvas
		a      *formats.CSR[float32]
		want   string
	}{
		{"an element a cell", canvas{80, 32, blocks}, small, `
+--------+
|██      |
|        |
|  ██  ██|
+--------+
`},
		{"wide cells do not fit", canvas{9, 32, plain}, small, `
+----+
|#   |
| # #|
+----+
`},
		{"narrower than the matrix", canvas{4, 32, plain}, small, `
+--+
|#+|
+--+
`},
		{"no room at all", canvas{1, 32, plain}, small, `
+-+
|#|
+-+
`},
		{"shades by number", canvas{6, 32, blocks}, &formats.CSR[float32]{
			Rows: 1, Cols: 16, RowPtr: []int64{0, 6}, ColIdx: []int32{0, 1, 2, 3, 4, 15}, Val: make([]float32, 6)}, `
+----+
|█▒ ▒|
+----+
`},
		{"no rows", canvas{80, 32, plain}, &formats.CSR[float32]{Cols: 4, RowPtr: []int64{0}}, "\n"},
		{"no columns", canvas{80, 32, plain}, &formats.CSR[float32]{Rows: 1, RowPtr: []int64{0, 0}}, "\n"},
		{"no entries", canvas{80, 32, plain}, &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 0}}, "\n+--+\n|  |\n+--+\n"},
	} {
		var b strings.Builder
		if err := c.canvas.draw(&b, c.a); err != nil || "\n"+b.String() != c.want {
			t.Errorf("%s: %v, drawn as\n%s\nwant%s", c.name, err, b.String(), c.want)
		}
	}
}

// Whatever the matrix, its picture stays within the canvas and is about as high as the matrix.
func TestDrawSizes(t *testing.T) {
	for _, c := range []struct{ rows, cols, h, w, each int }{
		{32, 35, 32, 35, 2}, {33, 35, 17, 35, 1}, {1000, 1000, 32, 64, 1}, {1, 1 << 30, 1, 70, 1}, {1 << 30, 1, 32, 1, 1},
		{2000, 1000, 32, 32, 1}, {1000, 4000, 9, 70, 1}, {33, 1, 17, 1, 1},
	} {
		h, w, each := canvas{width: 72, height: 32}.size(c.rows, c.cols)
		if h != c.h || w != c.w || each != c.each {
			t.Errorf("%d×%d: %d×%d cells of %d, want %d×%d of %d", c.rows, c.cols, h, w, each, c.h, c.w, c.each)
		}
	}
}

// Only a terminal gets blocks.
func TestCanvas(t *testing.T) {
	t.Setenv("LC_ALL", "en_US.UTF-8")
	if c := newCanvas(new(bytes.Buffer)); string(c.shades) != string(plain) || c.width != 72 {
		t.Errorf("for a file: %+v", c)
	}
	for value, want := range map[string]bool{"en_US.UTF-8": true, "C.utf8": true, "C": false, "POSIX": false,
		"de_DE.ISO-8859-1": false} {
		t.Setenv("LC_ALL", value)
		if unicodeLocale() != want {
			t.Errorf("LC_ALL=%s: %v", value, !want)
		}
	}
	t.Setenv("LC_ALL", "")
	t.Setenv("LC_CTYPE", "")
	t.Setenv("LANG", "fr_FR.UTF-8")
	if !unicodeLocale() {
		t.Error("LANG alone does not count")
	}
}

// The picture shows entries where they are, row 0 at the top.
func TestWriteSpy(t *testing.T) {
	a, err := gen.CSR("gen:banded,rows=300,band=9")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeSpy(&b, "band.mtx", a); err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	size := m.Bounds().Size()
	dark := func(x, from, to float64) bool { // anywhere from one height to another
		for y := int(from * float64(size.Y)); y <= int(to*float64(size.Y)); y++ {
			if r, _, _, _ := m.At(int(x*float64(size.X)), y).RGBA(); r < 0x8000 {
				return true
			}
		}
		return false
	}
	if !dark(0.3, 0.18, 0.32) || !dark(0.8, 0.65, 0.82) {
		t.Error("nothing on the diagonal")
	}
	if dark(0.3, 0.5, 0.85) || dark(0.8, 0.1, 0.5) {
		t.Error("something beside the diagonal")
	}
	for _, empty := range []*formats.CSR[float32]{{RowPtr: []int64{0}}, {Rows: 1, Cols: 5, RowPtr: []int64{0, 0}},
		{Rows: 9, RowPtr: make([]int64, 10)}} {
		if err := writeSpy(&b, "none", empty); err != nil {
			t.Errorf("%d×%d: %v", empty.Rows, empty.Cols, err)
		}
	}
}
