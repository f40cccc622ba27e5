// Preparing a sparse matrix and multiplying with it.

package spmm

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// Formats returns the names that Options.Format takes besides "auto".
func Formats() []string { return work.Formats() }

// Plan is a sparse matrix on one device or several. Close it to free the device's memory. Its methods, and Multiply
// with it, may be called from any goroutine; multiplications with one plan run one after another.
//
// On several devices, C in reproducible mode has the bits that one device computes. In fast mode it has the bits of one
// device where the devices are of one kind, the format is csr (on the CPU: any format, unless A is quantised), and the
// product is split ByRows, or ByColumns with a multiple of 128 columns for each device. Otherwise sums may be added in
// another order, because kernels of other formats depend on the number of columns of a launch. Streaming
// (Options.Memory) and B from other devices, which comes in chunks of 128 columns, change the order of sums too.
//
// If one device fails, the others stop, and the error names it.
type Plan struct{ p many.Matrix }

// matrix returns what package plan has prepared; nil for none.
func (p *Plan) matrix() many.Matrix {
	if p == nil {
		return nil
	}
	return p.p
}

// Prepare validates a, packs it into a format for the device and copies it there. a may be changed or dropped
// afterwards. It is a *formats.CSR of any element type; a *formats.Dense, which is multiplied as a dense matrix unless
// o asks for another format; or a matrix in another format, such as load.Open reads.
//
// A matrix in another format is copied as it is where the device has a kernel for its packing. It is decoded and packed
// again where o asks for another format, another precision, Tune or reproducible mode, or where no kernel multiplies
// from it: a *formats.CSC, or with Options.Transpose any format but CSR.
//
// When ctx ends, Prepare returns its error at once. The host may still read a until the array that it was packing is
// complete, so that a must not be changed after that error, nor may memory that is not Go's be freed: see
// PrepareForeign.
func Prepare(ctx context.Context, dev *Device, a formats.Encoded, o Options) (*Plan, error) {
	w, err := work.Abandon(ctx, func() (*work.Work, error) { return o.resolve(a) }, nil)
	if err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, errNoDevice
	}
	p, err := many.Prepare(ctx, dev.all(), dev.d == nil, w, o.sharing())
	if err != nil {
		return nil, err
	}
	return &Plan{p}, nil
}

// Info returns the format and the variant that were chosen for the matrix, the reason, and the memory and time that it
// took.
func (p *Plan) Info() PlanInfo { return p.p.Describe() }

// Parts returns a PlanInfo for each of several devices; nil where the plan is on one device.
func (p *Plan) Parts() []PlanInfo { return p.p.Parts() }

// Attainable returns the least time that a multiplication by n columns can take: the roofline of the device for this
// plan. C has elements of type out and is not read (beta is 0). At most one Epilogue may be given.
//
// The first call on a device measures the device's rates, which takes a fraction of a second; they are kept in the
// user's cache folder, or in $SPMM_CACHE. On several devices the result is that of the device with the most work, where
// all operands lie where the split needs them.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type, e ...Epilogue) (Bound, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Bound{}, err
	}
	return p.p.Attainable(ctx, n, out, ep)
}

// Multiply computes c = alpha·A·b + beta·c for matrices in the host's memory. A is M×K, b is K×N and c is M×N; with
// Options.Right it computes c = alpha·b·A + beta·c. alpha and beta are rounded to float32, unless the plan's precision
// is dtype.F64, which sums in float64. c is not read where beta is 0. c may be b, which is copied first. At most one
// Epilogue may be given.
//
// Timing.Host includes the copies to the device and back. After an error, such as that of a cancelled context, the
// contents of c are undefined.
func Multiply[T, C formats.Value](ctx context.Context, p *Plan, alpha float64, b *formats.Dense[T], beta float64,
	c *formats.Dense[C], e ...Epilogue) (Timing, error) {
	hb, err := host(b, "B")
	if err != nil {
		return Timing{}, err
	}
	hc, err := host(c, "C")
	if err != nil {
		return Timing{}, err
	}
	ep, err := epilogue(e)
	if err != nil {
		return Timing{}, err
	}
	return p.p.Multiply(ctx, alpha, hb, beta, hc, ep)
}

// host describes a dense matrix of the host to package plan.
func host[T formats.Value](d *formats.Dense[T], name string) (tensor.Dense, error) {
	if d == nil {
		return tensor.Dense{}, fmt.Errorf("matrix %s is missing", name)
	}
	if err := d.Validate(); err != nil {
		return tensor.Dense{}, fmt.Errorf("matrix %s: %w", name, err)
	}
	return tensor.Dense{
		Rows: d.Rows, Cols: d.Cols, Type: formats.TypeOf[T](),
		Host: tensor.Host{Data: backend.Bytes(d.Data), LD: d.LD, ColMajor: d.ColMajor},
	}, nil
}

// Run computes c = alpha·A·b + beta·c, or with Options.Right c = alpha·b·A + beta·c, for tensors on the plan's device,
// in any element types and orders. Shapes are those of Multiply. c is not read where beta is 0, and must not be b. At
// most one Epilogue may be given. After an error, such as that of a cancelled context, the contents of c are undefined.
func (p *Plan) Run(ctx context.Context, alpha float64, b Operand, beta float64, c Operand,
	e ...Epilogue) (Timing, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c, e...)
}

// Repeat does Run `times` times back to back, for measurements. With a beta other than 0 each run adds to the c of the
// run before. On several devices operands are moved once.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand,
	e ...Epilogue) (Timing, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Timing{}, err
	}
	return p.p.Repeat(ctx, times, alpha, tensorOf(b), beta, tensorOf(c), ep)
}

// Close frees what the plan holds on the device. It waits for the multiplication in progress; later ones fail. A
// second call does nothing.
func (p *Plan) Close() error { return p.p.Close() }

// SetValues replaces the values of A's entries by the elements of a tensor on the plan's device. The pattern stays; the
// format is not chosen anew and the matrix is not packed again. values is 1×NNZ or NNZ×1 and of any type; its elements
// are rounded to nearest even where the plan holds A in another type. Infinities and NaN are values.
//
// The order of values is the order of the matrix that was given to Prepare, also with Options.Transpose or Right: that
// of a CSR's Val, of a CSC's Val, or of what Sparse returns for any other format. Stored zeros are entries.
//
// The first call finds the slots of the entries, in about the time that packing took, and keeps a table of them on the
// device: 4 bytes an entry and a quarter of a byte a slot, on CUDA 8 bytes an entry, in reproducible mode 4 bytes for
// each slot of a panel. Formats that store the entries in A's order, such as csr without Transpose, need no table. Each
// call then is one pass over the values at the speed of memory; reproducible mode takes one more pass over ranges and
// one over integers. Repeated calls allocate nothing.
//
// With AutoP, which decides the precision for each multiplication, values are copied back to the host, and the next
// multiplication encodes A there again without choosing. A plan in reproducible mode, or with Options.Transpose, keeps
// the pattern in the host's memory: 4 bytes an entry and 8 a row.
//
// SetValues waits for the multiplication in progress. values must not be written meanwhile. After an error, such as
// that of a cancelled context, A's values are undefined until they are set again.
//
// On several devices the values go through the host's memory. If setting them fails midway, devices may hold old and
// new values: multiplications are refused until a later call succeeds.
func (p *Plan) SetValues(ctx context.Context, values Operand) error {
	return p.p.SetValues(ctx, tensorOf(values))
}

// SetValues is Plan.SetValues for NNZ values in the host's memory. They are copied to the device, and v may be changed
// or dropped afterwards.
func SetValues[T formats.Value](ctx context.Context, p *Plan, v []T) error {
	return p.p.SetHostValues(ctx, values.Host{Type: formats.TypeOf[T](), Data: backend.Bytes(v)})
}
