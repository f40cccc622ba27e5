// Sparse tensors, which share their values.

package gorgonia

import (
	"fmt"

	"gorgonia.org/tensor"

	"github.com/spmmrun/spmm/formats"
)

// FromCS returns a matrix that shares t's values and can be prepared: a *formats.CSR, or a *formats.CSC where t is
// compressed by columns. The error is that of a tensor with other elements, without a shape, or whose offsets and
// indices are no valid matrix's: the indices of a row must ascend.
func FromCS[T Float](t *tensor.CS) (formats.Encoded, error) {
	shape := t.Shape()
	if len(shape) != 2 {
		return nil, fmt.Errorf("a sparse tensor of shape %v: want two axes, as tensor.WithShape gives it", shape)
	}
	values, err := elements[T](t.Data())
	if err != nil {
		return nil, err
	}
	rows, cols, byColumns := shape[0], shape[1], t.DataOrder().IsColMajor()
	if byColumns {
		rows, cols = cols, rows
	}
	if rows > formats.MaxDim || cols > formats.MaxDim {
		return nil, fmt.Errorf("a sparse tensor of shape %v: at most %d rows and columns are possible", shape, formats.MaxDim)
	}
	a := &formats.CSR[T]{Rows: rows, Cols: cols, Val: values}
	if a.RowPtr, err = taken[int64](t.Indptr(), len(values)); err != nil {
		return nil, fmt.Errorf("an offset %w", err)
	}
	if a.ColIdx, err = taken[int32](t.Indices(), cols-1); err != nil {
		return nil, fmt.Errorf("an index %w", err)
	}
	if !byColumns {
		return a, a.Validate()
	}
	c := &formats.CSC[T]{Rows: cols, Cols: rows, ColPtr: a.RowPtr, RowIdx: a.ColIdx, Val: a.Val}
	return c, c.Validate()
}

// taken converts numbers from 0 to most, and gives their memory back to gorgonia, which lent it.
func taken[I int32 | int64](from []int, most int) ([]I, error) {
	defer tensor.ReturnInts(from)
	to := make([]I, len(from))
	for i, x := range from {
		if x < 0 || x > most {
			return nil, fmt.Errorf("of %d: want 0 to %d", x, most)
		}
		to[i] = I(x)
	}
	return to, nil
}

// ToCSR returns a tensor that shares a's values. The error is that of an a that is not valid.
func ToCSR[T Float](a *formats.CSR[T]) (*tensor.CS, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return tensor.NewCSR(ints(a.ColIdx), ints(a.RowPtr), a.Val, tensor.WithShape(a.Rows, a.Cols)), nil
}

// ToCSC returns a tensor that shares a's values. The error is that of an a that is not valid.
func ToCSC[T Float](a *formats.CSC[T]) (*tensor.CS, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return tensor.NewCSC(ints(a.RowIdx), ints(a.ColPtr), a.Val, tensor.WithShape(a.Rows, a.Cols)), nil
}

func ints[I int32 | int64](from []I) []int {
	to := make([]int, len(from))
	for i, x := range from {
		to[i] = int(x)
	}
	return to
}
