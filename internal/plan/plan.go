// Package plan brings a sparse matrix onto a device and multiplies with it.
//
// New picks a format and a kernel variant for the matrix and the device, encodes and uploads. Run
// multiplies with dense matrices that lie on the device: it composes the launches of one problem
// (the kernel; before and after it the dense kernel, where B or C lie in an order or a type that the
// kernel does not take; one such group for each block where a limit of the device forces blocks) and
// keeps them, so that the same problem again costs microseconds and allocates nothing.
package plan

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Options say how to bring a matrix onto a device.
type Options struct {
	Format    string     // a format's name; "" or "auto" picks one
	Variant   string     // a variant's name, to force it; "" picks one
	Precision dtype.Type // of A's values and of B; Invalid: the matrix's own type
	Cols      int        // columns of B to choose for; 0: 128
	// Encoded, if not nil, is the matrix in some format. Where the device has a kernel for its packing, and
	// Format does not ask for another, it is taken as it is.
	Encoded formats.Encoded
	// Tune measures the packings that are predicted to be near the best, and remembers the fastest in the
	// cache folder, for others to take.
	Tune bool
	// Reproducible, unless 0, asks for the product RFX-p of this p, or AutoP. Format then decides between rows
	// (csr), panels shuffled as in tiledcsr, and panels (any other), where the device has a kernel for these.
	Reproducible rfx.P
}

// cols is Cols with its default.
func (o Options) cols() int {
	if o.Cols <= 0 {
		return DefaultCols
	}
	return o.Cols
}

// DefaultCols is the number of columns of B that formats are chosen for when none is given.
const DefaultCols = 128

// Info is what there is to know of a prepared matrix.
type Info struct {
	Rows, Cols int
	NNZ        int64
	Format     string
	Variant    string        // the kernel's
	Why        string        // reads behind "because": what made it this variant
	Precision  dtype.Type    // what products are computed with
	Stats      formats.Stats // of the encoded matrix
	EncodeTime time.Duration // packing on the host
	UploadTime time.Duration
}

// Plan is a sparse matrix on a device. Its methods may be called from any goroutine; multiplications
// run one after another.
type Plan struct {
	Info

	dev      *Device
	kern     *spec.Kernel
	variant  *spec.Variant
	parts    []part
	rowBlock int    // rows of each part but the last
	fetched  int64  // rows of B that a multiplication fetches, see distinct
	fixed    *fixed // in reproducible mode

	mu     sync.Mutex
	jobs   []*job // the problems run lately
	next   int    // which job to replace next
	temps  temps
	host   [2]*Matrix // B and C of the last multiplication of host data
	asked  [2]Shape   // what shapes was asked last,
	told   [2]Shape   // and its answer
	closed bool
}

// part is a range of A's rows, encoded and uploaded.
type part struct {
	enc  *spec.Encoded // without the arrays' data
	bufs []backend.Buffer
}

// New prepares a matrix, which is not needed afterwards. The matrix must be valid.
func New(ctx context.Context, d *Device, a formats.Sparse, o Options) (*Plan, error) {
	if o.Reproducible != 0 {
		return newFixed(ctx, d, a, o)
	}
	if o.Tune {
		return tune(ctx, d, a, o)
	}
	var p *Plan
	_, err := choose(ctx, d, a, o, func(c *packed) (err error) {
		p, err = build(ctx, d, a, c)
		return err
	})
	return p, err
}

// Encode packs a matrix as New would, for a file.
func Encode(ctx context.Context, d *Device, a formats.Sparse, o Options) (formats.Encoded, error) {
	c, err := choose(ctx, d, a, o, func(*packed) error { return nil })
	if err != nil {
		return nil, err
	}
	if e, ok := c.enc.Format.(formats.Encoded); ok {
		return e, nil
	}
	return c.matrix, nil
}

// build brings a packed matrix onto the device. a is the matrix before it was packed.
func build(ctx context.Context, d *Device, a formats.Sparse, c *packed) (*Plan, error) {
	rows, cols := a.Dims()
	p := &Plan{
		Info: Info{
			Rows: rows, Cols: cols, NNZ: a.NNZ(),
			Format: c.kernel.Name, Variant: c.variant.Name, Precision: c.variant.In, EncodeTime: c.took,
			Why: c.why,
		},
		dev: d, kern: c.kernel, variant: c.variant, fetched: model.Fetched(c.enc.Stats, distinct(a)),
	}
	if err := p.place(ctx, c); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Device returns the device that the plan is on.
func (p *Plan) Device() *Device { return p.dev }

// place uploads the encoded matrix, in parts where one of its arrays exceeds the device's limit.
func (p *Plan) place(ctx context.Context, c *packed) error {
	start := time.Now()
	encs, err := p.split(ctx, c)
	if err != nil {
		return err
	}
	p.EncodeTime += time.Since(start)
	start = time.Now()
	for _, e := range encs {
		if err := p.upload(ctx, e); err != nil {
			return err
		}
	}
	p.UploadTime = time.Since(start)
	return nil
}

func (p *Plan) upload(ctx context.Context, e *spec.Encoded) error {
	pt, err := p.dev.upload(ctx, e)
	p.parts = append(p.parts, pt)
	if err == nil {
		p.Stats = addStats(p.Stats, e.Stats, p.NNZ)
	}
	return err
}

// upload copies an encoded matrix to the device. After an error too, what it returns must be closed.
func (d *Device) upload(ctx context.Context, e *spec.Encoded) (part, error) {
	pt := part{enc: &spec.Encoded{Rows: e.Rows, Cols: e.Cols, NNZ: e.NNZ, Stats: e.Stats, Format: e.Format}}
	for _, a := range e.Arrays {
		b, err := d.alloc(int64(len(a.Data)), "array "+a.Name+" of the matrix")
		if err != nil {
			return pt, err
		}
		pt.bufs = append(pt.bufs, b)
		for off := 0; off < len(a.Data); off += chunk {
			if err := ctx.Err(); err != nil {
				return pt, err
			}
			if err := b.Write(ctx, int64(off), a.Data[off:min(off+chunk, len(a.Data))]); err != nil {
				return pt, err
			}
		}
	}
	return pt, nil
}

func addStats(a, b formats.Stats, nnz int64) formats.Stats {
	a.StoredBytes += b.StoredBytes
	a.Slots += b.Slots
	a.MACs += b.MACs
	a.Gathers += b.Gathers
	a.Staged = b.Staged
	a.Longest = max(a.Longest, b.Longest)
	if a.Slots > 0 {
		a.Fill = float64(nnz) / float64(a.Slots)
	}
	return a
}

// Close frees everything the plan holds on the device. A second call does nothing.
func (p *Plan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	err := closeParts(p.parts)
	if p.fixed != nil {
		for _, parts := range p.fixed.parts {
			err = errors.Join(err, closeParts(parts))
		}
		p.fixed.parts = nil
	}
	p.parts, p.jobs = nil, nil
	p.temps.close()
	for i, m := range p.host {
		if m != nil {
			m.Close()
			p.host[i] = nil
		}
	}
	return err
}

// closeParts frees parts of a matrix and returns what went wrong.
func closeParts(parts []part) error {
	var err error
	for _, pt := range parts {
		for _, b := range pt.bufs {
			err = errors.Join(err, b.Close())
		}
	}
	return err
}
