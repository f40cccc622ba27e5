// Dense matrices that stay on the devices of a group.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// Placement says where a GroupTensor lies on the devices of a group.
type Placement = plan.Placement

// The placements besides On.
const (
	// InPlace, the zero value, is where a plan's split needs B or C.
	InPlace = plan.InPlace
	// Replicated: each device has all of it.
	Replicated = plan.Replicated
	// InColumns and InRows: each device has some columns or rows. They are cut as the plan cuts B and C of that size.
	InColumns = plan.ByColumn
	InRows    = plan.ByRow
)

// On is all of a matrix on device i of the group, counted from 0.
func On(i int) Placement { return plan.On(i) }

// GroupTensor is a dense matrix on the devices of a group, row-major. Its contents are undefined until it is uploaded to,
// copied or multiplied into. Close it to free the devices' memory. Its methods may be called from any goroutine, as those
// of Tensor.
type GroupTensor[T formats.Value] struct{ t *plan.GroupTensor }

// GroupOperand is a GroupTensor of any element type.
type GroupOperand interface {
	Dims() (rows, cols int)
	Type() dtype.Type
	groupTensor() *plan.GroupTensor
}

// NewGroupTensor allocates a rows × cols matrix on the devices of the plan's group: B, C, a bias, or what is copied to one of them.
func NewGroupTensor[T formats.Value](p *GroupPlan, rows, cols int, at Placement) (*GroupTensor[T], error) {
	t, err := p.p.NewTensor(tensor.Shape{Rows: rows, Cols: cols, Type: formats.TypeOf[T]()}, at)
	if err != nil {
		return nil, err
	}
	return &GroupTensor[T]{t}, nil
}

// GroupTensorsFor allocates B (K×n) and C (M×n) for a plan, or with Options.Right B (n×K) and C (n×M), where its split needs
// them: by columns in columns both, by rows B on each device and C in rows (with Options.Right it is the other way round).
func GroupTensorsFor[B, C formats.Value](p *GroupPlan, n int) (*GroupTensor[B], *GroupTensor[C], error) {
	b, c, err := p.p.TensorsFor(n, formats.TypeOf[B](), formats.TypeOf[C]())
	if err != nil {
		return nil, nil, err
	}
	return &GroupTensor[B]{b}, &GroupTensor[C]{c}, nil
}

// Dims returns the matrix's size.
func (t *GroupTensor[T]) Dims() (rows, cols int) { return t.t.Rows, t.t.Cols }

// Type returns the element type.
func (t *GroupTensor[T]) Type() dtype.Type { return t.t.Type }

// Placement returns where the matrix lies.
func (t *GroupTensor[T]) Placement() Placement { return t.t.At }

func (t *GroupTensor[T]) groupTensor() *plan.GroupTensor {
	if t == nil {
		return nil
	}
	return t.t
}

// groupTensorOf returns an operand's tensor, nil if there is none.
func groupTensorOf(o GroupOperand) *plan.GroupTensor {
	if o == nil {
		return nil
	}
	return o.groupTensor()
}

// Upload copies a matrix of the same size, in either order, to all devices that have some of it, at once.
func (t *GroupTensor[T]) Upload(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Shape, "to upload")
	if err != nil {
		return err
	}
	return t.t.Write(ctx, h)
}

// Download copies the tensor into a matrix of the same size, in either order, leaving its padding alone.
func (t *GroupTensor[T]) Download(ctx context.Context, d *formats.Dense[T]) error {
	h, err := hostOf(d, t.t.Shape, "to download into")
	if err != nil {
		return err
	}
	return t.t.Read(ctx, h)
}

// Copy copies another tensor of the same size, wherever it lies on the same devices, and returns the bytes that went from one
// device to another.
func (t *GroupTensor[T]) Copy(ctx context.Context, src *GroupTensor[T]) (int64, error) {
	return t.t.Copy(ctx, src.groupTensor())
}

// Close frees the tensor. It waits for calls that use the tensor; later ones fail. A second call does nothing.
func (t *GroupTensor[T]) Close() error { return t.t.Close() }
