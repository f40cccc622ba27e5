// Dense matrices as encoded ones: format "dense", which stores every element.

package formats

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/par"
)

const denseName = "dense"

// densePanel is the number of rows that kernels multiply together.
const densePanel = 64

// ErrNotFull is wrapped by the error of DenseFormat for a sparse matrix that does not store every element.
var ErrNotFull = errors.New("a dense matrix stores every element")

// DenseFormat describes format "dense", as *Dense[T] holds it. It encodes only sparse matrices that store every
// element, zero or not: others are ErrNotFull. Files hold the rows one after the other.
var DenseFormat = Format{
	Name: denseName,
	Pack: ByType64(packDense[half.F16], packDense[half.BF16], packDense[float32], packDense[float64]),
	New:  NewOf64[Dense[half.F16], Dense[half.BF16], Dense[float32], Dense[float64]],
}

func packDense[T Value](a *CSR[T], _ map[string]int) (Encoded, error) {
	d, err := a.Full()
	if err != nil {
		return nil, err
	}
	return d.clone(), nil
}

// Full returns a matrix that stores every element as a dense matrix in row-major order, which shares its values. For
// any other matrix the error wraps ErrNotFull and names the first row that lacks an element.
func (a *CSR[T]) Full() (*Dense[T], error) {
	if err := a.checkShape(); err != nil {
		return nil, err
	}
	for i := range a.Rows {
		if n := a.RowPtr[i+1] - a.RowPtr[i]; n != int64(a.Cols) {
			return nil, fmt.Errorf("row %d stores %d of %d elements: %w", i, n, a.Cols, ErrNotFull)
		}
		if err := a.checkRow(i); err != nil {
			return nil, err
		}
	}
	return &Dense[T]{Rows: a.Rows, Cols: a.Cols, LD: a.Cols, Data: a.Val}, nil
}

// DenseTo is ConvertDense for an element type that is known at run time: F16, BF16, F32 or F64; TF32 means F32. It
// returns the matrix itself if that has the type already, or another format.
func DenseTo(a Encoded, t dtype.Type) Encoded {
	if a.Format() != denseName || a.Type() == t.Storage() {
		return a
	}
	switch a := a.(type) {
	case *Dense[half.F16]:
		return denseTo(a, t)
	case *Dense[half.BF16]:
		return denseTo(a, t)
	case *Dense[float32]:
		return denseTo(a, t)
	case *Dense[float64]:
		return denseTo(a, t)
	}
	return a
}

func denseTo[T Value](d *Dense[T], t dtype.Type) Encoded {
	switch t.Storage() {
	case dtype.F16:
		return ConvertDense[half.F16](d)
	case dtype.BF16:
		return ConvertDense[half.BF16](d)
	case dtype.F64:
		return ConvertDense[float64](d)
	}
	return ConvertDense[float32](d)
}

// Format returns "dense".
func (d *Dense[T]) Format() string { return denseName }

// Dims returns the matrix's numbers of rows and columns.
func (d *Dense[T]) Dims() (rows, cols int) { return d.Rows, d.Cols }

// NNZ returns the number of elements.
func (d *Dense[T]) NNZ() int64 { return int64(d.Rows) * int64(d.Cols) }

// Type returns the element type.
func (d *Dense[T]) Type() dtype.Type { return TypeOf[T]() }

// Sparse returns the CSR matrix that stores every element of d. It shares d's elements if d is row-major without
// padding. ToCSR leaves zeros out.
func (d *Dense[T]) Sparse() Sparse {
	d = d.Compact()
	a := &CSR[T]{Rows: d.Rows, Cols: d.Cols, RowPtr: make([]int64, d.Rows+1), ColIdx: make([]int32, len(d.Data)),
		Val: d.Data}
	for i := range a.RowPtr {
		a.RowPtr[i] = int64(i) * int64(d.Cols)
	}
	par.Range(d.Rows, grain/max(1, d.Cols), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range d.Cols {
				a.ColIdx[i*d.Cols+j] = int32(j)
			}
		}
	})
	return a
}

// Compact returns d in row-major order without padding: d itself if it is so, else a copy.
func (d *Dense[T]) Compact() *Dense[T] {
	if d.ColMajor || d.LD != d.Cols {
		d = d.Layout(false, 0)
	}
	return &Dense[T]{Rows: d.Rows, Cols: d.Cols, LD: d.LD, Data: d.Data[:d.Rows*d.Cols]}
}

// Transpose returns dᵀ, which is a view of d in the other order.
func (d *Dense[T]) Transpose() *Dense[T] {
	return &Dense[T]{Rows: d.Cols, Cols: d.Rows, LD: d.LD, ColMajor: !d.ColMajor, Data: d.Data}
}

func (d *Dense[T]) transposed() Encoded { return d.Transpose() }

func (d *Dense[T]) clone() Encoded {
	c := *d
	c.Data = slices.Clone(d.Data)
	return &c
}

// WithValues returns a row-major matrix of d's size with these elements, whose memory it shares. There must be NNZ
// values.
func (d *Dense[T]) WithValues(values []T) Encoded {
	return &Dense[T]{Rows: d.Rows, Cols: d.Cols, LD: d.Cols, Data: values}
}

// WithoutValues returns a matrix of d's size without elements. The result is not valid; it is only for WithValues.
func (d *Dense[T]) WithoutValues() Encoded { return d.WithValues(nil) }

// Fields names the array: "values", the elements row by row. It is a copy if d has another layout.
func (d *Dense[T]) Fields() Fields {
	if d.ColMajor || d.LD != d.Cols || len(d.Data) != d.Rows*d.Cols {
		d = d.Compact()
	}
	return Fields{
		Version: 1, Rows: &d.Rows, Cols: &d.Cols,
		Arrays: []Field{NewField("values", &d.Data)},
		Derive: func() { d.LD = d.Cols },
	}
}

// PanelRows returns the number of rows that kernels multiply together.
func (d *Dense[T]) PanelRows() int { return densePanel }

// PanelCols appends all columns to dst.
func (d *Dense[T]) PanelCols(dst []uint32, p int) []uint32 {
	dst = slices.Grow(dst, d.Cols)
	for j := range d.Cols {
		dst = append(dst, uint32(j))
	}
	return dst
}
