// The format as a formats.Format: with an element type that is known only at run time, and in files.

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
		{Name: "splits", Default: 1, Usage: "streams of 64 rows, one for each warp that multiplies them"},
		{Name: "segment-steps", Default: 0, Usage: "steps of 32 columns that are read together: 1, 2, 4, or 0, by density"},
		{Name: "ring-rows", Default: 0, Usage: "rows of values that a reader has room for, 0: 113"},
		{Name: "window", Default: 0, Usage: "segments that a step may read from: 2, 3, or 0, by density"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	return Encode(a, Options{Layout: o["layout"], Splits: o["splits"], SegmentSteps: o["segment-steps"],
		Window: o["window"], RingRows: o["ring-rows"]})
}

// Fields returns the arrays under their names in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"layout": &m.Layout, "splits": &m.Splits, "segment-steps": &m.SegmentSteps,
			"window": &m.Window},
		Arrays: []formats.Field{
			formats.NewField("streamptr", &m.StreamPtr),
			formats.NewField("segmentrows", &m.SegmentRows),
			formats.NewField("mask", &m.Mask),
			formats.NewField("values", &m.Values),
			formats.NewField("stored", &m.Stored),
			formats.NewField("remainderptr", &m.RemainderPtr),
			formats.NewField("remaindercol", &m.RemainderCol),
		},
	}
}

// Format returns "lanestream".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns 64.
func (m *Matrix[T]) PanelRows() int { return GroupRows }

// PanelCols appends to dst the columns whose rows of B group p fetches: all of them, and those of its COO remainder
// again.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	for c := range m.Cols {
		dst = append(dst, uint32(c))
	}
	for i := p * GroupRows; i < min(m.Rows, (p+1)*GroupRows); i++ {
		cols, _ := m.Remainder(i)
		dst = append(dst, cols...)
	}
	return dst
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 {
	return int64(len(m.RemainderCol)) + slots.Stored(m.Stored)
}

// Stats returns the format's costs: every place (for Pairs every slot) is multiplied, and each group fetches all of B.
func (m *Matrix[T]) Stats() formats.Stats {
	words := len(m.StreamPtr) + len(m.SegmentRows) + len(m.Mask) + len(m.Stored) + len(m.RemainderPtr) +
		len(m.RemainderCol)
	places := int64(m.Groups()*m.Segments()*m.SegmentSteps) * GroupRows * StepCols
	if m.Layout == Pairs {
		places /= 2
	}
	s := slots.Stats(m.Values, words, 0, m.NNZ())
	s.MACs = places + int64(len(m.RemainderCol))
	s.Gathers = int64(m.Groups())*int64(m.Cols) + int64(len(m.RemainderCol))
	return s
}

// Details returns the number of rows of values, which shows their padding, and the size of the COO remainder.
func (m *Matrix[T]) Details() []formats.Detail {
	return []formats.Detail{
		{Name: "rows of values", Value: float64(m.Slots() / Chains)},
		{Name: "entries in the COO remainder", Value: float64(len(m.RemainderCol))},
	}
}
