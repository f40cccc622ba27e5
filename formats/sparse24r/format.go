// The format among the others: with an element type known at run time only, and in files.

package sparse24r

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
)

const name = "sparse24r"

// Format describes the format. It has no options.
var Format = formats.Format{
	Name: name,
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], _ map[string]int) (formats.Encoded, error) {
	return Encode(a)
}

// Fields names the arrays of both parts.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Arrays: []formats.Field{
			formats.NewField("values", &m.Pairs.Values),
			formats.NewField("index", &m.Pairs.Index),
			formats.NewField("mask", &m.Pairs.Mask),
			formats.NewField("remainderptr", &m.Remainder.VecPtr),
			formats.NewField("remaindercols", &m.Remainder.ColInd),
			formats.NewField("remaindervalues", &m.Remainder.Values),
			formats.NewField("remaindermask", &m.Remainder.Mask),
			formats.NewField("remainderorder", &m.Remainder.Order),
		},
		Derive: func() {
			m.Pairs.Rows, m.Pairs.Cols, m.Pairs.Pattern = m.Rows, m.Cols, nm.Sparse24
			m.Remainder.Rows, m.Remainder.Cols, m.Remainder.V, m.Remainder.Align = m.Rows, m.Cols, PanelRows, PanelRows
		},
	}
}

// Format returns "sparse24r".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns 1: rows share what is fetched for the remainder only.
func (m *Matrix[T]) PanelRows() int { return 1 }

// PanelCols appends to dst the columns that Pairs keeps for row p, which may lie past the matrix in the last group, and
// those of its panel in the remainder.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	dst = m.Pairs.PanelCols(dst, p)
	return m.Remainder.PanelCols(dst, p/PanelRows)
}
