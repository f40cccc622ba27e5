// What each format stores: a small matrix, its entries coloured by row, and the arrays of the encoded matrix with the
// same colours. The matrix's values are its entries' numbers, so that the arrays themselves tell where they went.

package main

import (
	"fmt"
	"math"
	"reflect"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
)

// pattern is the matrix: some dense columns, some scattered entries, an empty row. At most two of four neighbours are
// entries, but for row 5.
var pattern = [...]string{
	"x..x....x.......",
	"x...x...x......x",
	"x..x....x..x....",
	"................",
	"x.......xx......",
	"xxxx....x...xx..",
	".....x..x.......",
	"x..x....x.....x.",
	"..x..x....x.....",
	"..x..x..x.x.....",
	"...x..x.........",
	"..x..x....x..x..",
	"..x.....x.......",
	"......x...x...x.",
	".x..............",
	"..x..x....x.....",
}

func layouts(all map[string][]byte) error {
	for _, f := range load.Formats() {
		if f.Name == formats.DenseFormat.Name {
			continue // nothing to see
		}
		e, err := encoded(f)
		if err != nil {
			return fmt.Errorf("format %s: %w", f.Name, err)
		}
		all["format-"+f.Name+".svg"] = layout(e)
	}
	return nil
}

// encoded is the matrix in a format, in f32 if it can be.
func encoded(f formats.Format) (formats.Encoded, error) {
	a := entries()
	e, err := f.Encode(a, defaults(f))
	if err != nil {
		return f.Encode(formats.Convert[half.F16](a), defaults(f))
	}
	return e, nil
}

// defaults are small, so that panels are seen.
func defaults(f formats.Format) map[string]int {
	o := map[string]int{}
	for _, x := range f.Options {
		o[x.Name] = x.Default
	}
	return o
}

// entries is the matrix whose values are 1, 2, 3…
func entries() *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: len(pattern), Cols: len(pattern[0]), RowPtr: []int64{0}}
	for _, line := range pattern {
		for j, x := range line {
			if x == 'x' {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, float32(len(a.Val)+1))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

const side = 14 // of a cell

// colour is a row's.
func colour(row int) string {
	return fmt.Sprintf("hsl(%d,70%%,%d%%)", row*360/len(pattern), 62+row%2*12)
}

func layout(e formats.Encoded) []byte {
	var c canvas
	a := entries()
	of := make([]int, a.NNZ()+1) // the row of entry number i
	c.words(0, 12, bold, fmt.Sprintf("%s: a %d×%d matrix of %d entries", e.Format(), a.Rows, a.Cols, a.NNZ()))
	for i := range a.Rows {
		for j := range a.Cols {
			c.box(j*side, 22+i*side, side, side, "#fff", "#ddd")
		}
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			of[p+1] = i
			c.box(int(a.ColIdx[p])*side, 22+i*side, side, side, colour(i), "#888")
		}
	}
	x, y := a.Cols*side+40, 22
	for _, array := range formats.NewContainer(e).Arrays {
		y = c.array(x, y, array, of)
	}
	return c.text()
}

// array draws one and returns where the next begins. Entries have their row's colour, other numbers are written out,
// and of long ones the beginning is shown.
func (c *canvas) array(x, y int, a formats.Array, of []int) int {
	v := reflect.ValueOf(a.Data)
	n := v.Len()
	kind := v.Type().Elem()
	c.words(x, y+11, bold, fmt.Sprintf("%s: %d × %d bytes", a.Name, n, kind.Size()))
	y += 18
	if !holdsEntries(v, len(of)-1) {
		c.words(x, y+10, small, listed(v))
		return y + 24
	}
	const across, most = 32, 256
	for i := range min(n, most) {
		fill := "#f3f3f3" // a place that holds nothing
		if k := int(number(v.Index(i))); k > 0 && k < len(of) {
			fill = colour(of[k])
		} else if !v.Index(i).IsZero() {
			fill = "#777" // something else
		}
		c.box(x+i%across*side, y+i/across*side, side, side, fill, "#bbb")
	}
	y += (min(n, most) + across - 1) / across * side
	if n > most {
		c.words(x, y+11, small, fmt.Sprintf("… the first %d", most))
		y += 14
	}
	return y + 10
}

// listed is the beginning of an array in hexadecimal.
func listed(v reflect.Value) string {
	text := ""
	for i := range v.Len() {
		next := fmt.Sprintf("%x ", v.Index(i).Interface())
		if len(text)+len(next) > 72 {
			return text + "…"
		}
		text += next
	}
	return text
}

// holdsEntries tells of arrays that hold most of the entries.
func holdsEntries(v reflect.Value, entries int) bool {
	found := 0
	for i := range v.Len() {
		if k := int(number(v.Index(i))); k > 0 && k <= entries {
			found++
		}
	}
	return found > entries/2
}

// number is an element as a value of A; words of 32 bits may be values or other things.
func number(v reflect.Value) float32 {
	switch x := v.Interface().(type) {
	case half.F16:
		return x.Float32()
	case float32:
		return x
	case uint32:
		if f := math.Float32frombits(x); f >= 1 && f == float32(int32(f)) {
			return f
		}
	}
	return 0
}
