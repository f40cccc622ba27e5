// Package reproducible multiplies in fixed point (package formats/rfx): the bits of C depend on the operands alone.
//
// Choose decides between rows, panels of rows, strips, pairs and residues. Each multiplication brings B to fixed point on the
// device. Where the precision is to be found from the data, B's ranges are read back first; the executor keeps the
// matrix at each precision that was needed. Sums are products before they are rounded, for ranks that share rows.
package reproducible

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// ranges returns the range of each of a's rows.
func ranges(a formats.Sparse) []rfx.Range {
	return formats.Dispatch(a, rfx.Rows[half.F16], rfx.Rows[half.BF16], rfx.Rows[float32], nil) // of f64 there are none
}

// Executor computes RFX-p products.
type Executor struct {
	*resident.Matrix // at the precision of the last multiplication
	dev              *device.Device
	source           formats.Sparse // to be packed; nil once it is on the device
	most             int64          // bytes that residues may take
	kind             kernel.Kind    // where the device has a kernel for it at a precision; else rows
	bits             rfx.P          // of the resident matrix
	auto             *autoP         // nil where the precision is given
	ran              bool           // there was a multiplication
	lossless         bool           // with auto: the last one lost nothing

	setter     values.Setter    // of new values
	tables     []backend.Buffer // of the slots of each part's entries, for kernel requantise; nil until needed
	requantise []backend.Launch // of new values, made when first needed
	refused    bool             // the device cannot run them
}

// autoP has the data that finding the precision needs.
type autoP struct {
	matrix formats.Sparse             // to be encoded for other precisions
	rows   []rfx.Range                // of the matrix
	at     map[rfx.P]*resident.Matrix // the precisions that were needed so far
	stale  map[rfx.P]bool             // those of them that have old values
}

// New returns an executor without a matrix on the device. Pack, and then Take, give it one.
func New(d *device.Device, w *work.Work) (*Executor, error) {
	if w.Precision == dtype.F64 {
		return nil, fmt.Errorf("a matrix of f64 in reproducible mode, which takes f16, bf16 and f32: ask for one of these as Options.Precision: %w", backend.ErrUnsupported)
	}
	r := &Executor{dev: d, bits: w.P, source: formats.ConvertTo(w.A.Sparse(), w.Precision.Storage()), most: d.Limit()}
	if w.Budget != nil {
		r.most = min(r.most, w.Budget.Bytes/2)
	}
	if w.P == work.AutoP {
		r.auto = &autoP{matrix: r.source.Clone(), rows: ranges(r.source), at: map[rfx.P]*resident.Matrix{},
			stale: map[rfx.P]bool{}}
		r.bits, _ = rfx.Auto(r.auto.rows)
		if r.mustCut() || w.Budget != nil {
			r.bits = rfx.P47 // cut the rows so that they can be encoded for any precision
		}
	}
	return r, nil
}

// Take makes a matrix on the device, as Pack packed it, the one to multiply with.
func (r *Executor) Take(m *resident.Matrix) {
	r.Matrix, r.setter, r.source = m, values.NewSetter(m), nil
	if r.auto != nil {
		r.auto.at[r.bits] = m
	}
}

// mustCut tells whether some precision's integers exceed a buffer.
func (r *Executor) mustCut() bool {
	return r.source.NNZ()*int64(rfx.P47.Size()) > r.dev.Limit()
}

// Pack packs the matrix by rows, or in panels of a kind.
func (r *Executor) Pack(w *work.Work, kind kernel.Kind) (*work.Packed, error) {
	d, m := r.dev, r.source
	r.kind = kind
	v, err := r.variantFor(d.Caps(), r.bits)
	if err != nil {
		return nil, err
	}
	if w.Variant != "" && w.Variant != v.Name {
		return nil, fmt.Errorf("variant %q: in reproducible mode at p = %d this device runs %s: %w", w.Variant, r.bits,
			v.Name, backend.ErrUnsupported)
	}
	if err := r.fits(kind); err != nil {
		return nil, err
	}
	start := time.Now()
	data, err := shaders.Reproducible.Encode(m, v)
	if err != nil {
		return nil, err
	}
	e := &work.Packed{
		Kernel: shaders.Reproducible, Variant: v, Format: r.kind.Format(), Name: v.Name, Precision: m.Type(),
		Matrix: work.NewMatrix(m), Data: data, Took: time.Since(start),
	}
	if r.auto == nil {
		return e, nil
	}
	e.Name = strings.Replace(v.Name, fmt.Sprintf("p%d", r.bits), "auto", 1)
	largest := rfx.P31 // of panels
	if r.kind == kernel.InStrips || r.kind == kernel.InPairs || r.kind == kernel.Stationary {
		largest = rfx.P47
	}
	most := data.Stats.Slots * int64(largest.Size())
	if !r.kind.ByRows() && !r.kind.InPlanes() && most > d.Limit() {
		return nil, fmt.Errorf("%v take %d bytes at p = %d, and a buffer of %v at most %d: %w", r.kind, most, largest,
			d.Info(), d.Limit(), backend.ErrUnsupported)
	}
	return e, nil
}

// variantFor returns the kernel's variant for a precision.
func (r *Executor) variantFor(caps backend.Caps, bits rfx.P) (*spec.Variant, error) {
	return variantFor(caps, bits, r.kind)
}

// variantFor returns the kernel's variant for a precision and a kind; that for rows where the device has no other.
func variantFor(caps backend.Caps, bits rfx.P, kind kernel.Kind) (*spec.Variant, error) {
	if v, err := kernel.Variant(caps, bits, kind); err == nil || !errors.Is(err, backend.ErrUnsupported) {
		return v, err
	}
	return kernel.Variant(caps, bits, kernel.Rows)
}

func (r *Executor) Work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v, w := r.Matrix.Work(n, out)
	return v, inFixedPoint(w, v, r.Operand, r.Cols, n, r.Fetched)
}

func (r *Executor) Reproduced() (rfx.P, bool) {
	if !r.ran {
		return 0, false
	}
	return r.bits, r.lossless
}

// Asked returns the precision that was asked for, which may be AutoP.
func (r *Executor) Asked() rfx.P {
	if r.auto != nil {
		return work.AutoP
	}
	return r.bits
}

// Recordable refuses AutoP, which reads B's ranges back.
func (r *Executor) Recordable() error {
	if r.auto != nil {
		return errors.New("with AutoP the precision of each multiplication is found from B, so it cannot be recorded: prepare the matrix with a fixed P (Reproduced tells which one a multiplication took)")
	}
	return r.OnDevice()
}

// Prepare turns to the precision that b needs, where it is to be found.
func (r *Executor) Prepare(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) (*resident.Matrix, error) {
	if r.auto != nil {
		cols, err := r.scan(ctx, l, b)
		if err != nil {
			return nil, err
		}
		bits, lossless := rfx.Auto(r.auto.rows, cols)
		if err := r.At(ctx, bits); err != nil {
			return nil, err
		}
		r.lossless = lossless
	}
	r.ran = true
	return r.Matrix, nil
}

// At makes a precision the resident matrix's, where it is found for each multiplication; else it does nothing. The
// matrix is encoded for it the first time, and after new values.
func (r *Executor) At(ctx context.Context, bits rfx.P) error {
	if r.auto == nil {
		return nil
	}
	m := r.auto.at[bits]
	if r.auto.stale[bits] {
		if err := m.Rewrite(ctx, r.auto.matrix); err != nil {
			return err
		}
		delete(r.auto.stale, bits)
	}
	if m == nil {
		v, err := r.variantFor(r.Device.Caps(), bits)
		if err != nil {
			return err
		}
		e := &work.Packed{Kernel: r.Kernel, Variant: v, Matrix: work.NewMatrix(r.auto.matrix)}
		if m, err = r.Repacked(ctx, e); err != nil {
			return err
		}
		r.auto.at[bits] = m
	}
	if m.Stream != nil && m != r.Matrix {
		m.Stream.Forget() // the buffers have panels of another precision
	}
	r.bits, r.Matrix = bits, m
	return nil
}

// scan finds the ranges of b's columns, on the device.
func (r *Executor) scan(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) ([]rfx.Range, error) {
	var cols []rfx.Range
	for j := range b.ColBlocks() {
		w, err := l.Compose(r.Matrix, launch.Product{B: b}, func(w *launch.Composer) error {
			buf, err := w.StageB(j)
			if err != nil {
				return err
			}
			_, err = r.quantise(w, j, buf, false)
			return err
		})
		if err != nil {
			return nil, err
		}
		if _, err := r.Device.Run(ctx, w.Launches...); err != nil {
			return nil, err
		}
		from := b.BlockLayout(0, j)
		q := quantise.NewLayout(from.Rows, from.Cols, rfx.P23)
		words := make([]rfx.Range, q.First())
		if len(words) > 0 {
			if err := l.FixedPoint().Read(ctx, 0, backend.Bytes(words)); err != nil {
				return nil, err
			}
		}
		cols = append(cols, joined(q, words)...)
	}
	return cols, nil
}

// fixedLayout returns how a block of B lies in fixed point for a matrix.
func fixedLayout(m *resident.Matrix, l tensor.Layout) quantise.Layout {
	return kernel.Layout(m.Variant, l.Rows, l.Cols)
}

// Takes: what the other activations are is not defined to the bit.
func (r *Executor) Takes(q launch.Product) error {
	if q.B.Type == dtype.F64 || q.C.Type == dtype.F64 || q.Bias != nil && q.Bias.Type == dtype.F64 {
		return fmt.Errorf("data of f64 in reproducible mode, which takes f16, bf16 and f32: %w", backend.ErrUnsupported)
	}
	if e := q.Epilogue; e.Activation != spec.NoActivation && e.Activation != spec.ReLU {
		return fmt.Errorf("activation %v: reproducible mode has relu alone, whose bits are the same everywhere: %w",
			q.Epilogue.Activation, backend.ErrUnsupported)
	}
	return nil
}

// Columns brings the block of B to fixed point and multiplies each part of the matrix by it. The kernel adds beta·C
// and the bias itself, in integers: what kernel densecopy computes is not the same everywhere. So where C cannot be
// written as it lies, it is copied to the staging buffer first.
func (r *Executor) Columns(w *launch.Composer, j int) error {
	b, err := w.StageB(j)
	if err != nil {
		return err
	}
	q, err := r.quantise(w, j, b, true)
	if err != nil {
		return err
	}
	for i := range r.Parts {
		c, lies := w.C.Block(i, j), w.C.BlockLayout(i, j)
		e, err := w.StageBias(i, j)
		if err != nil {
			return err
		}
		to, staged := w.Target(i, j)
		if !staged {
			if err := w.Multiply(i, j, w.Beta, e, c, b, q); err != nil {
				return err
			}
			continue
		}
		tmp := w.StagedC(to)
		if w.Beta != 0 {
			if err := w.Dense(lies, c, to, tmp, 0, launch.Plain); err != nil {
				return err
			}
		}
		if err := w.Multiply(i, j, w.Beta, e, tmp, b, q); err != nil {
			return err
		}
		if err := w.Dense(to, tmp, lies, c, 0, launch.Plain); err != nil {
			return err
		}
	}
	return nil
}

// quantise adds the launches that bring block j of B, which lies in buf, to fixed point, and returns the buffer that
// holds it then. Unless whole, it only finds the ranges of the columns, as quantise.NewLayout has them for any p.
func (r *Executor) quantise(w *launch.Composer, j int, buf backend.Buffer, whole bool) (backend.Buffer, error) {
	v, err := quantise.Variant(r.Device.Caps())
	if err != nil {
		return nil, err
	}
	from, _ := w.Source(j)
	layout, launches := fixedLayout(r.Matrix, from), quantise.Launch
	if !whole {
		layout, launches = quantise.NewLayout(from.Rows, from.Cols, rfx.P23), quantise.Ranges
	}
	l, err := launches(v, layout, from.Type, from.LD)
	if err != nil {
		return nil, err
	}
	q := w.Fixed(layout.Bytes())
	return q, w.Add(quantise.Program, []backend.Buffer{buf, q}, l.Passes...)
}

// Check refuses n columns at once also where B in fixed point exceeds a buffer: with AutoP at the largest precision,
// which takes most.
func (r *Executor) Check(n int, out dtype.Type) error {
	v := r.Variant
	if r.auto != nil {
		var err error
		if v, err = r.variantFor(r.Device.Caps(), rfx.P47); err != nil {
			return err
		}
	}
	if b := kernel.Layout(v, r.Cols, n).Bytes(); b > r.Device.Limit() {
		return fmt.Errorf("%d columns of B in fixed point take %d bytes, and a buffer of %v at most %d: %w", n, b,
			r.Device.Info(), r.Device.Limit(), backend.ErrUnsupported)
	}
	return r.Matrix.Check(n, out)
}

// Close frees the matrix at every precision, and what new values took.
func (r *Executor) Close() error {
	errs := []error{r.setter.Close()}
	for _, t := range r.tables {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	if r.auto == nil {
		return cmp.Or(append(errs, r.Matrix.Close())...)
	}
	for _, m := range r.auto.at {
		errs = append(errs, m.Close())
	}
	return cmp.Or(errs...)
}
