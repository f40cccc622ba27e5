// Copying rows of tensors on their device, and the ranges of a tensor's columns, for products on several ranks.

package plan

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/rowcopy"
	"github.com/spmmrun/spmm/shaders/spec"
)

// RowList is numbers of rows, on a device.
type RowList struct {
	dev  *Device
	n    int
	most int32 // the largest
	buf  backend.Buffer
}

// NewRowList copies numbers of rows to the device.
func (d *Device) NewRowList(ctx context.Context, rows []int32) (*RowList, error) {
	l := &RowList{dev: d, n: len(rows), most: -1}
	for _, i := range rows {
		if i < 0 {
			return nil, fmt.Errorf("a list of rows with number %d", i)
		}
		l.most = max(l.most, i)
	}
	b, err := d.alloc(int64(4*len(rows)), "a list of rows")
	if err != nil {
		return nil, err
	}
	if l.buf = b; len(rows) > 0 {
		if err := b.Write(ctx, 0, backend.Bytes(rows)); err != nil {
			return nil, firstOf(err, b.Close())
		}
	}
	return l, nil
}

// Close frees the list.
func (l *RowList) Close() error { return l.buf.Close() }

// RowCopy says which rows are copied: those that From lists, or from row Src on, to those that To lists, or from row
// Dst on.
type RowCopy struct {
	Count    int      // rows, where nothing lists them
	From, To *RowList // one at most
	Src, Dst int
}

// CopyRows starts the copy of rows of one tensor to another of as many columns and the same type.
func (d *Device) CopyRows(ctx context.Context, dst, src *Tensor, c RowCopy) (backend.Pending, error) {
	op, index, err := d.rowCopy(dst, src, c)
	if err != nil {
		return nil, fmt.Errorf("copying rows: %w", err)
	}
	for _, t := range []*Tensor{dst, src} {
		if err := t.use(); err != nil {
			return nil, err
		}
		defer t.release()
	}
	if op.Count == 0 || op.Bytes == 0 {
		return backend.Done(backend.Timing{}), nil
	}
	v, err := rowcopy.Variant(d.Caps())
	if err != nil {
		return nil, err
	}
	l, err := rowcopy.Launch(v, op)
	if err != nil {
		return nil, err
	}
	from := src.block(0, 0)
	if index == nil {
		index = from
	}
	launches, err := d.launchesOf(rowcopy.Program, []backend.Buffer{index, from, dst.block(0, 0)}, l.Passes)
	if err != nil {
		return nil, err
	}
	return d.Start(ctx, launches...)
}

// rowCopy checks a copy, and describes it to the kernel.
func (d *Device) rowCopy(dst, src *Tensor, c RowCopy) (rowcopy.Op, backend.Buffer, error) {
	for _, t := range []*Tensor{dst, src} {
		switch {
		case t == nil:
			return rowcopy.Op{}, nil, errors.New("a tensor is missing")
		case t.dev != d:
			return rowcopy.Op{}, nil, errors.New("the tensors are not on this device")
		case t.ColMajor || t.rowBlocks() > 1 || t.colBlocks() > 1 || t.blockLayout(0, 0).loose:
			return rowcopy.Op{}, nil, fmt.Errorf("a tensor of %d×%d is column-major, in blocks or not laid out as NewTensor does: %w", t.Rows, t.Cols, backend.ErrUnsupported)
		}
	}
	s, t := src.blockLayout(0, 0), dst.blockLayout(0, 0)
	if s.cols != t.cols || s.typ != t.typ || s.ld != t.ld || src == dst {
		return rowcopy.Op{}, nil, fmt.Errorf("from %d×%d of %v to %d×%d of %v: want two tensors of as many columns and one type", s.rows, s.cols, s.typ, t.rows, t.cols, t.typ)
	}
	op := rowcopy.Op{Count: c.Count, Bytes: s.ld * s.typ.Size(), Src: c.Src, Dst: c.Dst}
	var index backend.Buffer
	for i, l := range []*RowList{c.From, c.To} {
		if l == nil {
			continue
		}
		if index != nil || l.dev != d {
			return op, nil, errors.New("one list of rows at most, and on this device")
		}
		op.Count, index = l.n, l.buf
		op.Where = []rowcopy.Where{rowcopy.OfSrc, rowcopy.OfDst}[i]
	}
	reach := func(l *RowList, first int) int {
		if l != nil {
			return first + int(l.most) + 1
		}
		return first + op.Count
	}
	if c.Src < 0 || c.Dst < 0 || op.Count < 0 || max(c.Src, c.Dst, op.Count) > math.MaxInt32 ||
		reach(c.From, c.Src) > s.rows || reach(c.To, c.Dst) > t.rows {
		return op, nil, fmt.Errorf("%d rows from row %d of %d on to row %d of %d on: outside a tensor", op.Count, c.Src,
			s.rows, c.Dst, t.rows)
	}
	return op, index, nil
}

// launchesOf returns the launches of a kernel's passes.
func (d *Device) launchesOf(k *spec.Program, args []backend.Buffer, passes []spec.Pass) ([]backend.Launch, error) {
	w := composer{l: &launcher{dev: d}}
	err := w.add(k, args, passes...)
	return w.launches, err
}

// ColumnRanges returns the range of each column of a row-major tensor, found on the device.
func (d *Device) ColumnRanges(ctx context.Context, t *Tensor) ([]rfx.Range, error) {
	if t == nil || t.dev != d || t.ColMajor || t.rowBlocks() > 1 || t.colBlocks() > 1 || t.blockLayout(0, 0).loose {
		return nil, fmt.Errorf("ranges of columns: want a row-major tensor in one block on %v: %w", d.Info(),
			backend.ErrUnsupported)
	}
	if err := t.use(); err != nil {
		return nil, err
	}
	defer t.release()
	cols := make([]rfx.Range, t.Cols)
	if t.Rows == 0 || t.Cols == 0 {
		return cols, nil
	}
	v, err := quantise.Variant(d.Caps())
	if err != nil {
		return nil, err
	}
	from := t.blockLayout(0, 0)
	q := quantise.NewLayout(from.rows, from.cols, rfx.P23)
	l, err := quantise.Launch(v, q, from.typ, from.ld)
	if err != nil {
		return nil, err
	}
	parts, err := d.alloc(int64(4*q.First()), "ranges of columns")
	if err != nil {
		return nil, err
	}
	defer parts.Close()
	launches, err := d.launchesOf(quantise.Program, []backend.Buffer{t.block(0, 0), parts}, l.Passes[:1])
	if err != nil {
		return nil, err
	}
	if _, err := d.Run(ctx, launches...); err != nil {
		return nil, err
	}
	words := make([]rfx.Range, q.First())
	if err := parts.Read(ctx, 0, backend.Bytes(words)); err != nil {
		return nil, err
	}
	for c := 1; c <= q.Chunks; c++ {
		for j := range cols {
			cols[j] = cols[j].Join(words[c*q.LD+j])
		}
	}
	return cols, nil
}

// Device returns what the tensor is on.
func (t *Tensor) Device() *Device { return t.dev }

// Memory returns the buffer of a row-major tensor in one block, and the bytes from row to row. It is valid until Close.
func (t *Tensor) Memory() (backend.Buffer, int, error) {
	if t.ColMajor || t.rowBlocks() > 1 || t.colBlocks() > 1 || t.of != nil {
		return nil, 0, fmt.Errorf("memory of a tensor of %d×%d: it is column-major or in blocks: %w", t.Rows, t.Cols,
			backend.ErrUnsupported)
	}
	if err := t.use(); err != nil {
		return nil, 0, err
	}
	defer t.release()
	l := t.blockLayout(0, 0)
	return t.block(0, 0), l.ld * l.typ.Size(), nil
}
