// The format among the others: with an element type known at run time only, and in files.

package jigsaw

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/safetensors"
)

const (
	name    = "jigsaw"
	version = 1
)

// Container says how files hold matrices of this format: the arrays under their names in lower case.
var Container = safetensors.Format{
	Name: name, Version: version,
	Options: []safetensors.Option{
		{Name: "block-rows", Default: 64, Usage: "rows of a block (BLOCK_TILE)"},
		{Name: "span", Usage: "most positions between columns that are used together; 0: any"},
		{Name: "avoid-conflicts", Usage: "1: deal columns to different banks of shared memory"},
	},
	Encode: func(a formats.Sparse, o map[string]int) (safetensors.Encoded, error) {
		opt := Options{BlockTile: o["block-rows"], Span: o["span"], AvoidConflicts: o["avoid-conflicts"] != 0}
		switch a := a.(type) {
		case *formats.CSR[half.F16]:
			return Encode(a, opt)
		case *formats.CSR[half.BF16]:
			return Encode(a, opt)
		case *formats.CSR[float32]:
			return Encode(a, opt)
		}
		return nil, fmt.Errorf("jigsaw: cannot encode a %T", a)
	},
	Open: func(c *safetensors.Matrix) (safetensors.Encoded, error) {
		switch c.Type {
		case dtype.F16:
			return open[half.F16](c)
		case dtype.BF16:
			return open[half.BF16](c)
		}
		return open[float32](c)
	},
}

func open[T formats.Value](c *safetensors.Matrix) (*Matrix[T], error) {
	m := &Matrix[T]{BlockTile: c.Options["block-rows"], Span: c.Options["span"], Rows: c.Rows, Cols: c.Cols}
	return m, cmp.Or(
		safetensors.Array(c, "blockptr", &m.BlockPtr),
		safetensors.Array(c, "colidx", &m.ColIdx),
		safetensors.Array(c, "stepptr", &m.StepPtr),
		safetensors.Array(c, "blockcolidx", &m.BlockColIdx),
		safetensors.Array(c, "metadata", &m.Metadata),
		safetensors.Array(c, "values", &m.Values),
		safetensors.Array(c, "mask", &m.Mask),
		safetensors.Array(c, "order", &m.Order),
	)
}

// Container returns the matrix as a file holds it, sharing its arrays.
func (m *Matrix[T]) Container() *safetensors.Matrix {
	return &safetensors.Matrix{
		Format: name, Version: version, Type: m.Type(), Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Options: map[string]int{"block-rows": m.BlockTile, "span": m.Span},
		Tensors: []safetensors.Tensor{
			safetensors.NewTensor("blockptr", m.BlockPtr),
			safetensors.NewTensor("colidx", m.ColIdx),
			safetensors.NewTensor("stepptr", m.StepPtr),
			safetensors.NewTensor("blockcolidx", m.BlockColIdx),
			safetensors.NewTensor("metadata", m.Metadata),
			safetensors.NewTensor("values", m.Values),
			safetensors.NewTensor("mask", m.Mask),
			safetensors.NewTensor("order", m.Order),
		},
	}
}

// Format returns "jigsaw".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's size.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns what Decode does.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// Details returns figures of the reordering.
func (m *Matrix[T]) Details() []formats.Detail {
	r := m.Reordering()
	return []formats.Detail{
		{Name: "tiles", Value: float64(r.Tiles)}, {Name: "columns in a tile", Value: float64(r.Columns) / float64(max(1, r.Tiles))},
		{Name: "columns put back", Value: float64(r.Retried)}, {Name: "bank conflicts", Value: float64(r.Conflicts)},
	}
}
