// Dense tensors, which share their elements.

package gorgonia

import (
	"fmt"

	"gorgonia.org/tensor"

	"github.com/spmmrun/spmm/formats"
)

// Float has the element types that both sides have.
type Float interface{ float32 | float64 }

// FromDense returns a matrix that shares t's elements. It is row-major or column-major as t's strides are. A vector of
// n elements is n×1. The error is that of a tensor with other elements, of more than two axes, with a mask, in memory
// that Go cannot read, or without a stride of 1.
func FromDense[T Float](t *tensor.Dense) (*formats.Dense[T], error) {
	if !t.IsNativelyAccessible() {
		return nil, fmt.Errorf("a tensor in memory that Go cannot read: want one of the engine tensor.StdEng")
	}
	if t.IsMasked() {
		return nil, fmt.Errorf("a tensor with a mask: want one without")
	}
	data, err := elements[T](t.Data())
	if err != nil {
		return nil, err
	}
	rows, cols, down, right, err := layout(t)
	if err != nil {
		return nil, err
	}
	d := &formats.Dense[T]{Rows: rows, Cols: cols, Data: data}
	switch {
	case (right == 1 || cols == 1) && (down >= cols || rows == 1):
		d.LD = max(cols, down)
	case (down == 1 || rows == 1) && (right >= rows || cols == 1):
		d.ColMajor, d.LD = true, max(rows, right)
	default:
		return nil, fmt.Errorf("a %d×%d tensor with strides %d and %d: want 1 for one of them", rows, cols, down, right)
	}
	return d, d.Validate()
}

// elements returns the elements of a tensor, whose Data gives a slice, or the number that a scalar is.
func elements[T Float](data any) ([]T, error) {
	v, is := data.([]T)
	if !is {
		return nil, fmt.Errorf("a tensor whose data are %T: want %T", data, v)
	}
	return v, nil
}

// layout returns the size of a matrix or a vector, and how far apart in memory are elements one below, and one to the
// right of the other.
func layout(t *tensor.Dense) (rows, cols, down, right int, err error) {
	shape, strides := t.Shape(), t.Strides()
	switch {
	case len(shape) == 2 && len(strides) == 2:
		return shape[0], shape[1], strides[0], strides[1], nil
	case len(shape) == 2 && len(strides) == 1 && shape[0] == 1: // a row that was cut out
		return 1, shape[1], shape[1] * strides[0], strides[0], nil
	case len(shape) == 2 && len(strides) == 1 && shape[1] == 1: // a column that was cut out
		return shape[0], 1, strides[0], 1, nil
	case len(shape) == 1 && len(strides) == 1:
		return shape[0], 1, strides[0], 1, nil
	}
	return 0, 0, 0, 0, fmt.Errorf("a tensor of shape %v with strides %v: want one or two axes", shape, strides)
}

// ToDense returns a tensor that shares d's elements, with d's order and stride. A single row or column whose elements
// are not next to each other becomes a vector. The error is that of a d that is not valid or has no elements, which
// gorgonia has no tensors for, or of one with a stride whose Data has no room for the last line's padding: Layout makes
// a copy without a stride.
func ToDense[T Float](d *formats.Dense[T]) (*tensor.Dense, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	if d.Rows == 0 || d.Cols == 0 {
		return nil, fmt.Errorf("a %d×%d matrix: want one with elements", d.Rows, d.Cols)
	}
	lines, width := d.Rows, d.Cols
	shape := func(n int) []int { return []int{d.Rows, n} }
	var options []tensor.ConsOpt
	if d.ColMajor {
		lines, width = d.Cols, d.Rows
		shape = func(n int) []int { return []int{n, d.Cols} }
		options = append(options, tensor.AsFortran(nil))
	}
	ld := d.LD
	if lines == 1 {
		ld = width
	}
	if lines*ld > cap(d.Data) {
		return nil, fmt.Errorf("a %d×%d matrix with %d elements in memory: want %d, with leading dimension %d", d.Rows,
			d.Cols, cap(d.Data), lines*ld, ld)
	}
	options = append([]tensor.ConsOpt{tensor.WithShape(shape(ld)...)}, options...)
	t := tensor.New(append(options, tensor.WithBacking(d.Data[:lines*ld]))...)
	if ld == width {
		return t, nil
	}
	ranges := []tensor.Slice{nil, tensor.S(0, width)}
	if d.ColMajor {
		ranges = []tensor.Slice{tensor.S(0, width), nil}
	}
	view, err := t.Slice(ranges...)
	if err != nil {
		return nil, err
	}
	return view.(*tensor.Dense), nil
}
