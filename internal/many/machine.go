// Package many is one device and several behind one interface, by which the front door works with either: a prepared
// matrix (Matrix), dense matrices (Operand), sequences (Recorder).
//
// Several devices of one process multiply together: each does some columns of B and C with all of A, or some rows of A
// and C with all of B. Prepare decides how (divide.go, balance.go, link.go) and makes a package plan's Plan for each
// device. Plan has them multiply (multiply.go, run.go, overlap.go), Tensor is a dense matrix in parts, or all of it on
// some (tensor.go), which are copied from device to device (peers.go). A device by itself is in one.go.
package many

import (
	"cmp"
	"context"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/stream"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// Matrix is a sparse matrix that was prepared: a plan.Plan on one device, a Plan on several. Its methods may be called
// from any goroutine; multiplications run one after another.
type Matrix interface {
	Describe() plan.Info
	Parts() []plan.Info // what each of several devices holds
	// TensorsFor allocates B and C for products by n columns (rows, with A on the right), NewTensor any matrix on the
	// devices.
	TensorsFor(n int, b, c dtype.Type) (Operand, Operand, error)
	NewTensor(s tensor.Shape, at Placement) (Operand, error)
	Multiply(ctx context.Context, alpha float64, b tensor.Dense, beta float64, c tensor.Dense, e Epilogue) (Timing, error)
	Repeat(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (Timing, error)
	Start(ctx context.Context, alpha float64, b Operand, beta float64, c Operand, e Epilogue) (Pending, error)
	SetValues(ctx context.Context, v Operand) error
	SetHostValues(ctx context.Context, v values.Host) error
	Attainable(ctx context.Context, n int, out dtype.Type, e Epilogue) (model.Bound, error)
	Observe(ctx context.Context, n int, out dtype.Type, took time.Duration, e Epilogue) (model.Bound, error)
	Reproduced() (bits rfx.P, lossless bool)
	Close() error

	single() *plan.Plan // the plan that has all of the matrix on one device; nil if there are several
}

// Operand is a dense matrix: a *tensor.Tensor on one device, a *Tensor on several.
type Operand interface {
	Described() tensor.Shape
	Write(ctx context.Context, h tensor.Host) error
	Read(ctx context.Context, h tensor.Host) error
	Close() error
}

// Recorder is a sequence of multiplications: a plan.Sequence on one device, a Sequence on several.
type Recorder interface {
	Add(p Matrix, alpha float64, b Operand, beta float64, c Operand, e Epilogue) error
	AddValues(p Matrix, values Operand) error
	Run(ctx context.Context) (Timing, error)
	Start(ctx context.Context) (Pending, error)
	Close() error
}

// Epilogue makes C = act(alpha·A·B + beta·C + bias) of a multiplication, with one bias at most.
type Epilogue struct {
	RowBias, ColBias Operand
	Activation       launch.Activation
}

// Placed tells where an operand lies: all of a tensor of one device is there.
func Placed(o Operand) Placement {
	if t, several := o.(*Tensor); several {
		return t.At
	}
	return On(0)
}

// Timing is how long a multiplication took.
type Timing struct {
	Device, Host time.Duration    // Device is the slowest device's
	Each         []backend.Timing // of each of several devices
	Moved        int64            // bytes from one device to another
	Move         time.Duration    // what that took
	Streamed     stream.Timing    // of all devices together; Panels is the most of one
}

// Best is Device where it is known, else Host.
func (t Timing) Best() time.Duration { return backend.Timing{Device: t.Device, Host: t.Host}.Best() }

func timed(t backend.Timing) Timing { return Timing{Device: t.Device, Host: t.Host} }

// Pending is a product that was started on one device or several.
type Pending struct {
	one  backend.Pending
	each []backend.Pending // of several devices
	devs []*device.Device
	done Timing // what was known before
}

// Wait returns when the devices are done. Later calls return the same.
func (p Pending) Wait(ctx context.Context) (Timing, error) {
	if p.one != nil {
		t, err := p.one.Wait(ctx)
		return timed(t), err
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
