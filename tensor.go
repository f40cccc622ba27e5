// Dense matrices that stay on a device.

package spmm

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Tensor is a dense matrix on a device, or on several. Its contents are undefined until it is uploaded to or
// multiplied into. Close it to free the device's memory.
//
// On several devices it is row-major, and lies where its Placement says. Products take it wherever it lies; where that
// is not where the plan's split needs it, it is moved: from device to device where these can, else through the host's
// memory.
//
// Its methods may be called from any goroutine, and one tensor may be an operand of several plans at once. Reading
// it at the same time is safe; where one call writes it (Upload, or Run with it as C) while another reads or writes
// it, nothing breaks, but which contents are seen is undefined.
type Tensor[T formats.Value] struct{ t many.Operand }

// Operand is a Tensor of any element type.
type Operand interface {
	Dims() (rows, cols int)
	Type() dtype.Type
	tensor() many.Operand
}

// NewTensor allocates a rows × cols matrix in row- or column-major order. Row-major tensors of A's
// type (for B) and of float32 (for C) are multiplied as they lie; others cost a pass over the data on
// the device. A tensor that exceeds the device's memory is ErrOutOfMemory, one that exceeds what it binds as one
// buffer ErrUnsupported (see TensorsFor); both before anything is allocated. On several devices it is Replicated, which
// serves a bias and what any plan may need; TensorsFor and NewTensorAt make tensors in parts. Column-major is
// ErrUnsupported there.
func NewTensor[T formats.Value](dev *Device, rows, cols int, colMajor bool) (*Tensor[T], error) {
	if dev == nil {
		return nil, errNoDevice
	}
	s := tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T](), ColMajor: colMajor}
	if dev.d == nil {
		return tensorFrom[T](many.NewReplicated(dev.all(), s))
	}
	return tensorFrom[T](tensor.New(dev.d, s))
}

// tensorFrom is the Tensor of what was allocated, unless that is an error.
func tensorFrom[T formats.Value, O many.Operand](t O, err error) (*Tensor[T], error) {
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{t}, nil
}

// NewTensorAt allocates a rows × cols matrix on the devices of a plan, row-major: B, C, a bias, or what is copied to
// one of them. Parts are cut as the plan cuts B and C of that size. On one device each placement is all of the matrix.
func NewTensorAt[T formats.Value](p *Plan, rows, cols int, at Placement) (*Tensor[T], error) {
	return tensorFrom[T](p.p.NewTensor(tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T]()}, at))
}

// TensorsFor allocates B (K×n) and C (M×n) for a plan, or with Options.Right B (n×K) and C (n×M), row-major, where the
// plan's split needs them: by columns in columns both, by rows B on each device and C in rows (with Options.Right it is
// the other way round). They are in blocks that fit together where they are too large for the device to bind whole.
// Rows of NewTensor's matrices are multiples of eight elements apart; where the plan's kernel takes few columns without
// such gaps (vectors above all), those of TensorsFor have none. Other plans take them at the cost of a pass over the
// data. What exceeds the device's memory is ErrOutOfMemory, before anything is allocated.
func TensorsFor[B, C formats.Value](p *Plan, n int) (*Tensor[B], *Tensor[C], error) {
	b, c, err := p.p.TensorsFor(n, formats.TypeOf[B](), formats.TypeOf[C]())
	if err != nil {
		return nil, nil, err
	}
	return &Tensor[B]{b}, &Tensor[C]{c}, nil
}

// Dims returns the matrix's size.
func (t *Tensor[T]) Dims() (rows, cols int) {
	s := t.t.Described()
	return s.Rows, s.Cols
}

// Type returns the element type.
func (t *Tensor[T]) Type() dtype.Type { return t.t.Described().Type }

// Placement returns where the matrix lies on several devices; on one, it is On(0).
func (t *Tensor[T]) Placement() Placement { return many.Placed(t.t) }

func (t *Tensor[T]) tensor() many.Operand {
	if t == nil {
		return nil
	}
	return t.t
}

// tensorOf returns an operand's tensor, nil if there is none.
func tensorOf(o Operand) many.Operand {
	if o == nil {
		return nil
	}
	return o.tensor()
}

// Upload copies a matrix of the same size, in either order, to the device, or to all that have some of it, at once.
func (t *Tensor[T]) Upload(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Described(), "to upload")
	if err != nil {
		return err
	}
	return t.t.Write(ctx, h)
}

// Download copies the tensor into a matrix of the same size, in either order, leaving its padding alone.
func (t *Tensor[T]) Download(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Described(), "to download into")
	if err != nil {
		return err
	}
	return t.t.Read(ctx, h)
}

// Copy copies another tensor of the same size and order, wherever it lies on the same devices, and returns the bytes
// that went from one device to another.
func (t *Tensor[T]) Copy(ctx context.Context, src *Tensor[T]) (int64, error) {
	return many.Copy(ctx, t.t, src.tensor())
}

// hostOf describes a dense matrix of the host that a tensor of shape s is copied from or to.
func hostOf[T formats.Value](d *formats.Dense[T], s tensor.Shape, name string) (tensor.Host, error) {
	h, err := host(d, name)
	if err == nil && (d.Rows != s.Rows || d.Cols != s.Cols) {
		err = fmt.Errorf("shapes do not fit: the tensor is %d×%d, the matrix %d×%d", s.Rows, s.Cols, d.Rows, d.Cols)
	}
	return h.Host, err
}

// Close frees the tensor. It waits for calls that use the tensor; later ones fail. A second call does nothing.
func (t *Tensor[T]) Close() error { return t.t.Close() }
