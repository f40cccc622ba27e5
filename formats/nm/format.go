// The format among the others: with an element type known at run time only, and in files.

package nm

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const name = "nm"

// Format describes the format. Files hold its arrays under their names in lower case. Without n and m, Encode finds the
// pattern.
var Format = formats.Format{
	Name: name,
	Options: []formats.Option{
		{Name: "n", Usage: "units of a group that hold entries; 0: found from the matrix"},
		{Name: "m", Usage: "units of a group; 0: found from the matrix"},
		{Name: "v", Usage: "rows of a unit; 0: found, or 1 where n and m are given"},
		{Name: "w", Usage: "columns of a unit; 0: found, or 1 where n and m are given"},
	},
	Pack: formats.ByType(encode[half.F16], encode[half.BF16], encode[float32]),
	New:  formats.NewOf[Matrix[half.F16], Matrix[half.BF16], Matrix[float32]],
}

func encode[T formats.Value](a *formats.CSR[T], o map[string]int) (formats.Encoded, error) {
	p := Pattern{N: o["n"], M: o["m"], V: o["v"], W: o["w"]}
	if p.N == 0 && p.M == 0 {
		return encodeFound(a, Search{V: p.V, W: p.W})
	}
	if p.N == 0 || p.M == 0 {
		return nil, fmt.Errorf("nm: n=%d with m=%d: give both, or neither to have the pattern found", p.N, p.M)
	}
	p.V, p.W = max(1, p.V), max(1, p.W)
	return Encode(a, p)
}

// encodeFound encodes a in the pattern found for it. Entries that fill too little of all others may be taken as
// 2:4, as kernels for sparse tensor cores do.
func encodeFound[T formats.Value](a *formats.CSR[T], s Search) (formats.Encoded, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	p, err := Fit(a, s, nil)
	if err == nil {
		return Encode(a, p)
	}
	if s.V <= 1 && s.W <= 1 && Fills24(a) == nil {
		if m, err := Encode(a, Sparse24); err == nil {
			return m, nil
		}
	}
	return nil, err
}

// Fields returns the arrays under their names in lower case.
func (m *Matrix[T]) Fields() formats.Fields {
	return formats.Fields{
		Version: 1, Rows: &m.Rows, Cols: &m.Cols,
		Options: map[string]*int{"n": &m.N, "m": &m.M, "v": &m.V, "w": &m.W},
		Arrays: []formats.Field{
			formats.NewField("values", &m.Values),
			formats.NewField("index", &m.Index),
			formats.NewField("mask", &m.Mask),
		},
	}
}

// Format returns "nm".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's numbers of rows and columns.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns the result of Decode.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// PanelRows returns V.
func (m *Matrix[T]) PanelRows() int { return m.V }

// PanelCols appends to dst the columns that panel p keeps. In the last group they may be past the matrix.
func (m *Matrix[T]) PanelCols(dst []uint32, p int) []uint32 {
	for _, c := range m.Kept(p) {
		dst = append(dst, uint32(c))
	}
	return dst
}
