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

// Tensor is a dense matrix on one device or several. Its contents are undefined until it is uploaded to or multiplied
// into. Close it to free the device's memory.
//
// On several devices it is row-major and lies where its Placement says. Products take it wherever it lies. If the
// plan's split needs it elsewhere it is moved: from device to device where the devices can, else through the host's
// memory.
//
// Its methods may be called from any goroutine, and one tensor may be an operand of several plans at once. Concurrent
// reads are safe. If one call writes it (Upload, or Run with it as C) while another reads or writes it, nothing breaks,
// but the contents that are seen are undefined.
type Tensor[T formats.Value] struct{ t tensor.Operand }

// Operand is a Tensor of any element type.
type Operand interface {
	Dims() (rows, cols int)
	Type() dtype.Type
	tensor() tensor.Operand
}

// NewTensor allocates a rows × cols matrix in row- or column-major order. Row-major tensors of A's type (for B) and of
// float32 (for C) are multiplied as they lie; others cost a pass over the data on the device.
//
// A tensor that exceeds the device's memory is ErrOutOfMemory. One that exceeds the largest buffer that the device
// binds is ErrUnsupported: see TensorsFor. Both are found before anything is allocated.
//
// On several devices the tensor is Replicated, which suits a bias and an operand of any plan; TensorsFor and
// NewTensorAt divide tensors among devices. A column-major tensor on several devices is ErrUnsupported.
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
func tensorFrom[T formats.Value, O tensor.Operand](t O, err error) (*Tensor[T], error) {
	if err != nil {
		return nil, err
	}
	return &Tensor[T]{t}, nil
}

// NewTensorAt allocates a row-major rows × cols matrix on the devices of a plan: for B, C, a bias, or a tensor that is
// copied to one of them. Rows or columns are divided as the plan divides B and C of that size. On one device each
// placement is all of the matrix.
func NewTensorAt[T formats.Value](p *Plan, rows, cols int, at Placement) (*Tensor[T], error) {
	return tensorFrom[T](p.p.NewTensor(tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T]()}, at))
}

// TensorsFor allocates B (K×n) and C (M×n) for a plan, or with Options.Right B (n×K) and C (n×M), row-major, where the
// plan's split needs them. ByColumns divides both by columns. ByRows puts all of B on each device and divides C by
// rows; with Options.Right rows and columns change places.
//
// A matrix that is too large for the device to bind whole is allocated in blocks. Rows of NewTensor's matrices begin at
// multiples of eight elements; those of TensorsFor have no gaps where the plan's kernel takes few columns without them
// (vectors above all). Other plans take such tensors at the cost of a pass over the data. Matrices that exceed the
// device's memory are ErrOutOfMemory, before anything is allocated.
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

func (t *Tensor[T]) tensor() tensor.Operand {
	if t == nil {
		return nil
	}
	return t.t
}

// tensorOf returns an operand's tensor, nil if there is none.
func tensorOf(o Operand) tensor.Operand {
	if o == nil {
		return nil
	}
	return o.tensor()
}

// Upload copies a matrix of the same size, in either order, to the device, or to all devices that hold some of it.
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

// Copy copies another tensor of the same size and order, wherever it lies on the same devices. It returns the number of
// bytes that went from one device to another.
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
