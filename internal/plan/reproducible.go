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
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/tensor"
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
	*resident             // at the precision of the last multiplication
	kind      kernel.Kind // where the device has a kernel for it at a precision; else rows
	bits      rfx.P       // of the resident matrix
	auto      *autoP      // nil where the precision is given
	ran       bool        // there was a multiplication
	lossless  bool        // with auto: the last one lost nothing

	requantise []backend.Launch // of new values, made when first needed
	refused    bool             // the device cannot run them
}

// autoP is what finding the precision takes.
type autoP struct {
	matrix formats.Sparse      // to be encoded for other precisions
	rows   []rfx.Range         // of the matrix
	at     map[rfx.P]*resident // the precisions that were needed so far
	stale  map[rfx.P]bool      // those of them that have old values
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
		r.auto = &autoP{matrix: m.Clone(), rows: ranges(m), at: map[rfx.P]*resident{}, stale: map[rfx.P]bool{}}
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
		executor: func(m *resident) executor {
			if r.resident = m; r.auto != nil {
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

func (r *reproducible) work(n int, out dtype.Type) (*spec.Variant, model.Work) {
	v, w := r.resident.work(n, out)
	return v, inFixedPoint(w, v, r.bits, r.cols, n, r.fetched)
}

func (r *reproducible) reproduced() (rfx.P, bool) {
	if !r.ran {
		return 0, false
	}
	return r.bits, r.lossless
}

// recordable refuses AutoP, which reads B's ranges back.
func (r *reproducible) recordable() error {
	if r.auto != nil {
		return errors.New("with AutoP the precision of each multiplication is found from B, so it cannot be recorded: prepare the matrix with a fixed P (Reproduced tells which one a multiplication took)")
	}
	return r.onDevice()
}

// settle turns to the precision that b needs, where it is to be found.
func (r *reproducible) settle(ctx context.Context, l *launcher, b *tensor.Tensor) (*resident, error) {
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
	return r.resident, nil
}

// turn makes a precision the resident matrix's. The matrix is encoded for it the first time.
func (r *reproducible) turn(ctx context.Context, bits rfx.P) error {
	m := r.auto.at[bits]
	if r.auto.stale[bits] {
		if err := m.rewrite(ctx, r.auto.matrix); err != nil {
			return err
		}
		delete(r.auto.stale, bits)
	}
	if m == nil {
		v, err := r.variantFor(r.dev.Caps(), bits)
		if err != nil {
			return err
		}
		e := &work.Packed{Kernel: r.kern, Variant: v, Matrix: work.NewMatrix(r.auto.matrix)}
		parts, err := e.Ranges(ctx, r.rowBlock)
		if err != nil {
			return err
		}
		if first := r.resident.stream; first != nil {
			m, err = keep(ctx, r.dev, e, parts, r.rowBlock, first)
		} else {
			m, err = upload(ctx, r.dev, e, parts, r.rowBlock)
		}
		if err != nil {
			return err
		}
		r.auto.at[bits] = m
	}
	if m.stream != nil && m != r.resident {
		m.stream.loaded = [2]int{-1, -1} // the buffers have panels of another precision
	}
	r.bits, r.resident = bits, m
	return nil
}

// scan finds the ranges of b's columns, on the device.
func (r *reproducible) scan(ctx context.Context, l *launcher, b *tensor.Tensor) ([]rfx.Range, error) {
	var cols []rfx.Range
	for j := range b.ColBlocks() {
		launches, err := l.compose(r.resident, product{b: b}, func(w *composer) error {
			buf, err := w.stageB(j)
			if err != nil {
				return err
			}
			_, err = w.quantise(j, buf, false)
			return err
		})
		if err != nil {
			return nil, err
		}
		if _, err := r.dev.Run(ctx, launches...); err != nil {
			return nil, err
		}
		q := r.layout(b.BlockLayout(0, j))
		words := make([]rfx.Range, q.First())
		if len(words) > 0 {
			if err := l.fixed.buf.Read(ctx, 0, backend.Bytes(words)); err != nil {
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

// layout is how a block of B lies in fixed point.
func (m *resident) layout(l tensor.Layout) quantise.Layout {
	return kernel.Layout(m.variant, l.Rows, l.Cols)
}

// takes: what the other activations are is not defined to the bit.
func (r *reproducible) takes(q product) error {
	if q.b.Type == dtype.F64 || q.c.Type == dtype.F64 || q.bias != nil && q.bias.Type == dtype.F64 {
		return fmt.Errorf("data of f64 in reproducible mode, which takes f16, bf16 and f32: %w", backend.ErrUnsupported)
	}
	if e := q.epilogue; e.Activation != spec.NoActivation && e.Activation != spec.ReLU {
		return fmt.Errorf("activation %v: reproducible mode has relu alone, whose bits are the same everywhere: %w", q.epilogue.Activation, backend.ErrUnsupported)
	}
	return nil
}

// columns brings the block of B to fixed point and multiplies each part of the matrix by it. The kernel adds beta·C and
// the bias itself, in integers: what kernel densecopy computes is not the same everywhere. So where C cannot be written as
// it lies, it is copied to the staging buffer first.
func (r *reproducible) columns(w *composer, j int) error {
	b, err := w.stageB(j)
	if err != nil {
		return err
	}
	q, err := w.quantise(j, b, true)
	if err != nil {
		return err
	}
	for i := range r.parts {
		c, lies := w.c.Block(i, j), w.c.BlockLayout(i, j)
		e, err := w.stageBias(i, j)
		if err != nil {
			return err
		}
		to, staged := w.target(i, j)
		if !staged {
			if err := w.multiply(i, j, w.beta, e, c, b, q); err != nil {
				return err
			}
			continue
		}
		tmp := w.stagedC(to)
		if w.beta != 0 {
			if err := w.dense(lies, c, to, tmp, 0, plain); err != nil {
				return err
			}
		}
		if err := w.multiply(i, j, w.beta, e, tmp, b, q); err != nil {
			return err
		}
		if err := w.dense(to, tmp, lies, c, 0, plain); err != nil {
			return err
		}
	}
	return nil
}

// quantise adds the launches that bring block j of B, which lies in buf, to fixed point, and returns the buffer that
// holds it then; only the first of them, which finds ranges, unless whole.
func (w *composer) quantise(j int, buf backend.Buffer, whole bool) (backend.Buffer, error) {
	v, err := quantise.Variant(w.l.dev.Caps())
	if err != nil {
		return nil, err
	}
	from, _ := w.source(j)
	layout := w.m.layout(from)
	l, err := quantise.Launch(v, layout, from.Type, from.LD)
	if err != nil {
		return nil, err
	}
	q := w.l.fixed.atLeast(layout.Bytes())
	args := []backend.Buffer{buf, q}
	if !whole {
		l.Passes = l.Passes[:1]
	}
	return q, w.add(quantise.Program, args, l.Passes...)
}

// check refuses n columns at once also where B in fixed point exceeds a buffer: with AutoP at the largest precision,
// which takes most.
func (r *reproducible) check(n int, out dtype.Type) error {
	b := kernel.Layout(r.variant, r.cols, n).Bytes()
	if r.auto != nil {
		b = quantise.NewLayout(r.cols, n, rfx.P47).Bytes()
	}
	if b > r.dev.Limit() {
		return fmt.Errorf("%d columns of B in fixed point take %d bytes, and a buffer of %v at most %d: %w", n, b, r.dev.Info(), r.dev.Limit(), backend.ErrUnsupported)
	}
	return r.resident.check(n, out)
}

// close frees the matrix at every precision.
func (r *reproducible) close() error {
	if r.auto == nil {
		return r.resident.close()
	}
	var errs []error
	for _, m := range r.auto.at {
		errs = append(errs, m.close())
	}
	return cmp.Or(errs...)
}
