// The format among the others: with an element type known at run time only, and in files.

package hrpb

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const name = "hrpb"

// Format describes the format. Files hold its arrays under their names in lower case, but for the work list,
// which is made for the device that multiplies.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "block-cols", Default: 16, Usage: "active columns of a block"},
		{Name: "order", Default: 1, Usage: "1: rows that share columns may come to lie in one panel; 0: rows stay in their order"},
	},
	Pack: formats.ByType64(encode[half.F16], encode[half.BF16], encode[float32], encode[float64]),
	New:  formats.NewOf64[Matrix[half.F16], Matrix[half.BF16], Matrix[float32], Matrix[float64]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	if n := o["order"]; n != 0 && n != 1 {
		return nil, fmt.Errorf("hrpb: order %d: need 0 or 1", n)
	}
	return Encode(a, Options{BlockCols: o["block-cols"], Order: o["order"] == 1})
}

// Fields names the arrays, in lower case, and derives the work list.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 2, Oldest: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"block-cols": &m.BlockCols, "order": &m.Order},
		Arrays: []formats.Field{
			formats.NewField("blockptr", &m.BlockPtr),
			formats.NewField("active", &m.Active),
			formats.NewField("sizeptr", &m.SizePtr),
			formats.NewField("packed", &m.Packed),
			formats.NewField("rowidx", &m.RowIdx).Since(2),
		},
		Derive: func() {
			if len(m.BlockPtr) > 0 {
				m.Parts, m.Splits = WorkList(m.BlockPtr, m.PartBlocks, m.TeamBlocks)
			}
		},
	}
}

// Format returns "hrpb".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns 16.
func (m *Matrix[T]) PanelRows() int { return PanelRows }

// PanelCols appends to dst the active columns of panel p, padding included.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	return append(dst, m.Active[int(m.BlockPtr[p])*m.BlockCols:int(m.BlockPtr[p+1])*m.BlockCols]...)
}

// For returns the matrix with its heavy panels divided among workers, as with Options.Workers. It shares the arrays.
func (m *Matrix[T]) For(workers int) *Matrix[T] {
	out := *m
	out.PartBlocks, out.TeamBlocks, out.StripWork = 0, 0, nil
	out.share(workers)
	out.Parts, out.Splits = WorkList(out.BlockPtr, out.PartBlocks, out.TeamBlocks)
	return &out
}

// Details returns the paper's figures.
func (m *Matrix[T]) Details() []formats.Detail {
	s := m.Stats()
	return []formats.Detail{
		{Name: "TCU synergy", Value: s.Alpha}, {Name: "operational intensity", Value: s.Intensity},
		{Name: "bricks", Value: float64(s.Bricks)}, {Name: "blocks of the heaviest panel", Value: float64(s.Heaviest)},
	}
}
