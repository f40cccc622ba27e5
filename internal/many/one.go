// A plan and a sequence of a device by itself, as the front door has them.

package many

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// one is a Plan as a Matrix. What a Plan does without operands it does itself.
type one struct{ *plan.Plan }

func (o one) single() *plan.Plan { return o.Plan }

// Parts returns nil: the device holds all of the matrix.
func (o one) Parts() []plan.Info { return nil }

func (o one) TensorsFor(n int, b, c dtype.Type) (Operand, Operand, error) {
	sb, sc, err := o.Shapes(n, b, false, c, false)
	if err != nil {
		return nil, nil, err
	}
	ts, err := tensor.NewAll(o.Device(), sb, sc)
	if err != nil {
		return nil, nil, err
	}
	return ts[0], ts[1], nil
}

func (o one) NewTensor(s tensor.Shape, at Placement) (Operand, error) {
	if err := at.named(1); err != nil {
		return nil, err
	}
	t, err := tensor.New(o.Device(), s)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (o one) Multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
	e Epilogue) (Timing, error) {
	le, err := e.one()
	if err != nil {
		return Timing{}, err
	}
	t, err := o.Plan.Multiply(ctx, alpha, b, beta, c, le)
	return timed(t), err
}

func (o one) Repeat(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand,
	e Epilogue) (Timing, error) {
	x, y, le, err := operands(b, c, e)
	if err != nil {
		return Timing{}, err
	}
	t, err := o.Plan.Repeat(ctx, times, alpha, x, beta, y, le)
	return timed(t), err
}

func (o one) Start(ctx context.Context, alpha float64, b Operand, beta float64, c Operand,
	e Epilogue) (Pending, error) {
	x, y, le, err := operands(b, c, e)
	if err != nil {
		return Pending{}, err
	}
	w, err := o.Plan.Start(ctx, alpha, x, beta, y, le)
	return Pending{one: w}, err
}

func (o one) SetValues(ctx context.Context, v Operand) error {
	t, err := OneTensor(v)
	if err != nil {
		return err
	}
	return o.Plan.SetValues(ctx, t)
}

func (o one) Attainable(ctx context.Context, n int, out dtype.Type, e Epilogue) (model.Bound, error) {
	le, err := e.one()
	if err != nil {
		return model.Bound{}, err
	}
	return o.Plan.Attainable(ctx, n, out, le)
}

func (o one) Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e Epilogue) (model.Bound, error) {
	le, err := e.one()
	if err != nil {
		return model.Bound{}, err
	}
	return o.Plan.Observe(ctx, n, out, took, le)
}

var errTensorOfSeveral = errors.New("a tensor lies on several devices: it is for plans on these devices")

// OneTensor returns the tensor of a device by itself that an operand is, nil for none.
func OneTensor(o Operand) (*tensor.Tensor, error) {
	if o == nil {
		return nil, nil
	}
	t, is := o.(*tensor.Tensor)
	if !is {
		return nil, errTensorOfSeveral
	}
	return t, nil
}

// one is the epilogue on a device by itself.
func (e Epilogue) one() (out launch.Epilogue, err error) {
	out.Activation = e.Activation
	if out.RowBias, err = OneTensor(e.RowBias); err != nil {
		return out, err
	}
	out.ColBias, err = OneTensor(e.ColBias)
	return out, err
}

// operands are those of a product on a device by itself.
func operands(b, c Operand, e Epilogue) (x, y *tensor.Tensor, out launch.Epilogue, err error) {
	if x, err = OneTensor(b); err != nil {
		return x, y, out, err
	}
	if y, err = OneTensor(c); err != nil {
		return x, y, out, err
	}
	out, err = e.one()
	return x, y, out, err
}

// sequence is a Sequence as a Recorder.
type sequence struct {
	*plan.Sequence
	dev *device.Device
}

// NewRecorder returns a sequence without multiplications on a device by itself.
func NewRecorder(d *device.Device) Recorder { return sequence{plan.NewSequence(d), d} }

func (s sequence) Add(m Matrix, alpha float64, b Operand, beta float64, c Operand, e Epilogue) error {
	p, err := s.planOf(m)
	if err != nil {
		return err
	}
	x, y, le, err := operands(b, c, e)
	if err != nil {
		return err
	}
	return s.Sequence.Add(p, alpha, x, beta, y, le)
}

func (s sequence) AddValues(m Matrix, values Operand) error {
	p, err := s.planOf(m)
	if err != nil {
		return err
	}
	v, err := OneTensor(values)
	if err != nil {
		return err
	}
	return s.Sequence.AddValues(p, v)
}

// planOf returns the plan that has all of a matrix on one device; nil for no matrix.
func (s sequence) planOf(m Matrix) (*plan.Plan, error) {
	if m == nil {
		return nil, nil
	}
	p := m.single()
	if p == nil {
		return nil, fmt.Errorf("a plan on several devices in a sequence on %v", s.dev.Info())
	}
	return p, nil
}

func (s sequence) Run(ctx context.Context) (Timing, error) {
	t, err := s.Sequence.Run(ctx)
	return timed(t), err
}

func (s sequence) Start(ctx context.Context) (Pending, error) {
	w, err := s.Sequence.Start(ctx)
	return Pending{one: w}, err
}
