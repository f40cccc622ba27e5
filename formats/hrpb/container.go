// The format among the others: with an element type known at run time only, and in files.

package hrpb

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/safetensors"
)

const (
	name    = "hrpb"
	version = 1
)

// Container says how files hold matrices of this format: the arrays under their names in lower case, but
// for the work list, which is made anew for the device that multiplies.
var Container = safetensors.Format{
	Name: name, Version: version,
	Options: []safetensors.Option{
		{Name: "block-cols", Default: 16, Usage: "active columns of a block"},
	},
	Encode: func(a formats.Sparse, o map[string]int) (safetensors.Encoded, error) {
		opt := Options{BlockCols: o["block-cols"]}
		switch a := a.(type) {
		case *formats.CSR[half.F16]:
			return Encode(a, opt)
		case *formats.CSR[half.BF16]:
			return Encode(a, opt)
		case *formats.CSR[float32]:
			return Encode(a, opt)
		}
		return nil, fmt.Errorf("hrpb: cannot encode a %T", a)
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
	m := &Matrix[T]{BlockCols: c.Options["block-cols"], Rows: c.Rows, Cols: c.Cols}
	err := cmp.Or(
		safetensors.Array(c, "blockptr", &m.BlockPtr),
		safetensors.Array(c, "active", &m.Active),
		safetensors.Array(c, "sizeptr", &m.SizePtr),
		safetensors.Array(c, "packed", &m.Packed),
	)
	if err == nil && len(m.BlockPtr) > 0 {
		m.Parts, m.Splits = WorkList(m.BlockPtr, 0, 0)
	}
	return m, err
}

// Container returns the matrix as a file holds it, sharing its arrays.
func (m *Matrix[T]) Container() *safetensors.Matrix {
	return &safetensors.Matrix{
		Format: name, Version: version, Type: m.Type(), Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(),
		Options: map[string]int{"block-cols": m.BlockCols},
		Tensors: []safetensors.Tensor{
			safetensors.NewTensor("blockptr", m.BlockPtr),
			safetensors.NewTensor("active", m.Active),
			safetensors.NewTensor("sizeptr", m.SizePtr),
			safetensors.NewTensor("packed", m.Packed),
		},
	}
}

// Format returns "hrpb".
func (m *Matrix[T]) Format() string { return name }

// Dims returns the matrix's size.
func (m *Matrix[T]) Dims() (rows, cols int) { return m.Rows, m.Cols }

// Type returns the element type.
func (m *Matrix[T]) Type() dtype.Type { return formats.TypeOf[T]() }

// Sparse returns what Decode does.
func (m *Matrix[T]) Sparse() formats.Sparse { return m.Decode() }

// For returns the matrix with its panels shared out among so many workers, as Options.Workers does. It
// shares the arrays.
func (m *Matrix[T]) For(workers int) *Matrix[T] {
	out := *m
	out.PartBlocks, out.TeamBlocks = 0, 0
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
