// Rows of tensors: copying them on the device, and what programs that exchange them with others need.

package spmm

import (
	"context"
	"errors"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

var errMissing = errors.New("a tensor is missing")

// RowList is numbers of rows in a device's memory, for CopyRows. Close it to free the memory.
type RowList struct{ l *plan.RowList }

// NewRowList copies numbers of rows, from 0 on, to a device.
func NewRowList(ctx context.Context, dev *Device, rows []int32) (*RowList, error) {
	d, err := dev.alone("NewRowList")
	if err != nil {
		return nil, err
	}
	l, err := plan.NewRowList(ctx, d, rows)
	if err != nil {
		return nil, err
	}
	return &RowList{l}, nil
}

// Close frees the list, when what was started with it is done. A second call does nothing.
func (l *RowList) Close() error { return l.l.Close() }

// RowCopy says which rows CopyRows copies: those that From lists, or those that follow each other from row Src on, to those
// that To lists, or from row Dst on.
type RowCopy struct {
	Count    int      // rows, where nothing lists them
	From, To *RowList // one at most; numbers count from Src or Dst
	Src, Dst int
}

// CopyRows starts to copy rows of src to dst, two row-major tensors, as NewTensor makes them, of as many columns and of one type on one device, each
// in one block, under the rules of Plan.Start. A list To that names a row twice leaves either's contents there.
func CopyRows(ctx context.Context, dst, src Operand, c RowCopy) (*Pending, error) {
	t, err := oneTensor(dst)
	if err != nil {
		return nil, err
	}
	from, err := oneTensor(src)
	if err != nil {
		return nil, err
	}
	o := plan.RowCopy{Count: c.Count, Src: c.Src, Dst: c.Dst}
	if c.From != nil {
		o.From = c.From.l
	}
	if c.To != nil {
		o.To = c.To.l
	}
	p, err := plan.CopyRows(ctx, t.Device(), t, from, o)
	if err != nil {
		return nil, err
	}
	return &Pending{plan.Began(p)}, nil
}

// ColumnRanges returns the range of each column of a row-major tensor in one block (package rfx), by which reproducible mode
// quantises it. The device finds them.
func ColumnRanges(ctx context.Context, o Operand) ([]rfx.Range, error) {
	t, err := oneTensor(o)
	if err != nil {
		return nil, err
	}
	return plan.ColumnRanges(ctx, t.Device(), t)
}

// oneTensor returns the tensor of one device that an operand is.
func oneTensor(o Operand) (*tensor.Tensor, error) {
	t, err := plan.OneTensor(tensorOf(o))
	if err == nil && t == nil {
		err = errMissing
	}
	return t, err
}

// Memory returns the buffer that a row-major tensor in one block lies in, and the bytes from the start of a row to the next:
// for programs that use package backend, or exchange it with other devices. It is valid until Close of the tensor.
func (t *Tensor[T]) Memory() (b backend.Buffer, pitch int, err error) {
	one, err := oneTensor(t)
	if err != nil {
		return nil, 0, err
	}
	return one.Memory()
}

// Backend returns the device as package backend has it; of several, the first. It stays the Device's: closing it is Close's.
func (d *Device) Backend() backend.Device { return d.first().Device }
