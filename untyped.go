// Forms of calls whose element types are values, for programs that learn them at run time.

package spmm

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// Bytes is a dense matrix in the host's memory: element (i, j) of Type, which is F16, BF16, F32 or F64, is at byte
// (i·LD + j)·size of Data, or (j·LD + i)·size if it is column-major. Data begins at a multiple of the size.
type Bytes struct {
	Rows, Cols int
	Type       dtype.Type
	Data       []byte
	LD         int
	ColMajor   bool
}

// dense checks a matrix and describes it to package plan.
func (b Bytes) dense(name string) (tensor.Dense, error) {
	switch b.Type {
	case dtype.F16:
		return hostBytes[half.F16](b, name)
	case dtype.BF16:
		return hostBytes[half.BF16](b, name)
	case dtype.F32:
		return hostBytes[float32](b, name)
	case dtype.F64:
		return hostBytes[float64](b, name)
	}
	return tensor.Dense{}, fmt.Errorf("matrix %s: %w", name, errElements(b.Type))
}

func hostBytes[T formats.Value](b Bytes, name string) (tensor.Dense, error) {
	return host(&formats.Dense[T]{
		Rows: b.Rows, Cols: b.Cols, LD: b.LD, ColMajor: b.ColMajor, Data: backend.View[T](b.Data),
	}, name)
}

func errElements(t dtype.Type) error {
	return fmt.Errorf("elements of type %v: want f16, bf16, f32 or f64", t)
}

// MultiplyBytes is Multiply for element types that are values.
func MultiplyBytes(ctx context.Context, p *Plan, alpha float64, b Bytes, beta float64, c Bytes,
	e ...Epilogue) (Timing, error) {
	hb, err := b.dense("B")
	if err != nil {
		return Timing{}, err
	}
	hc, err := c.dense("C")
	if err != nil {
		return Timing{}, err
	}
	ep, err := epilogue(e)
	if err != nil {
		return Timing{}, err
	}
	return p.p.Multiply(ctx, alpha, hb, beta, hc, ep)
}

// SetValuesBytes is SetValues for NNZ values of a type that is a value.
func SetValuesBytes(ctx context.Context, p *Plan, t dtype.Type, v []byte) error {
	switch t {
	case dtype.F16, dtype.BF16, dtype.F32, dtype.F64:
		return p.p.SetHostValues(ctx, values.Host{Type: t, Data: v})
	}
	return errElements(t)
}

// NewTensorOf and TensorOverOf are NewTensor and TensorOver for an element type that is a value; CloseOperand
// closes the result.
func NewTensorOf(dev *Device, t dtype.Type, rows, cols int, colMajor bool) (Operand, error) {
	switch t {
	case dtype.F16:
		return operand(NewTensor[half.F16](dev, rows, cols, colMajor))
	case dtype.BF16:
		return operand(NewTensor[half.BF16](dev, rows, cols, colMajor))
	case dtype.F32:
		return operand(NewTensor[float32](dev, rows, cols, colMajor))
	case dtype.F64:
		return operand(NewTensor[float64](dev, rows, cols, colMajor))
	}
	return nil, errElements(t)
}

// TensorOverOf: see NewTensorOf.
func TensorOverOf(dev *Device, t dtype.Type, ptr uintptr, rows, cols, ld int, colMajor bool) (Operand, error) {
	switch t {
	case dtype.F16:
		return operand(TensorOver[half.F16](dev, ptr, rows, cols, ld, colMajor))
	case dtype.BF16:
		return operand(TensorOver[half.BF16](dev, ptr, rows, cols, ld, colMajor))
	case dtype.F32:
		return operand(TensorOver[float32](dev, ptr, rows, cols, ld, colMajor))
	case dtype.F64:
		return operand(TensorOver[float64](dev, ptr, rows, cols, ld, colMajor))
	}
	return nil, errElements(t)
}

// operand is a tensor as an Operand, none if there is an error.
func operand[T formats.Value](t *Tensor[T], err error) (Operand, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Transfer copies a matrix of the same size and type, in either order, to an operand on its device, or the operand to
// the matrix: Upload and Download for an element type that is a value.
func Transfer(ctx context.Context, o Operand, b Bytes, upload bool) error {
	t := tensorOf(o)
	if t == nil {
		return errors.New("the tensor is missing")
	}
	h, err := b.dense("to copy")
	if err != nil {
		return err
	}
	if s := t.Described(); s.Rows != b.Rows || s.Cols != b.Cols || s.Type != b.Type {
		return fmt.Errorf("shapes do not fit: the tensor is %d×%d of %v, the matrix %d×%d of %v", s.Rows, s.Cols, s.Type,
			b.Rows, b.Cols, b.Type)
	}
	if upload {
		return t.Write(ctx, h.Host)
	}
	return t.Read(ctx, h.Host)
}

// CloseOperand closes the tensor that an operand is.
func CloseOperand(o Operand) error {
	if t := tensorOf(o); t != nil {
		return t.Close()
	}
	return nil
}
