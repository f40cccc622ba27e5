// The format among the others: with an element type known at run time only, and in files.

package lanestream

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

const name = "lanestream"

// Format describes the format. Files hold its arrays under their names in lower case.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "layout", Default: 0, Usage: "0: a bit for each place; 1: two slots for each four columns of a row; 2: by density"},
		{Name: "parts", Default: 1, Usage: "streams of 64 rows, one for each warp that multiplies them"},
		{Name: "piece-steps", Default: 0, Usage: "steps of 32 columns that are read together: 1, 2, 4, or 0, by density"},
		{Name: "ring-rows", Default: 0, Usage: "rows of values that a reader has room for, 0: 113"},
		{Name: "window", Default: 0, Usage: "segments that a step may read from: 2, 3, or 0, by density"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	return Encode(a, Options{Layout: o["layout"], Parts: o["parts"], PieceSteps: o["piece-steps"], Window: o["window"],
		RingRows: o["ring-rows"]})
}

// Fields names the arrays, in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"layout": &m.Layout, "parts": &m.Parts, "piece-steps": &m.PieceSteps, "window": &m.Window},
		Arrays: []formats.Field{
			formats.NewField("streamptr", &m.StreamPtr),
			formats.NewField("piecerows", &m.PieceRows),
			formats.NewField("mask", &m.Mask),
			formats.NewField("values", &m.Values),
			formats.NewField("stored", &m.Stored),
			formats.NewField("restptr", &m.RestPtr),
			formats.NewField("restcol", &m.RestCol),
		},
	}
}

// Format returns "lanestream".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's size.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns what Decode does.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns 64.
func (m *Matrix[T]) PanelRows() int { return GroupRows }

// PanelCols appends all columns to dst, which a group's steps fetch, and those of the COO remainder of group p.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	for c := range m.Cols {
		dst = append(dst, uint32(c))
	}
	for i := p * GroupRows; i < min(m.Rows, (p+1)*GroupRows); i++ {
		cols, _ := m.Rest(i)
		dst = append(dst, cols...)
	}
	return dst
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 {
	return int64(len(m.RestCol)) + slots.Stored(m.Stored)
}

// Stats tells what the format costs: every place is multiplied, or every slot, and each group fetches all of B.
func (m *Matrix[T]) Stats() formats.Stats {
	words := len(m.StreamPtr) + len(m.PieceRows) + len(m.Mask) + len(m.Stored) + len(m.RestPtr) + len(m.RestCol)
	places := int64(m.Groups()*m.Pieces()*m.PieceSteps) * GroupRows * StepCols
	if m.Layout == Pairs {
		places /= 2
	}
	s := slots.Stats(m.Values, words, 0, m.NNZ())
	s.MACs = places + int64(len(m.RestCol))
	s.Gathers = int64(m.Groups())*int64(m.Cols) + int64(len(m.RestCol))
	return s
}

// Details tells what the values' padding and the COO remainder come to.
func (m *Matrix[T]) Details() []formats.Detail {
	return []formats.Detail{
		{Name: "rows of values", Value: float64(m.Slots() / Chains)},
		{Name: "entries in the COO remainder", Value: float64(len(m.RestCol))},
	}
}
