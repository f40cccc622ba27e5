// Package plan prepares a matrix for a device, and multiplies with it.
//
// Prepare tries the ways to multiply (choose, reproducible) until the device takes
// one (resident), and keeps the matrix on the device with an executor, fast or reproducible. Run has the executor
// compose the launches of a product once (launch), and runs them. A Sequence records the launches of several plans.
package plan

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/sddmm"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
)

// Plan is a sparse matrix on a device. Its methods may be called from any goroutine; multiplications
// run one after another.
type Plan struct {
	api.PlanInfo
	dev      *device.Device
	rowBlock int  // rows of each part of the matrix but the last
	right    bool // see right.go

	given   *values.Given
	sampler *sddmm.Sampler // nil until products are sampled

	mu       sync.Mutex
	exec     executor
	launcher *launch.Launcher
	streams  streams
	host     [2]*tensor.Tensor // B and C of the last multiplication of host data
	closed   atomic.Bool
	streamed api.Streamed // the last product, where the matrix is not on the device

	shapesKey, shapesCached [2]tensor.Shape // of the last call of Shapes
}

// sums is the type in which products are added up.
func (p *Plan) sums() dtype.Type {
	if p.Precision == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}

// Device returns the device that the plan is on.
func (p *Plan) Device() *device.Device { return p.dev }

// Reproduced returns the precision of the last multiplication in reproducible mode, and whether it was
// found by AutoP to lose nothing: then its finite outputs before alpha and beta are correctly rounded.
func (p *Plan) Reproduced() (bits rfx.P, lossless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exec.Reproduced()
}

// Close waits for the multiplication in progress and frees everything the plan holds on the device, unless a graph has
// captured some of it: then it is freed with the device. A second call does nothing.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed.Store(true)
	if p.streams.captured { // a graph may run at any time: what it uses is freed with the device
		return nil
	}
	p.launcher.Close()
	for _, l := range p.streams.of {
		l.Close()
	}
	errs := []error{p.exec.Close()}
	if p.sampler != nil {
		errs = append(errs, p.sampler.Close())
		p.sampler = nil
	}
	for i, t := range p.host {
		if t != nil {
			errs = append(errs, t.Close())
			p.host[i] = nil
		}
	}
	return cmp.Or(errs...)
}
