// Reproducible mode: B is brought to fixed point on the device, and multiplied by A's integers (see
// package formats/rfx). Where the precision is to be found from the data, B's ranges are read back first.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/choose"
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

// reproducible computes RFX-p products.
type reproducible struct {
	*resident.Matrix             // at the precision of the last multiplication
	kind             kernel.Kind // where the device has a kernel for it at a precision; else rows
	bits             rfx.P       // of the resident matrix
	auto             *autoP      // nil where the precision is given
	ran              bool        // there was a multiplication
	lossless         bool        // with auto: the last one lost nothing

	setter     values.Setter    // of new values
	tables     []backend.Buffer // of the slots of each part's entries, for kernel requantise; nil until needed
	requantise []backend.Launch // of new values, made when first needed
	refused    bool             // the device cannot run them
}

// autoP is what finding the precision takes.
type autoP struct {
	matrix formats.Sparse             // to be encoded for other precisions
	rows   []rfx.Range                // of the matrix
	at     map[rfx.P]*resident.Matrix // the precisions that were needed so far
	stale  map[rfx.P]bool             // those of them that have old values
}

// reproducibleWays gives the ways to multiply in reproducible mode: in panels or by rows, as is predicted to be faster, then
// by rows where panels are refused.
func reproducibleWays(ctx context.Context, d *device.Device, w *work.Work) iter.Seq2[way, error] {
	return func(yield func(way, error) bool) {
		r, m, err := newReproducible(d, w)
		if err != nil {
			yield(way{}, err)
			return
		}
		kind, why, err := r.pickKind(ctx, d, w, m)
		if !yield(r.way(d, w, m, kind, why), err) || err != nil {
			return
		}
		if kind != kernel.Rows && r.mayTakeRows(w) {
			x := r.way(d, w, m, kernel.Rows, "")
			x.instead = "panels are refused"
			yield(x, nil)
		}
	}
}

// newReproducible returns an executor without a matrix on the device, and the matrix that it is to multiply with.
func newReproducible(d *device.Device, w *work.Work) (*reproducible, formats.Sparse, error) {
	if w.Precision == dtype.F64 {
		return nil, nil, fmt.Errorf("a matrix of f64 in reproducible mode, which takes f16, bf16 and f32: ask for one of these as Options.Precision: %w", backend.ErrUnsupported)
	}
	m := formats.ConvertTo(w.A.Sparse(), w.Precision.Storage())
	r := &reproducible{bits: w.P}
	if w.P == work.AutoP {
		r.auto = &autoP{matrix: m.Clone(), rows: ranges(m), at: map[rfx.P]*resident.Matrix{}, stale: map[rfx.P]bool{}}
		r.bits, _ = rfx.Auto(r.auto.rows)
		if mustCut(d, m) || w.Budget != nil {
			r.bits = rfx.P47 // cut the rows so that they can be encoded for any precision
		}
	}
	return r, m, nil
}

// way is how the matrix is multiplied with by rows, or in panels of a kind.
func (r *reproducible) way(d *device.Device, w *work.Work, m formats.Sparse, kind kernel.Kind, why string) way {
	return way{
		why: why,
		pack: func(context.Context) (*work.Packed, error) {
			r.kind = kind
			return r.pack(d, w, m)
		},
		executor: func(m *resident.Matrix) executor {
			r.Matrix, r.setter = m, values.NewSetter(m)
			if r.auto != nil {
				r.auto.at[r.bits] = m
			}
			return r
		},
	}
}

// mustCut tells whether some precision's integers exceed a buffer.
func mustCut(d *device.Device, m formats.Sparse) bool {
	return m.NNZ()*int64(rfx.P47.Size()) > d.Limit()
}

// mayTakeRows tells whether rows may be multiplied where panels are refused: where the work does not name panels, or
// where the panels that it names suit one precision and not another.
func (r *reproducible) mayTakeRows(w *work.Work) bool {
	return w.Variant == "" && (r.auto != nil || w.Format == "")
}

// pack packs the matrix for the kind that was picked.
func (r *reproducible) pack(d *device.Device, w *work.Work, m formats.Sparse) (*work.Packed, error) {
	v, err := r.variantFor(d.Caps(), r.bits)
	if err != nil {
		return nil, err
	}
	if w.Variant != "" && w.Variant != v.Name {
		return nil, fmt.Errorf("variant %q: in reproducible mode at p = %d this device runs %s: %w", w.Variant, r.bits, v.Name, backend.ErrUnsupported)
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
	if most := data.Stats.Slots * int64(rfx.P31.Bytes()); r.kind != kernel.Rows && most > d.Limit() {
		return nil, fmt.Errorf("panels take %d bytes at p = %d, and a buffer of %v at most %d: %w", most, rfx.P31, d.Info(), d.Limit(), backend.ErrUnsupported)
	}
	return e, nil
}

// variantFor returns the kernel's variant for a precision.
func (r *reproducible) variantFor(caps backend.Caps, bits rfx.P) (*spec.Variant, error) {
	return variantFor(caps, bits, r.kind)
}

// variantFor returns the kernel's variant for a precision and a kind; that for rows where the device has no other.
func variantFor(caps backend.Caps, bits rfx.P, kind kernel.Kind) (*spec.Variant, error) {
	if v, err := kernel.Variant(caps, bits, kind); err == nil || !errors.Is(err, backend.ErrUnsupported) {
		return v, err
	}
	return kernel.Variant(caps, bits, kernel.Rows)
}

// pickKind decides between rows and panels of rows, and says why. Products have the same bits whichever it is.
func (r *reproducible) pickKind(ctx context.Context, d *device.Device, w *work.Work, m formats.Sparse) (kind kernel.Kind, why string, err error) {
	named := kernel.KindOf(w.Format)
	kind = named
	if named == kernel.Rows {
		kind = kernel.Panels
	}
	v, err := variantFor(d.Caps(), r.bits, kind)
	if err != nil {
		return kind, "", err
	}
	rows, err := kernel.Variant(d.Caps(), r.bits, kernel.Rows)
	if err != nil {
		return kind, "", err
	}
	switch {
	case named == kernel.Rows || w.Variant == rows.Name:
		return kernel.Rows, "rows were requested", nil
	case v == rows && r.auto != nil:
		return kernel.Rows, "the device has no kernel for panels", nil
	case v == rows:
		return kernel.Rows, fmt.Sprintf("the device has no kernel for panels at p = %d", r.bits), nil
	case r.auto != nil && (mustCut(d, m) || w.Budget != nil):
		return kernel.Rows, "the matrix must be cut for any p", nil
	case (w.Format != "" || w.Variant == v.Name) && kind == kernel.Shuffled:
		return kind, "its rows are shuffled as in that format", nil
	case w.Format != "" || w.Variant == v.Name:
		return kind, "panels of rows go through matrix units", nil
	}
	times, err := r.predict(ctx, d, m, []*spec.Variant{rows, v}, w.Cols)
	if err != nil {
		return kind, "", err
	}
	if times[1] < times[0] {
		return kind, fmt.Sprintf("panels are predicted to take %s, and rows %s", choose.Short(times[1]), choose.Short(times[0])), nil
	}
	return kernel.Rows, fmt.Sprintf("rows are predicted to take %s, and panels %s", choose.Short(times[0]), choose.Short(times[1])), nil
}

// predict returns what multiplications by n columns are predicted to take in each variant, B being in fixed point,
// from a sample of the matrix. Every row of B is fetched anew for each entry or vector that meets it: a core's
// cache holds few in fixed point.
func (r *reproducible) predict(ctx context.Context, d *device.Device, m formats.Sparse, vs []*spec.Variant, n int) ([]time.Duration, error) {
	rates, err := choose.RatesOf(ctx, d)
	if err != nil {
		return nil, err
	}
	s := work.Sample(m)
	rows, cols := m.Dims()
	var times []time.Duration
	for _, v := range vs {
		e, err := shaders.Reproducible.Encode(s, v)
		if err != nil {
			return nil, err
		}
		stats, _ := work.Scale(e, s.NNZ(), m.NNZ())
		g, _ := choose.ModelOf(d).Gather(shaders.Reproducible.Name, v.Name)
		n := g.Width(v, n)
		w := inFixedPoint(model.NewWork(rows, cols, n, m.Type(), stats, stats.Gathers, dtype.F32), v, r.bits, cols, n, stats.Gathers)
		w.Gather = max(int64(g.Slower*float64(w.Gather)), stats.Gathers*int64(n)*int64(g.Bytes))
		b := rates.Bound(v, w)
		times = append(times, b.Memory+b.Gather+b.Compute)
	}
	return times, nil
}

// inFixedPoint adds to what a multiplication by n columns takes in a variant: B is written and read in fixed point,
// its rows are fetched so, and matrix units multiply every pair of digits.
func inFixedPoint(w model.Work, v *spec.Variant, bits rfx.P, k, n int, fetched int64) model.Work {
	row := 4 * int64(kernel.Layout(v, k, n).Row())
	w.Bytes += 2 * int64(k) * row
	w.Gather = fetched * row
	if len(v.Need.Shapes) > 0 {
		w.FLOPs *= int64(bits.Bytes() * bits.Bytes())
	}
	return w
}

func (r *reproducible) Work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v, w := r.Matrix.Work(n, out)
	return v, inFixedPoint(w, v, r.bits, r.Cols, n, r.Fetched)
}

func (r *reproducible) Reproduced() (rfx.P, bool) {
	if !r.ran {
		return 0, false
	}
	return r.bits, r.lossless
}

// Recordable refuses AutoP, which reads B's ranges back.
func (r *reproducible) Recordable() error {
	if r.auto != nil {
		return errors.New("with AutoP the precision of each multiplication is found from B, so it cannot be recorded: prepare the matrix with a fixed P (Reproduced tells which one a multiplication took)")
	}
	return r.OnDevice()
}

// Prepare turns to the precision that b needs, where it is to be found.
func (r *reproducible) Prepare(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) (*resident.Matrix, error) {
	if r.auto != nil {
		cols, err := r.scan(ctx, l, b)
		if err != nil {
			return nil, err
		}
		bits, lossless := rfx.Auto(r.auto.rows, cols)
		if err := r.turn(ctx, bits); err != nil {
			return nil, err
		}
		r.lossless = lossless
	}
	r.ran = true
	return r.Matrix, nil
}

// turn makes a precision the resident matrix's. The matrix is encoded for it the first time.
func (r *reproducible) turn(ctx context.Context, bits rfx.P) error {
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
func (r *reproducible) scan(ctx context.Context, l *launch.Launcher, b *tensor.Tensor) ([]rfx.Range, error) {
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
		q := fixedLayout(r.Matrix, b.BlockLayout(0, j))
		words := make([]rfx.Range, q.First())
		if len(words) > 0 {
			if err := l.FixedPoint().Read(ctx, 0, backend.Bytes(words)); err != nil {
				return nil, err
			}
		}
		at := len(cols)
		cols = append(cols, make([]rfx.Range, q.N)...)
		for c := 1; c <= q.Chunks; c++ {
			for i := range q.N {
				cols[at+i] = cols[at+i].Join(words[c*q.LD+i])
			}
		}
	}
	return cols, nil
}

// fixedLayout returns how a block of B lies in fixed point for a matrix.
func fixedLayout(m *resident.Matrix, l tensor.Layout) quantise.Layout {
	return kernel.Layout(m.Variant, l.Rows, l.Cols)
}

// Takes: what the other activations are is not defined to the bit.
func (r *reproducible) Takes(q launch.Product) error {
	if q.B.Type == dtype.F64 || q.C.Type == dtype.F64 || q.Bias != nil && q.Bias.Type == dtype.F64 {
		return fmt.Errorf("data of f64 in reproducible mode, which takes f16, bf16 and f32: %w", backend.ErrUnsupported)
	}
	if e := q.Epilogue; e.Activation != spec.NoActivation && e.Activation != spec.ReLU {
		return fmt.Errorf("activation %v: reproducible mode has relu alone, whose bits are the same everywhere: %w", q.Epilogue.Activation, backend.ErrUnsupported)
	}
	return nil
}

// Columns brings the block of B to fixed point and multiplies each part of the matrix by it. The kernel adds beta·C and
// the bias itself, in integers: what kernel densecopy computes is not the same everywhere. So where C cannot be written as
// it lies, it is copied to the staging buffer first.
func (r *reproducible) Columns(w *launch.Composer, j int) error {
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
// holds it then; only the first of them, which finds ranges, unless whole.
func (r *reproducible) quantise(w *launch.Composer, j int, buf backend.Buffer, whole bool) (backend.Buffer, error) {
	v, err := quantise.Variant(r.Device.Caps())
	if err != nil {
		return nil, err
	}
	from, _ := w.Source(j)
	layout := fixedLayout(r.Matrix, from)
	l, err := quantise.Launch(v, layout, from.Type, from.LD)
	if err != nil {
		return nil, err
	}
	q := w.Fixed(layout.Bytes())
	args := []backend.Buffer{buf, q}
	if !whole {
		l.Passes = l.Passes[:1]
	}
	return q, w.Add(quantise.Program, args, l.Passes...)
}

// Check refuses n columns at once also where B in fixed point exceeds a buffer: with AutoP at the largest precision,
// which takes most.
func (r *reproducible) Check(n int, out dtype.Type) error {
	b := kernel.Layout(r.Variant, r.Cols, n).Bytes()
	if r.auto != nil {
		b = quantise.NewLayout(r.Cols, n, rfx.P47).Bytes()
	}
	if b > r.Device.Limit() {
		return fmt.Errorf("%d columns of B in fixed point take %d bytes, and a buffer of %v at most %d: %w", n, b, r.Device.Info(), r.Device.Limit(), backend.ErrUnsupported)
	}
	return r.Matrix.Check(n, out)
}

// Close frees the matrix at every precision, and what new values took.
func (r *reproducible) Close() error {
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
