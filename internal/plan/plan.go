// Package plan prepares a matrix for a device, and multiplies with it.
//
// Prepare tries the ways to multiply (choose, reproducible) until the device takes
// one (resident), and keeps the matrix on the device with an executor, fast or reproducible. Run has the executor
// compose the launches of a product once (launch), and runs them. A Sequence records the launches of several plans.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// Plan is a sparse matrix on a device. Its methods may be called from any goroutine; multiplications
// run one after another.
type Plan struct {
	api.PlanInfo
	dev      *device.Device
	rowBlock int  // rows of each part of the matrix but the last
	right    bool // see right.go

	given *values.Given

	mu       sync.Mutex
	exec     executor
	launcher *launch.Launcher
	host     [2]*tensor.Tensor // B and C of the last multiplication of host data
	closed   atomic.Bool
	streamed api.Streamed // the last product, where the matrix is not on the device

	shapesKey, shapesCached [2]tensor.Shape // of the last call of Shapes
}

// New is Prepare for work that is not resolved, with that form of a valid matrix.
func New(ctx context.Context, d *device.Device, a formats.Encoded, w work.Work, f work.Form) (*Plan, error) {
	resolved, err := w.Resolve(a, f)
	if err != nil {
		return nil, err
	}
	return Prepare(ctx, d, resolved)
}

// Prepare prepares a matrix, which is not needed afterwards. Where the device has a kernel for the packing that the
// matrix comes in, and no other is asked for, it is taken as it is; else it is decoded and encoded anew. Prepare tries
// the ways to multiply in turn, until one is not refused.
func Prepare(ctx context.Context, d *device.Device, w *work.Work) (*Plan, error) {
	if w.Tune {
		return tune(ctx, d, w)
	}
	var refused error // the first
	for x, err := range ways(ctx, d, w) {
		if err != nil {
			return nil, err
		}
		if x.instead != "" {
			x.why, refused = fmt.Sprintf("%s: %v", x.instead, refused), nil
		}
		p, err := build(ctx, d, w, x)
		if err == nil || !work.Refusal(err) {
			return p, err
		}
		refused = cmp.Or(refused, err)
	}
	return nil, refused
}

// build packs the matrix in one way, and makes the plan of it, which it brings onto the device.
func build(ctx context.Context, d *device.Device, w *work.Work, x way) (*Plan, error) {
	e, err := x.pack(ctx)
	if err != nil {
		return nil, err
	}
	m, took, err := resident.Place(ctx, d, w, e)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		PlanInfo: api.PlanInfo{
			Rows: m.Rows, Cols: m.Cols, NNZ: e.Matrix.NNZ(), Format: e.Format, Variant: e.Name, Why: x.why,
			Precision: e.Precision, Kernel: m.Runs(0, w.Cols).Kernel(), Quantised: w.A.Kind(),
			Stats: m.Stats, EncodeTime: e.Took + took.Packing, UploadTime: took.Upload,
		},
		dev: d, rowBlock: m.RowBlock, right: w.Right, exec: x.executor(m), launcher: launch.New(d),
	}
	if m.Stream != nil {
		p.Panels = len(m.Parts)
		p.Why += fmt.Sprintf("; A, of %.3g MiB, stays in the host's memory: %d panels are copied for each product",
			float64(m.Stats.StoredBytes)/(1<<20), p.Panels)
	}
	if m.Stream == nil && p.Quantised == dtype.Invalid { // else values cannot be replaced
		p.given = values.NewGiven(w.A.Encoded, w.Reordered, w.P != 0)
	}
	return p, nil
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

// Close waits for the multiplication in progress and frees everything the plan holds on the device. A second call
// does nothing.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed.Store(true)
	p.launcher.Close()
	errs := []error{p.exec.Close()}
	for i, t := range p.host {
		if t != nil {
			errs = append(errs, t.Close())
			p.host[i] = nil
		}
	}
	return cmp.Or(errs...)
}
