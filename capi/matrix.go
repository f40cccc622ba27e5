// Matrices as C programs give them.

package main

/*
#include "entry.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// typeOf returns an element type of matrices.
func typeOf(t C.int32_t) (dtype.Type, error) {
	switch t {
	case C.SPMM_F16:
		return dtype.F16, nil
	case C.SPMM_BF16:
		return dtype.BF16, nil
	case C.SPMM_F32:
		return dtype.F32, nil
	case C.SPMM_F64:
		return dtype.F64, nil
	}
	return dtype.Invalid, fmt.Errorf("element type %d: want SPMM_F16, SPMM_BF16, SPMM_F32 or SPMM_F64", t)
}

// optionsOf returns Go's options.
func optionsOf(o *C.spmm_options) (out spmm.Options, err error) {
	if o == nil {
		return out, nil
	}
	switch o.precision {
	case C.SPMM_DEFAULT:
	case C.SPMM_TF32:
		out.Precision = dtype.TF32
	default:
		if out.Precision, err = typeOf(o.precision); err != nil {
			return out, fmt.Errorf("the precision: %w", err)
		}
	}
	switch o.quantise {
	case C.SPMM_DEFAULT:
	case C.SPMM_S8:
		out.Quantise = dtype.S8
	case C.SPMM_E4M3:
		out.Quantise = dtype.E4M3
	default:
		return out, fmt.Errorf("values to quantise to type %d: want SPMM_S8 or SPMM_E4M3", o.quantise)
	}
	if o.reserved != 0 {
		return out, errors.New("a reserved field of the options is not 0")
	}
	if out.From, err = placementOf(o.from); err != nil {
		return out, err
	}
	if o.split < 0 || o.split > C.SPMM_SPLIT_ROWS {
		return out, fmt.Errorf("split %d: want SPMM_SPLIT_AUTO, SPMM_SPLIT_COLUMNS or SPMM_SPLIT_ROWS", o.split)
	}
	out.Split = [...]spmm.Split{spmm.AutoSplit, spmm.ByColumns, spmm.ByRows}[o.split]
	out.Cols, out.Memory, out.Uses = int(o.n), int64(o.memory), int(o.uses)
	out.Transpose, out.Right, out.Tune = o.transpose != 0, o.right != 0, o.tune != 0
	if o.format != nil {
		out.Format = C.GoString(o.format)
	}
	if o.variant != nil {
		out.Variant = C.GoString(o.variant)
	}
	if o.reproducible != 0 {
		out.Mode, out.P = spmm.Reproducible, int(o.reproducible)
	}
	return out, nil
}

// placementOf returns where B lies on several devices.
func placementOf(p C.int32_t) (spmm.Placement, error) {
	switch {
	case p < 0:
		return 0, fmt.Errorf("B from %d: want SPMM_IN_PLACE, SPMM_REPLICATED, SPMM_IN_COLUMNS, SPMM_IN_ROWS or SPMM_AT + i",
			p)
	case p >= C.SPMM_AT:
		return spmm.On(int(p - C.SPMM_AT)), nil
	}
	return [...]spmm.Placement{spmm.InPlace, spmm.Replicated, spmm.InColumns, spmm.InRows}[p], nil
}

// csrOf returns a sparse matrix, in memory of the program's while it prepares, or copied from the device's.
func csrOf(d *spmm.Device, a *C.spmm_csr) (formats.Encoded, error) {
	if a == nil {
		return nil, errMissing
	}
	for _, n := range []C.int64_t{a.rows, a.cols, a.nnz} {
		if n < 0 || n > math.MaxInt64/16 || (n > math.MaxInt32 && n != a.nnz) {
			return nil, fmt.Errorf("a matrix of %d×%d with %d entries: rows and columns are 0 to 2³¹−1", a.rows, a.cols, a.nnz)
		}
	}
	if a.in_device != 0 {
		var err error
		if a, err = fromDevice(d, *a); err != nil {
			return nil, err
		}
	}
	switch a._type {
	case C.SPMM_F16:
		return sparse[half.F16](a)
	case C.SPMM_BF16:
		return sparse[half.BF16](a)
	case C.SPMM_F32:
		return sparse[float32](a)
	case C.SPMM_F64:
		return sparse[float64](a)
	}
	_, err := typeOf(a._type)
	return nil, err
}

// fromDevice returns a matrix with its arrays copied to memory of Go's.
func fromDevice(d *spmm.Device, a C.spmm_csr) (*C.spmm_csr, error) {
	t, err := typeOf(a._type)
	if err != nil {
		return nil, err
	}
	lines := a.rows
	if a.by_columns != 0 {
		lines = a.cols
	}
	for _, x := range []struct {
		at   *unsafe.Pointer
		n    C.int64_t
		size int
		what string
	}{
		{&a.row_ptr, lines + 1, indexSize(a.row_ptr_type), "offsets"},
		{&a.col_idx, a.nnz, indexSize(a.col_idx_type), "indices"},
		{&a.values, a.nnz, t.Size(), "values"},
	} {
		if x.n == 0 || *x.at == nil {
			continue
		}
		words := make([]uint64, (int(x.n)*x.size+7)/8)
		to := unsafe.Pointer(&words[0])
		if err := spmm.ReadMemory(current(), d, uintptr(*x.at), bytesAt(to, int(x.n)*x.size)); err != nil {
			return nil, fmt.Errorf("the %s: %w", x.what, err)
		}
		*x.at = to
	}
	return &a, nil
}

// indexSize returns the bytes of an index; indices refuses other types.
func indexSize(t C.int32_t) int {
	if t == C.SPMM_I32 {
		return 4
	}
	return 8
}

func sparse[T formats.Value](a *C.spmm_csr) (formats.Encoded, error) {
	lines := a.rows
	if a.by_columns != 0 {
		lines = a.cols
	}
	ptr, err := indices[int64](a.row_ptr, int64(lines)+1, a.row_ptr_type, "offset")
	if err != nil {
		return nil, err
	}
	idx, err := indices[int32](a.col_idx, int64(a.nnz), a.col_idx_type, "index")
	if err != nil {
		return nil, err
	}
	if a.nnz > 0 && a.values == nil {
		return nil, errors.New("the values are NULL")
	}
	if last := ptr[lines]; last != int64(a.nnz) {
		return nil, fmt.Errorf("the last offset is %d, and there are %d entries: they must be equal", last, a.nnz)
	}
	var val []T
	if a.nnz > 0 {
		val = unsafe.Slice((*T)(a.values), a.nnz)
	}
	rows, cols := int(a.rows), int(a.cols)
	switch {
	case a.unsorted != 0 && a.by_columns != 0:
		return nil, errors.New("columns that are not sorted: give a matrix that is unsorted by rows")
	case a.unsorted != 0: // NewCSR takes the arrays over
		return formats.NewCSR(rows, cols, slices.Clone(ptr), slices.Clone(idx), slices.Clone(val), formats.SumDuplicates)
	case a.by_columns != 0:
		return &formats.CSC[T]{Rows: rows, Cols: cols, ColPtr: ptr, RowIdx: idx, Val: val}, nil
	}
	return &formats.CSR[T]{Rows: rows, Cols: cols, RowPtr: ptr, ColIdx: idx, Val: val}, nil
}

// indices returns n integers of 32 or 64 bits as D: the program's memory if it has that type.
func indices[D int32 | int64](p unsafe.Pointer, n int64, t C.int32_t, what string) ([]D, error) {
	switch {
	case t != C.SPMM_I32 && t != C.SPMM_I64:
		return nil, fmt.Errorf("%s type %d: want SPMM_I32 or SPMM_I64", what, t)
	case n == 0:
		return nil, nil
	case p == nil:
		return nil, fmt.Errorf("the array of each %s is NULL", what)
	case (t == C.SPMM_I32) == (unsafe.Sizeof(D(0)) == 4):
		return unsafe.Slice((*D)(p), n), nil
	case t == C.SPMM_I32:
		return converted[D](unsafe.Slice((*int32)(p), n), what)
	}
	return converted[D](unsafe.Slice((*int64)(p), n), what)
}

func converted[D, S int32 | int64](s []S, what string) ([]D, error) {
	d := make([]D, len(s))
	for i, v := range s {
		if d[i] = D(v); S(d[i]) != v {
			return nil, fmt.Errorf("%s %d of entry %d: at most 2³¹−1 is possible", what, v, i)
		}
	}
	return d, nil
}

// bytesOf describes a dense matrix of the host.
func bytesOf(d *C.spmm_dense, rows, cols int) (spmm.Bytes, error) {
	if d == nil {
		return spmm.Bytes{}, errMissing
	}
	t, err := typeOf(d._type)
	if err != nil {
		return spmm.Bytes{}, err
	}
	b := spmm.Bytes{Rows: rows, Cols: cols, LD: int(d.ld), ColMajor: d.column_major != 0, Type: t}
	lines, width := rows, cols
	if b.ColMajor {
		lines, width = cols, rows
	}
	switch {
	case rows < 0 || cols < 0:
		return b, fmt.Errorf("a matrix of %d×%d: sizes must be 0 or more", rows, cols)
	case lines == 0 || width == 0:
		b.LD = max(b.LD, width)
		return b, nil
	case b.LD < width:
		return b, fmt.Errorf("a leading dimension of %d: at least %d is needed", b.LD, width)
	case b.LD > math.MaxInt64/16/lines:
		return b, fmt.Errorf("a matrix of %d lines that are %d elements apart has no addresses", lines, b.LD)
	case d.data == nil:
		return b, fmt.Errorf("the data of a matrix of %d×%d are NULL", rows, cols)
	case uintptr(d.data)%uintptr(t.Size()) != 0:
		return b, fmt.Errorf("a matrix of %v at %#x: want a multiple of %d", t, uintptr(d.data), t.Size())
	}
	b.Data = bytesAt(d.data, ((lines-1)*b.LD+width)*t.Size())
	return b, nil
}

// denseOf returns a dense matrix to prepare, as CSR without its zeros if they are dropped.
func denseOf(b spmm.Bytes, dropZeros bool) formats.Encoded {
	switch b.Type {
	case dtype.F16:
		return encoded[half.F16](b, dropZeros)
	case dtype.BF16:
		return encoded[half.BF16](b, dropZeros)
	case dtype.F64:
		return encoded[float64](b, dropZeros)
	}
	return encoded[float32](b, dropZeros)
}

func encoded[T formats.Value](b spmm.Bytes, dropZeros bool) formats.Encoded {
	d := &formats.Dense[T]{Rows: b.Rows, Cols: b.Cols, LD: b.LD, ColMajor: b.ColMajor}
	if n := len(b.Data) / b.Type.Size(); n > 0 {
		d.Data = unsafe.Slice((*T)(unsafe.Pointer(&b.Data[0])), n)
	}
	if dropZeros {
		return d.ToCSR()
	}
	return d
}
