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

// Plan is a sparse matrix on a device, or on several. Close it to free the device's memory. Its methods, and Multiply
// with it, may be called from any goroutine; multiplications with one plan run one after another.
//
// On several devices C has in reproducible mode the bits that one device computes. In fast mode, on devices of one
// kind, it has them too with format csr, and on the CPU with all formats unless A is quantised: ByRows, and ByColumns
// with N a multiple of 128 for each device. Else outputs may be summed in another order: kernels of other formats
// depend on how many columns a launch has. So does a plan that streams (Options.Memory) as many columns as it takes at
// a time, and B that comes from other devices comes in pieces of
// 128. If a device fails the others stop, and the error names it.
type Plan struct{ p many.Matrix }

// matrix returns what package plan has prepared; nil for none.
func (p *Plan) matrix() many.Matrix {
	if p == nil {
		return nil
	}
	return p.p
}

// Prepare validates a, packs it into a format for the device and copies it there. a may be changed or dropped
// afterwards. It is a *formats.CSR of any element type, a *formats.Dense, which is multiplied as a dense matrix unless
// o asks for another format, or a matrix in another format: one that load.Open has read, say. If the device has a
// kernel for the way in which that is packed, it is copied there as it is; else, or if o asks for another format or
// precision, to tune, or for reproducible mode, it is decoded and packed again, as is what no kernel multiplies from: a
// *formats.CSC, or with Options.Transpose any format but CSR.
func Prepare(ctx context.Context, dev *Device, a formats.Encoded, o Options) (*Plan, error) {
	opt, err := o.with(a)
	if err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, errNoDevice
	}
	p, err := many.Prepare(ctx, dev.all(), dev.d == nil, a, opt, o.sharing())
	if err != nil {
		return nil, err
	}
	return &Plan{p}, nil
}

// Info returns what was chosen for the matrix, why, and what it took.
func (p *Plan) Info() PlanInfo { return PlanInfo(p.p.Describe()) }

// Parts returns what each of several devices holds; nil where the matrix is on a device by itself.
func (p *Plan) Parts() []PlanInfo {
	var parts []PlanInfo
	for _, i := range p.p.Parts() {
		parts = append(parts, PlanInfo(i))
	}
	return parts
}

// Attainable returns the least time a multiplication by n columns can take, C having elements of type out and not being
// read, with an Epilogue if one is given: the roofline of the device for this plan. The first call on a device measures
// it, which takes a fraction of a second; the result is kept in the user's cache folder, or in $SPMM_CACHE. Of several
// devices it is that of the one which has the most to do, where everything lies where the split needs it.
func (p *Plan) Attainable(ctx context.Context, n int, out dtype.Type, e ...Epilogue) (Bound, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Bound{}, err
	}
	b, err := p.p.Attainable(ctx, n, out, ep)
	return Bound(b), err
}

// Multiply computes c = alpha·A·b + beta·c for data in the host's memory. alpha and beta are rounded to float32 unless
// the plan's precision is dtype.F64, which sums in float64. b is K×N and c is M×N for A of M×K; with Options.Right it
// is c = alpha·b·A + beta·c. c is not read where beta is 0, and may be b, which is copied before. After an error, which
// a cancelled context is too, the contents of c are undefined. Timing.Host includes the copies to the device and back.
// At most one Epilogue may be given.
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
	t, err := p.p.Multiply(ctx, alpha, hb, beta, hc, ep)
	return Timing(t), err
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
// in any element types and orders. c is not read where beta is 0, and must not be b. After an error, which a cancelled
// context is too, the contents of c are undefined. At most one Epilogue may be given.
func (p *Plan) Run(ctx context.Context, alpha float64, b Operand, beta float64, c Operand,
	e ...Epilogue) (Timing, error) {
	return p.Repeat(ctx, 1, alpha, b, beta, c, e...)
}

// Repeat is Run a number of times back to back, as a program that keeps the device busy does: it serves to
// measure. With a beta other than 0 each run adds to the last one's c. On several devices, what has to move does so
// once.
func (p *Plan) Repeat(ctx context.Context, times int, alpha float64, b Operand, beta float64, c Operand,
	e ...Epilogue) (Timing, error) {
	ep, err := epilogue(e)
	if err != nil {
		return Timing{}, err
	}
	t, err := p.p.Repeat(ctx, times, alpha, tensorOf(b), beta, tensorOf(c), ep)
	return Timing(t), err
}

// Close frees what the plan holds on the device. It waits for the multiplication in progress; later ones fail. A
// second call does nothing.
func (p *Plan) Close() error { return p.p.Close() }

// SetValues makes the elements of a tensor on the plan's device the values of A's entries: the pattern stays, and
// nothing is chosen or packed again. values is 1×NNZ or NNZ×1 and of any type; it is rounded to nearest even where the
// plan holds A in another. Infinities and NaN are values.
//
// The order is that in which A was given to Prepare, with Options.Transpose or Right too: the order of a CSR's Val, of
// a CSC's Val, of what Sparse returns for any other format. Zeros that were stored are entries; what was not stored has
// no value.
//
// The first call finds the places of the entries, in about the time that packing took, and keeps them on the device:
// 4 bytes an entry and a quarter of a byte for each slot of the format, on CUDA 8 bytes an entry; in reproducible mode
// 4 bytes for each slot of a panel. (Formats that have the entries in their order need neither: csr, unless A is
// transposed, is one.) Then the device does it all in one pass over the values, at the speed of memory, and in
// reproducible mode one over ranges and one over integers more; repeated calls allocate nothing. With AutoP, which
// decides the precision for each multiplication, values are read back, and the next multiplication encodes A again on
// the host, without choosing. A plan in reproducible mode, or with Options.Transpose, keeps the pattern in the host's
// memory: 4 bytes an entry and 8 a row.
//
// SetValues waits for the multiplication in progress. After an error, which a cancelled context is too, A's values are
// undefined until they are set again. Elements of values must not be written meanwhile.
//
// On several devices the values go through the host's memory. Where setting them fails midway, some devices may have
// new values and others old ones: multiplications are refused then until a further call has set values.
func (p *Plan) SetValues(ctx context.Context, values Operand) error {
	return p.p.SetValues(ctx, tensorOf(values))
}

// SetValues is Plan.SetValues for values in the host's memory, NNZ of them, which may be changed or dropped afterwards.
// They are copied to the device.
func SetValues[T formats.Value](ctx context.Context, p *Plan, v []T) error {
	return p.p.SetHostValues(ctx, values.Host{Type: formats.TypeOf[T](), Data: backend.Bytes(v)})
}
