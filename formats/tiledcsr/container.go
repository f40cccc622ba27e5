// The format among the others: with an element type known at run time only, and in files.

package tiledcsr

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/safetensors"
)

const (
	name    = "tiledcsr"
	version = 1
)

// Container says how files hold matrices of this format: the arrays under their names in lower case.
var Container = safetensors.Format{
	Name: name, Version: version,
	Options: []safetensors.Option{
		{Name: "height", Default: 8, Usage: "rows of a group"},
	},
	Encode: func(a formats.Sparse, o map[string]int) (safetensors.Encoded, error) {
		opt := Options{Height: o["height"]}
		switch a := a.(type) {
		case *formats.CSR[half.F16]:
			return Encode(a, opt)
		case *formats.CSR[half.BF16]:
			return Encode(a, opt)
		case *formats.CSR[float32]:
			return Encode(a, opt)
		}
		return nil, fmt.Errorf("tiledcsr: cannot encode a %T", a)
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
	m := &Matrix[T]{Height: c.Options["height"], Rows: c.Rows, Cols: c.Cols}
	return m, cmp.Or(
		safetensors.Array(c, "rowidx", &m.RowIdx),
		safetensors.Array(c, "tileptr", &m.TilePtr),
		safetensors.Array(c, "colidx", &m.ColIdx),
		safetensors.Array(c, "values", &m.Values),
		safetensors.Array(c, "mask", &m.Mask),
	)
}

// Container returns the matrix as a file holds it, sharing its arrays.
func (m *Matrix[T]) Container() *safetensors.Matrix {
	return &safetensors.Matrix{
		Format: name, Version: version, Type: m.Type(), Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Options: map[string]int{"height": m.Height},
		Tensors: []safetensors.Tensor{
			safetensors.NewTensor("rowidx", m.RowIdx),
			safetensors.NewTensor("tileptr", m.TilePtr),
			safetensors.NewTensor("colidx", m.ColIdx),
			safetensors.NewTensor("values", m.Values),
			safetensors.NewTensor("mask", m.Mask),
		},
	}
}

// Format returns "tiledcsr".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's size.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns what Decode does.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }
