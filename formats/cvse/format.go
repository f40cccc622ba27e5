// The format among the others: with an element type known at run time only, and in files.

package cvse

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const name = "cvse"

// Format describes the format. Files hold its arrays under their names in lower case.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "v", Default: 8, Usage: "rows of a panel"},
		{Name: "align", Default: 1, Usage: "vectors that panels are padded to a multiple of"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	return Encode(a, Options{V: o["v"], Align: o["align"]})
}

// Fields returns the arrays under their names in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"v": &m.V, "align": &m.Align},
		Arrays: []formats.Field{
			formats.NewField("vecptr", &m.VecPtr),
			formats.NewField("colind", &m.ColInd),
			formats.NewField("values", &m.Values),
			formats.NewField("mask", &m.Mask),
			formats.NewField("order", &m.Order),
		},
	}
}

// Format returns "cvse".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns V.
func (m *Matrix[T]) PanelRows() int { return m.V }

// PanelCols appends to dst the columns of panel p, one for each vector, padding included.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	return append(dst, m.ColInd[m.VecPtr[p]:m.VecPtr[p+1]]...)
}
