// Package plan brings a sparse matrix onto a device and multiplies with it.
//
// New chooses a format and a kernel variant for the matrix and the device (choose.go), encodes the matrix and
// uploads it (resident.go). Run multiplies with tensors, dense matrices that lie on the device (tensor.go): an
// executor, fast or reproducible, composes the launches of one product (the kernel; before and after it kernel
// dense, where B or C lie in an order or a type that the kernel does not take; one such group for each block where
// a limit of the device forces blocks), and the plan keeps them, so that the same product again costs microseconds
// and allocates nothing.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
)

// Info is what there is to know of a prepared matrix.
type Info struct {
	Rows, Cols int
	NNZ        int64
	Format     string
	Variant    string        // that the matrix is packed for
	Kernel     string        // that multiplies by as many columns as the matrix was prepared for, such as "hopper 128×192"
	Why        string        // reads behind "because": what made it this variant
	Precision  dtype.Type    // what products are computed with
	Quantised  dtype.Type    // of A's values, S8 or E4M3; Invalid: they are of Precision
	Stats      formats.Stats // of the encoded matrix
	EncodeTime time.Duration // packing on the host
	UploadTime time.Duration
	Panels     int // that are copied to the device for each product; 0: all of the matrix is there
}

// Plan is a sparse matrix on a device. Its methods may be called from any goroutine; multiplications
// run one after another.
type Plan struct {
	Info
	dev      *Device
	rowBlock int  // rows of each part of the matrix but the last
	right    bool // see right.go

	given *given

	mu       sync.Mutex
	exec     executor
	launcher *launcher
	host     [2]*Tensor // B and C of the last multiplication of host data
	closed   atomic.Bool
	streamed Streamed // the last product, where the matrix is not on the device

	requested, answer [2]Shape // the last of shapes
}

// New prepares a matrix, which is not needed afterwards. Where the device has a kernel for the packing that the
// matrix comes in, and the options do not ask for another, it is taken as it is; else it is decoded and encoded
// anew. The matrix must be valid. With Options.Transpose all that is said of A is of the
// transpose.
func New(ctx context.Context, d *Device, a formats.Encoded, o Options) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := o.validateWhole(a); err != nil {
		return nil, err
	}
	if q, err := o.quantised(a); q != nil || err != nil {
		return newQuantised(ctx, d, q, o, err)
	}
	a, turned := o.operand(a)
	var p *Plan
	var err error
	if o.Reproducible != 0 {
		p, err = newReproducible(ctx, d, a.Sparse(), o)
	} else {
		p, err = newFast(ctx, d, &source{Encoded: a, of: o.Whole}, o)
	}
	if err != nil {
		return nil, err
	}
	p.given, p.right = newGiven(a, turned, o.Reproducible != 0), o.Right
	return p, nil
}

// newQuantised prepares a quantised matrix, unless there was an error in making it.
func newQuantised(ctx context.Context, d *Device, q *formats.Quantised, o Options, err error) (*Plan, error) {
	if err != nil {
		return nil, err
	}
	p, err := newFast(ctx, d, newQuantisedSource(q), o)
	if err != nil {
		return nil, err
	}
	p.Quantised, p.right = q.Kind, o.Right
	return p, nil
}

// newFast prepares a matrix for fast mode.
func newFast(ctx context.Context, d *Device, a *source, o Options) (*Plan, error) {
	cs, err := choose(ctx, d, a, o)
	if err != nil {
		return nil, err
	}
	if o.Tune && len(cs) > 1 {
		return tune(ctx, d, a, cs, o)
	}
	var refused error // the first
	for _, c := range cs {
		p, err := newFor(ctx, d, a, c)
		if err == nil || !refusal(err) {
			return p, err
		}
		refused = firstOf(refused, err)
	}
	if len(cs) > 0 && cs[0].adopted != nil { // what it is packed in does not fit the device
		return newFast(ctx, d, newSource(a.csr()), o)
	}
	return nil, refused
}

// newFor prepares a matrix for one candidate.
func newFor(ctx context.Context, d *Device, a *source, c *candidate) (*Plan, error) {
	e, err := c.encode(ctx, a)
	if err != nil {
		return nil, err
	}
	p, m, err := place(ctx, d, e, c.why)
	if err != nil {
		return nil, err
	}
	p.exec = fast{m}
	return p, nil
}

// place brings an encoded matrix onto the device, cut where the device's limits require it. The plan lacks only its
// executor.
func place(ctx context.Context, d *Device, e *encoded, why string) (*Plan, *resident, error) {
	start := time.Now()
	parts, rowBlock, err := cut(ctx, d, e)
	if err != nil {
		return nil, nil, err
	}
	packed := e.took + time.Since(start)
	start = time.Now()
	m, err := upload(ctx, d, e, parts, rowBlock)
	if err != nil {
		return nil, nil, err
	}
	return &Plan{
		Info: Info{
			Rows: m.rows, Cols: m.cols, NNZ: e.matrix.NNZ(), Format: e.format, Variant: e.name, Kernel: m.runs(0, e.cols).Kernel(), Why: why,
			Precision: e.precision, Stats: m.stats, EncodeTime: packed, UploadTime: time.Since(start),
		},
		dev: d, rowBlock: rowBlock, launcher: newLauncher(d),
	}, m, nil
}

// Encode packs a matrix as New would, for a file.
func Encode(ctx context.Context, d *Device, m formats.Encoded, o Options) (formats.Encoded, error) {
	if err := o.validateForHost("Encode"); err != nil {
		return nil, err
	}
	if q, err := o.quantised(m); q != nil || err != nil {
		return nil, cmp.Or(err, errors.New("Options.Quantise: Encode packs no quantised matrix: formats.Quantise makes one that files hold"))
	}
	m, _ = o.operand(m)
	a := newSource(m)
	cs, err := choose(ctx, d, a, o)
	if err != nil {
		return nil, err
	}
	var refused error // the first
	for _, c := range cs {
		e, err := c.encode(ctx, a)
		if refusal(err) {
			refused = firstOf(refused, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if f, ok := e.enc.Format.(formats.Encoded); ok && f.Format() == e.format {
			return f, nil
		}
		if e.kernel.Full && !o.anyFormat() { // what was filled with zeros lost its pattern
			return nil, fmt.Errorf("format %s, in a file: %w", e.format, formats.ErrNotFull)
		}
		if e.format != "csr" && !o.anyFormat() {
			return nil, fmt.Errorf("kernel %s/%s packs this matrix in a form that files do not hold: pack it for another device: %w", e.format, e.name, backend.ErrUnsupported)
		}
		return e.matrix.csr(), nil
	}
	return nil, refused
}

// firstOf returns the first that is an error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sums is the type in which products are added up.
func (p *Plan) sums() dtype.Type {
	if p.Precision == dtype.F64 {
		return dtype.F64
	}
	return dtype.F32
}

// Device returns the device that the plan is on.
func (p *Plan) Device() *Device { return p.dev }

// Reproduced returns the precision of the last multiplication in reproducible mode, and whether it was
// found by AutoP to lose nothing: then its finite outputs before alpha and beta are correctly rounded.
func (p *Plan) Reproduced() (bits rfx.P, lossless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exec.reproduced()
}

// Close waits for the multiplication in progress and frees everything the plan holds on the device. A second call
// does nothing.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed.Store(true)
	p.launcher.close()
	errs := []error{p.exec.close()}
	for i, t := range p.host {
		if t != nil {
			errs = append(errs, t.Close())
			p.host[i] = nil
		}
	}
	return firstOf(errs...)
}
