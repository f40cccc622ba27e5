// Preparing a sparse matrix and multiplying with it.

package spmm

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan"
)

// Options say how to prepare a matrix. The zero value picks everything.
type Options struct {
	// Format is the sparse format on the device: one of Formats, or "auto" (also ""), which takes what
	// was tuned for the matrix, or else predicts the fastest from its pattern and the device's measured
	// speeds. PlanInfo.Why tells what decided.
	Format string
	// Precision is what products are computed with: dtype.F16, BF16, TF32 or F32. The zero value is
	// A's own type.
	Precision dtype.Type
	// Cols is the number of columns of B to choose the format for; 0 means 128. Any number of
	// columns can be multiplied.
	Cols int
	// Mode is Fast, or Reproducible for the same bits on every device. In the latter rows are multiplied,
	// or where the device has matrix units for 8-bit integers panels of rows: csr asks for rows, tiledcsr
	// for panels in its order, any other format for panels. The bits do not depend on it.
	Mode Mode
	// P is the precision of reproducible mode: 15, 23, 31, 47 or AutoP; 0 means 23.
	P int
	// Tune measures the formats that are predicted to be near the best, takes the fastest and remembers
	// it in the user's cache folder: from then on auto takes it for this matrix, device, precision and
	// Cols. It needs device memory for B and C.
	Tune bool
	// Variant forces a kernel variant by name; for tests and comparisons.
	Variant string
}

// plan returns the options as package plan takes them.
func (o Options) plan() (plan.Options, error) {
	p, err := o.precision()
	return plan.Options{Format: o.Format, Variant: o.Variant, Precision: o.Precision, Cols: o.Cols, Tune: o.Tune, Reproducible: p}, err
}

// Formats returns the names that Options.Format takes besides "auto".
func Formats() []string { return plan.Formats() }

// Timing tells how long a multiplication took: Device by the device's own clock, 0 if it has none,
// and Host for the whole call.
type Timing = backend.Timing

// PlanInfo is what there is to know of a prepared matrix.
type PlanInfo = plan.Info

// Bound is the least time a multiplication can take on a device: each of Memory (every byte moved
// once), Gather (rows of B fetched from cache) and Compute is the work over the rate measured on the
// device, and Time is the largest.
type Bound = plan.Bound

// Plan is a sparse matrix on a device. Close it to free the device's memory.
type Plan struct{ p *plan.Plan }

// Prepare validates a, a *formats.CSR of any element type, packs it into a format for the device and copies it there. a may be changed
// or dropped afterwards.
func Prepare(ctx context.Context, dev *Device, a formats.Sparse, o Options) (*Plan, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("matrix A: %w", err)
	}
	opt, err := o.plan()
	if err != nil {
		return nil, err
	}
	p, err := plan.New(ctx, dev.d, a, opt)
	if err != nil {
		return nil, err
	}
	return &Plan{p}, nil
}

// Info returns what was chosen for the matrix, why, and what it took.
func (p *Plan) Info() PlanInfo { return p.p.Info }

// Attainable returns the least time a multiplication by n columns can take, C having elements of type
// out and not being read. The first call on a device measures it, which takes a fraction of a second;
// the result is kept in the user's cache folder, or in $SPMM_CACHE.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type) (Bound, error) {
	return p.p.Attainable(ctx, n, out)
}

// Multiply computes c = alpha·A·b + beta·c for data in the host's memory. b is K×N and c is M×N for A
// of M×K; c is not read where beta is 0. After an error, which a cancelled context is too, the
// contents of c are undefined. Timing.Host includes the copies to the device and back.
func Multiply[T, C formats.Value](ctx context.Context, p *Plan, alpha float32, b *formats.Dense[T], beta float32, c *formats.Dense[C]) (Timing, error) {
	hb, err := host(b, "B")
	if err != nil {
		return Timing{}, err
	}
	hc, err := host(c, "C")
	if err != nil {
		return Timing{}, err
	}
	return p.p.Multiply(ctx, alpha, hb, beta, hc)
}

// host describes a dense matrix of the host to package plan.
func host[T formats.Value](d *formats.Dense[T], name string) (plan.Dense, error) {
	if err := d.Validate(); err != nil {
		return plan.Dense{}, fmt.Errorf("matrix %s: %w", name, err)
	}
	return plan.Dense{
		Rows: d.Rows, Cols: d.Cols, Type: formats.TypeOf[T](), ColMajor: d.ColMajor,
		Host: plan.Host{Data: backend.Bytes(d.Data), LD: d.LD},
	}, nil
}

// Run computes c = alpha·A·b + beta·c for tensors on the plan's device, in any element types and
// orders. c is not read where beta is 0, and must not be b. Launches are started in order; a
// cancelled context ends the call between two of them.
func (p *Plan) Run(ctx context.Context, alpha float32, b Operand, beta float32, c Operand) (Timing, error) {
	return p.p.Run(ctx, alpha, tensorOf(b), beta, tensorOf(c))
}

// Repeat is Run so many times back to back, as a program that keeps the device busy does: it serves to
// measure. With a beta other than 0 each run adds to the last one's c.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float32, b Operand, beta float32, c Operand) (Timing, error) {
	return p.p.Repeat(ctx, times, alpha, tensorOf(b), beta, tensorOf(c))
}

// Close frees what the plan holds on the device. A second call does nothing.
func (p *Plan) Close() error { return p.p.Close() }
