// The format among the others: with an element type known at run time only, and in files.

package jigsaw

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const name = "jigsaw"

// Format describes the format. Files hold its arrays under their names in lower case.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "block-rows", Default: 64, Usage: "rows of a block (BLOCK_TILE)"},
		{Name: "span", Usage: "most positions between columns that are used together; 0: any"},
		{Name: "avoid-conflicts", Usage: "1: deal columns to different banks of shared memory"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	return Encode(a, Options{BlockTile: o["block-rows"], Span: o["span"], AvoidConflicts: o["avoid-conflicts"] != 0})
}

// Fields returns the arrays under their names in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"block-rows": &m.BlockTile, "span": &m.Span},
		Arrays: []formats.Field{
			formats.NewField("blockptr", &m.BlockPtr),
			formats.NewField("colidx", &m.ColIdx),
			formats.NewField("stepptr", &m.StepPtr),
			formats.NewField("blockcolidx", &m.BlockColIdx),
			formats.NewField("metadata", &m.Metadata),
			formats.NewField("values", &m.Values),
			formats.NewField("mask", &m.Mask),
			formats.NewField("order", &m.Order),
		},
	}
}

// Format returns "jigsaw".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns BlockTile: a panel is a block.
func (m *Matrix[T]) PanelRows() int { return m.BlockTile }

// PanelCols appends to dst the columns of block p.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	return append(dst, m.ColIdx[m.BlockPtr[p]:m.BlockPtr[p+1]]...)
}

// Details returns figures of the reordering.
func (m *Matrix[T]) Details() []formats.Detail {
	r := m.Reordering()
	return []formats.Detail{
		{Name: "tiles", Value: float64(r.Tiles)},
		{Name: "columns in a tile", Value: float64(r.Columns) / float64(max(1, r.Tiles))},
		{Name: "columns put back", Value: float64(r.Retried)}, {Name: "bank conflicts", Value: float64(r.Conflicts)},
	}
}
