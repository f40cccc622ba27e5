// The format among the others: with an element type known at run time only, and in files.

package nm

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/safetensors"
)

const (
	name    = "nm"
	version = 1
)

// Container says how files hold matrices of this format: the arrays under their names in lower case. Without
// n and m, Encode finds the pattern.
var Container = safetensors.Format{
	Name: name, Version: version,
	Options: []safetensors.Option{
		{Name: "n", Usage: "units of a group that hold entries; 0: found from the matrix"},
		{Name: "m", Usage: "units of a group; 0: found from the matrix"},
		{Name: "v", Usage: "rows of a unit; 0: found, or 1 where n and m are given"},
		{Name: "w", Usage: "columns of a unit; 0: found, or 1 where n and m are given"},
	},
	Encode: func(a formats.Sparse, o map[string]int) (safetensors.Encoded, error) {
		p := Pattern{N: o["n"], M: o["m"], V: o["v"], W: o["w"]}
		switch a := a.(type) {
		case *formats.CSR[half.F16]:
			return encode(a, p)
		case *formats.CSR[half.BF16]:
			return encode(a, p)
		case *formats.CSR[float32]:
			return encode(a, p)
		}
		return nil, fmt.Errorf("nm: cannot encode a %T", a)
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

// encode is Encode with a pattern of which what is 0 is to be found.
func encode[T formats.Value](a *formats.CSR[T], p Pattern) (*Matrix[T], error) {
	if p.N == 0 && p.M == 0 {
		var err error
		if p, err = Detect(a, Search{V: p.V, W: p.W}); err != nil {
			return nil, err
		}
	}
	if p.N == 0 || p.M == 0 {
		return nil, fmt.Errorf("nm: n=%d with m=%d: give both, or neither to have the pattern found", p.N, p.M)
	}
	p.V, p.W = max(1, p.V), max(1, p.W)
	return Encode(a, p)
}

func open[T formats.Value](c *safetensors.Matrix) (*Matrix[T], error) {
	p := Pattern{N: c.Options["n"], M: c.Options["m"], V: c.Options["v"], W: c.Options["w"]}
	m := &Matrix[T]{Pattern: p, Rows: c.Rows, Cols: c.Cols}
	return m, cmp.Or(
		safetensors.Array(c, "values", &m.Values),
		safetensors.Array(c, "index", &m.Index),
		safetensors.Array(c, "mask", &m.Mask),
	)
}

// Container returns the matrix as a file holds it, sharing its arrays.
func (m *Matrix[T]) Container() *safetensors.Matrix {
	return &safetensors.Matrix{
		Format: name, Version: version, Type: m.Type(), Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Options: map[string]int{"n": m.N, "m": m.M, "v": m.V, "w": m.W},
		Tensors: []safetensors.Tensor{
			safetensors.NewTensor("values", m.Values),
			safetensors.NewTensor("index", m.Index),
			safetensors.NewTensor("mask", m.Mask),
		},
	}
}

// Format returns "nm".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's size.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns what Decode does.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }
