// Dense matrices that stay on a device.

package spmm

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan"
)

// Tensor is a dense matrix on a device. Its contents are undefined until it is uploaded to or
// multiplied into. Close it to free the device's memory.
type Tensor[T formats.Value] struct{ m *plan.Matrix }

// Operand is a Tensor of any element type.
type Operand interface {
	Dims() (rows, cols int)
	Type() dtype.Type
	matrix() *plan.Matrix
}

// NewTensor allocates a rows × cols matrix in row- or column-major order. Row-major tensors of A's
// type (for B) and of float32 (for C) are multiplied as they lie; others cost a pass over the data on
// the device.
func NewTensor[T formats.Value](dev *Device, rows, cols int, colMajor bool) (*Tensor[T], error) {
	return newTensor[T](dev.d, plan.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T](), ColMajor: colMajor})
}

func newTensor[T formats.Value](d *plan.Device, s plan.Shape) (*Tensor[T], error) {
	m, err := d.NewMatrix(s)
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{m}, nil
}

// TensorsFor allocates B (K×n) and C (M×n) for a plan, row-major, in blocks that fit together where
// they are too large for the device to bind whole.
func TensorsFor[B, C formats.Value](p *Plan, n int) (*Tensor[B], *Tensor[C], error) {
	bs, cs, err := p.p.Shapes(n, formats.TypeOf[B](), false, formats.TypeOf[C](), false)
	if err != nil {
		return nil, nil, err
	}
	b, err := newTensor[B](p.p.Device(), bs)
	if err != nil {
		return nil, nil, err
	}
	c, err := newTensor[C](p.p.Device(), cs)
	if err != nil {
		b.Close()
		return nil, nil, err
	}
	return b, c, nil
}

// Dims returns the matrix's size.
func (t *Tensor[T]) Dims() (rows, cols int) { return t.m.Rows, t.m.Cols }

// Type returns the element type.
func (t *Tensor[T]) Type() dtype.Type { return t.m.Type }

func (t *Tensor[T]) matrix() *plan.Matrix { return t.m }

// Upload copies a matrix of the same size to the device. Where its order is not the tensor's, it is
// transposed on the host first.
func (t *Tensor[T]) Upload(ctx context.Context, d *formats.Dense[T]) error {
	if err := t.fits(d); err != nil {
		return err
	}
	if d.ColMajor != t.m.ColMajor {
		d = d.Layout(t.m.ColMajor, 0)
	}
	h, err := host(d, "to upload")
	if err != nil {
		return err
	}
	return t.m.Write(ctx, h.Host)
}

// Download copies the tensor into a matrix of the same size and order, leaving its padding alone.
func (t *Tensor[T]) Download(ctx context.Context, d *formats.Dense[T]) error {
	if err := t.fits(d); err != nil {
		return err
	}
	if d.ColMajor != t.m.ColMajor {
		return fmt.Errorf("the tensor is %s-major, the matrix to download into is not", order(t.m.ColMajor))
	}
	h, err := host(d, "to download into")
	if err != nil {
		return err
	}
	return t.m.Read(ctx, h.Host)
}

func (t *Tensor[T]) fits(d *formats.Dense[T]) error {
	if d.Rows != t.m.Rows || d.Cols != t.m.Cols {
		return fmt.Errorf("shapes do not fit: the tensor is %d×%d, the matrix %d×%d", t.m.Rows, t.m.Cols, d.Rows, d.Cols)
	}
	return nil
}

func order(colMajor bool) string {
	if colMajor {
		return "column"
	}
	return "row"
}

// Close frees the tensor. A second call does nothing. Plans that multiplied with it forget it in time.
func (t *Tensor[T]) Close() error { return t.m.Close() }
