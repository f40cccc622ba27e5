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
//
// Its methods may be called from any goroutine, and one tensor may be an operand of several plans at once. Reading
// it at the same time is safe; where one call writes it (Upload, or Run with it as C) while another reads or writes
// it, nothing breaks, but which contents are seen is undefined.
type Tensor[T formats.Value] struct{ t *plan.Tensor }

// Operand is a Tensor of any element type.
type Operand interface {
	Dims() (rows, cols int)
	Type() dtype.Type
	tensor() *plan.Tensor
}

// NewTensor allocates a rows × cols matrix in row- or column-major order. Row-major tensors of A's
// type (for B) and of float32 (for C) are multiplied as they lie; others cost a pass over the data on
// the device. A tensor that exceeds the device's memory is ErrOutOfMemory, one that exceeds what it binds as one
// buffer ErrUnsupported (see TensorsFor); both before anything is allocated.
func NewTensor[T formats.Value](dev *Device, rows, cols int, colMajor bool) (*Tensor[T], error) {
	d, err := dev.device()
	if err != nil {
		return nil, err
	}
	t, err := d.NewTensor(plan.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T](), ColMajor: colMajor})
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{t}, nil
}

// TensorsFor allocates B (K×n) and C (M×n) for a plan, or with Options.Right B (n×K) and C (n×M), row-major, in blocks
// that fit together where they are too large for the device to bind whole. Rows of NewTensor's matrices are multiples of eight elements apart;
// where the plan's kernel takes few columns without such gaps (vectors above all), those of TensorsFor have none. Other plans take
// them at the cost of a pass over the data. What exceeds the device's memory is
// ErrOutOfMemory, before anything is allocated.
func TensorsFor[B, C formats.Value](p *Plan, n int) (*Tensor[B], *Tensor[C], error) {
	b, c, err := p.p.Shapes(n, formats.TypeOf[B](), false, formats.TypeOf[C](), false)
	if err != nil {
		return nil, nil, err
	}
	ts, err := p.p.Device().NewTensors(b, c)
	if err != nil {
		return nil, nil, err
	}
	return &Tensor[B]{ts[0]}, &Tensor[C]{ts[1]}, nil
}

// Dims returns the matrix's size.
func (t *Tensor[T]) Dims() (rows, cols int) { return t.t.Rows, t.t.Cols }

// Type returns the element type.
func (t *Tensor[T]) Type() dtype.Type { return t.t.Type }

func (t *Tensor[T]) tensor() *plan.Tensor {
	if t == nil {
		return nil
	}
	return t.t
}

// tensorOf returns an operand's tensor, nil if there is none.
func tensorOf(o Operand) *plan.Tensor {
	if o == nil {
		return nil
	}
	return o.tensor()
}

// Upload copies a matrix of the same size, in either order, to the device.
func (t *Tensor[T]) Upload(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Shape, "to upload")
	if err != nil {
		return err
	}
	return t.t.Write(ctx, h)
}

// Download copies the tensor into a matrix of the same size, in either order, leaving its padding alone.
func (t *Tensor[T]) Download(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Shape, "to download into")
	if err != nil {
		return err
	}
	return t.t.Read(ctx, h)
}

// hostOf describes a dense matrix of the host that a tensor of shape s is copied from or to.
func hostOf[T formats.Value](d *formats.Dense[T], s plan.Shape, name string) (plan.Host, error) {
	h, err := host(d, name)
	if err == nil && (d.Rows != s.Rows || d.Cols != s.Cols) {
		err = fmt.Errorf("shapes do not fit: the tensor is %d×%d, the matrix %d×%d", s.Rows, s.Cols, d.Rows, d.Cols)
	}
	return h.Host, err
}

// Close frees the tensor. It waits for calls that use the tensor; later ones fail. A second call does nothing.
func (t *Tensor[T]) Close() error { return t.t.Close() }
