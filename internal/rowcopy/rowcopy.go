// Package rowcopy copies rows of tensors on their device, as products on several ranks need.
//
// A List keeps numbers of rows on the device. Start checks the rows against the tensors, and starts the
// copy.
package rowcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
	kernel "github.com/spmmrun/spmm/shaders/rowcopy"
)

// List is numbers of rows, on a device.
type List struct {
	dev  *device.Device
	n    int
	most int32 // the largest
	buf  backend.Buffer
}

// NewList copies numbers of rows to the device.
func NewList(ctx context.Context, d *device.Device, rows []int32) (*List, error) {
	l := &List{dev: d, n: len(rows), most: -1}
	for _, i := range rows {
		if i < 0 {
			return nil, fmt.Errorf("a list of rows with number %d", i)
		}
		l.most = max(l.most, i)
	}
	b, err := d.NewBuffer(int64(4*len(rows)), "a list of rows")
	if err != nil {
		return nil, err
	}
	if l.buf = b; len(rows) > 0 {
		if err := b.Write(ctx, 0, backend.Bytes(rows)); err != nil {
			return nil, cmp.Or(err, b.Close())
		}
	}
	return l, nil
}

// Close frees the list.
func (l *List) Close() error { return l.buf.Close() }

// Rows says which rows are copied: those that From lists, or from row Src on, to those that To lists, or from row
// Dst on.
type Rows struct {
	Count    int   // rows, where nothing lists them
	From, To *List // one at most
	Src, Dst int
}

// Start starts the copy of rows of one tensor to another of as many columns and the same type.
func Start(ctx context.Context, d *device.Device, dst, src *tensor.Tensor, c Rows) (backend.Pending, error) {
	op, index, err := rowCopy(d, dst, src, c)
	if err != nil {
		return nil, fmt.Errorf("copying rows: %w", err)
	}
	for _, t := range []*tensor.Tensor{dst, src} {
		if err := t.Use(); err != nil {
			return nil, err
		}
		defer t.Release()
	}
	if op.Count == 0 || op.Bytes == 0 {
		return backend.Done(backend.Timing{}), nil
	}
	v, err := kernel.Variant(d.Caps())
	if err != nil {
		return nil, err
	}
	l, err := kernel.Launch(v, op)
	if err != nil {
		return nil, err
	}
	from := src.Block(0, 0)
	if index == nil {
		index = from
	}
	launches, err := launch.Passes(d, kernel.Program, []backend.Buffer{index, from, dst.Block(0, 0)}, l.Passes)
	if err != nil {
		return nil, err
	}
	return d.Start(ctx, launches...)
}

// rowCopy checks a copy, and describes it to the kernel.
func rowCopy(d *device.Device, dst, src *tensor.Tensor, c Rows) (kernel.Op, backend.Buffer, error) {
	for _, t := range []*tensor.Tensor{dst, src} {
		switch {
		case t == nil:
			return kernel.Op{}, nil, errors.New("a tensor is missing")
		case t.Device() != d:
			return kernel.Op{}, nil, errors.New("the tensors are not on this device")
		case t.ColMajor || t.RowBlocks() > 1 || t.ColBlocks() > 1 || t.BlockLayout(0, 0).Loose:
			return kernel.Op{}, nil, fmt.Errorf("a tensor of %d×%d is column-major, in blocks or not laid out as NewTensor does: %w", t.Rows, t.Cols, backend.ErrUnsupported)
		}
	}
	s, t := src.BlockLayout(0, 0), dst.BlockLayout(0, 0)
	if s.Cols != t.Cols || s.Type != t.Type || s.LD != t.LD || src == dst {
		return kernel.Op{}, nil, fmt.Errorf("from %d×%d of %v to %d×%d of %v: want two tensors of as many columns and one type", s.Rows, s.Cols, s.Type, t.Rows, t.Cols, t.Type)
	}
	op := kernel.Op{Count: c.Count, Bytes: s.LD * s.Type.Size(), Src: c.Src, Dst: c.Dst}
	var index backend.Buffer
	for i, l := range []*List{c.From, c.To} {
		if l == nil {
			continue
		}
		if index != nil || l.dev != d {
			return op, nil, errors.New("one list of rows at most, and on this device")
		}
		op.Count, index = l.n, l.buf
		op.Where = []kernel.Where{kernel.OfSrc, kernel.OfDst}[i]
	}
	reach := func(l *List, first int) int {
		if l != nil {
			return first + int(l.most) + 1
		}
		return first + op.Count
	}
	if c.Src < 0 || c.Dst < 0 || op.Count < 0 || max(c.Src, c.Dst, op.Count) > math.MaxInt32 ||
		reach(c.From, c.Src) > s.Rows || reach(c.To, c.Dst) > t.Rows {
		return op, nil, fmt.Errorf("%d rows from row %d of %d on to row %d of %d on: outside a tensor", op.Count, c.Src,
			s.Rows, c.Dst, t.Rows)
	}
	return op, index, nil
}
