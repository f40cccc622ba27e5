// Package many is one device and several behind one interface, by which the front door works with either: a prepared
// matrix (Matrix) and sequences (Recorder).
//
// Several devices of one process multiply together: each does some columns of B and C with all of A, or some rows of A
// and C with all of B. Prepare decides how (divide.go, balance.go, link.go) and makes a package plan's Plan for each
// device. Plan has them multiply (multiply.go, run.go, overlap.go), Tensor is a dense matrix in parts, or all of it on
// some (tensor.go), which are copied from device to device (peers.go).
package many

import (
	"cmp"
	"context"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// Matrix is a sparse matrix that was prepared: a plan.Plan on one device, a Plan on several. Its methods may be called
// from any goroutine; multiplications run one after another.
type Matrix interface {
	plan.Prepared
	Describe() api.PlanInfo
	Parts() []api.PlanInfo // what each of several devices holds
	// TensorsFor allocates B and C for products by n columns (rows, with A on the right), NewTensor any matrix on the
	// devices.
	TensorsFor(n int, b, c dtype.Type) (tensor.Operand, tensor.Operand, error)
	NewTensor(s tensor.Shape, at Placement) (tensor.Operand, error)
	Multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense,
		e launch.Epilogue) (api.Timing, error)
	Repeat(ctx context.Context, times int, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
		e launch.Epilogue) (api.Timing, error)
	Start(ctx context.Context, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
		e launch.Epilogue) (backend.Pending, error)
	Sample(ctx context.Context, q plan.Sampled) (api.Timing, error)
	StartSample(ctx context.Context, q plan.Sampled) (backend.Pending, error)
	Enqueue(stream uintptr, alpha float64, b tensor.Operand, beta float64, c tensor.Operand, e launch.Epilogue) error
	Ready(stream uintptr, alpha float64, b tensor.Operand, beta float64, c tensor.Operand, e launch.Epilogue) error
	EnqueueValues(stream uintptr, v tensor.Operand) error
	EnqueueSample(stream uintptr, q plan.Sampled) error
	SetValues(ctx context.Context, v tensor.Operand) error
	SetHostValues(ctx context.Context, v values.Host) error
	Attainable(ctx context.Context, n int, out dtype.Type, e launch.Epilogue) (api.Bound, error)
	Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e launch.Epilogue) (api.Bound, error)
	Reproduced() (bits rfx.P, lossless bool)
	Close() error
}

// Recorder is a sequence of multiplications: a plan.Sequence on one device, a Sequence on several.
type Recorder interface {
	Add(m plan.Prepared, alpha float64, b tensor.Operand, beta float64, c tensor.Operand, e launch.Epilogue) error
	AddValues(m plan.Prepared, values tensor.Operand) error
	AddSample(m plan.Prepared, q plan.Sampled) error
	Run(ctx context.Context) (api.Timing, error)
	Start(ctx context.Context) (backend.Pending, error)
	Close() error
}

// one is a plan.Plan as a Matrix.
type one struct{ *plan.Plan }

// Parts returns nil: the device holds all of the matrix.
func (o one) Parts() []api.PlanInfo { return nil }

// NewTensor allocates a matrix on the device, which is each placement.
func (o one) NewTensor(s tensor.Shape, at Placement) (tensor.Operand, error) {
	if err := at.named(1); err != nil {
		return nil, err
	}
	return tensor.New(o.Device(), s)
}

// Placed tells where an operand lies: all of a tensor of one device is there.
func Placed(o tensor.Operand) Placement {
	if t, several := o.(*Tensor); several {
		return t.At
	}
	return On(0)
}

// pending is a product that was started on several devices.
type pending struct {
	each []backend.Pending
	devs []*device.Device
	done api.Timing // what was known before
}

// Wait is the function Wait, of the slowest device.
func (p *pending) Wait(ctx context.Context) (backend.Timing, error) {
	t, err := Wait(ctx, p)
	return backend.Timing{Device: t.Device, Host: t.Host}, err
}

// Wait returns when a product is done that was started on one device or several. Later calls return the same.
func Wait(ctx context.Context, started backend.Pending) (api.Timing, error) {
	p, several := started.(*pending)
	if !several {
		t, err := started.Wait(ctx)
		return api.TimingOf(t), err
	}
	t := p.done
	if p.each != nil {
		t.Each = make([]backend.Timing, len(p.each))
	}
	var first error
	for d, w := range p.each {
		x, err := w.Wait(ctx)
		if err != nil {
			first = cmp.Or(first, named(p.devs[d], err))
		}
		t.Each[d], t.Device, t.Host = x, max(t.Device, x.Device), max(t.Host, x.Host)
	}
	return t, first
}
