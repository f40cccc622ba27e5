// The format among the others: with an element type known at run time only, and in files.

package tiledcsr

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const name = "tiledcsr"

// Format describes the format. Files hold its arrays under their names in lower case.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "height", Default: 8, Usage: "rows of a group"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	return Encode(a, Options{Height: o["height"]})
}

// Fields returns the arrays under their names in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"height": &m.Height},
		Arrays: []formats.Field{
			formats.NewField("rowidx", &m.RowIdx),
			formats.NewField("tileptr", &m.TilePtr),
			formats.NewField("colidx", &m.ColIdx),
			formats.NewField("values", &m.Values),
			formats.NewField("mask", &m.Mask),
		},
	}
}

// Format returns "tiledcsr".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns Height: a panel is a group.
func (m *Matrix[T]) PanelRows() int { return m.Height }

// PanelCols appends to dst the columns of group p, padding included.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	return append(dst, m.ColIdx[TileCols*m.TilePtr[p]:TileCols*m.TilePtr[p+1]]...)
}
