// Reproducible mode: B is brought to fixed point on the device, and multiplied by A's integers (see
// package formats/rfx). Where the precision is to be found from the data, B's ranges are read back first.

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// AutoP asks for the least precision that loses nothing, found for each multiplication.
const AutoP rfx.P = -1

// fixed is what a plan has besides in reproducible mode.
type fixed struct {
	auto   bool
	kind   kernel.Kind    // where the device has a kernel for it at a precision; else rows
	matrix formats.Sparse // with auto: to be encoded for other precisions
	rows   []rfx.Range    // with auto: A's
	parts  map[rfx.P][]part

	bits     rfx.P // of the plan's variant and parts, and of the last multiplication
	ran      bool  // there was one
	lossless bool  // with auto: it lost nothing
}

// newFixed prepares a matrix for reproducible mode.
func newFixed(ctx context.Context, d *Device, a formats.Sparse, o Options) (*Plan, error) {
	prec := o.Precision
	if prec == dtype.Invalid {
		prec = a.Type()
	}
	if prec = prec.Storage(); !slices.Contains([]dtype.Type{dtype.F16, dtype.BF16, dtype.F32}, prec) {
		return nil, fmt.Errorf("precision %v: want f16, bf16, tf32 or f32", prec)
	}
	if o.Format != "" && o.Format != "auto" && !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("unknown format %q (auto, %s)", o.Format, strings.Join(Formats(), ", "))
	}
	m := formats.ConvertTo(a, prec)
	f := &fixed{bits: o.Reproducible}
	if o.Reproducible == AutoP {
		f.auto, f.matrix, f.rows = true, m.Clone(), ranges(m)
		f.bits, _ = rfx.Auto(f.rows)
		if most := a.NNZ() * int64(rfx.P47.Size()); most > d.limit() {
			f.bits = rfx.P47 // cut the rows so that they can be encoded for any precision
		}
	}
	why, err := f.pickKind(ctx, d, m, o)
	if err != nil {
		return nil, err
	}
	p, err := f.plan(ctx, d, m, o, why)
	if f.kind != kernel.Rows && f.free(o) && refusal(err) {
		f.kind = kernel.Rows
		p, err = f.plan(ctx, d, m, o, fmt.Sprintf("panels are refused: %v", err))
	}
	return p, err
}

// free tells whether rows may be multiplied where panels are refused: where none were asked for, or where what is
// asked for suits one p and not another.
func (f *fixed) free(o Options) bool {
	return o.Variant == "" && (f.auto || o.Format == "" || o.Format == "auto")
}

// plan encodes the matrix for the kind that was picked, and brings it onto the device.
func (f *fixed) plan(ctx context.Context, d *Device, m formats.Sparse, o Options, why string) (*Plan, error) {
	v, err := f.variant(d.Caps(), f.bits)
	if err != nil {
		return nil, err
	}
	if o.Variant != "" && o.Variant != v.Name {
		return nil, fmt.Errorf("no kernel variant %s in reproducible mode at p = %d (%s): %w", o.Variant, f.bits, v.Name, backend.ErrUnsupported)
	}
	start := time.Now()
	enc, err := shaders.Reproducible.Encode(m, v)
	if err != nil {
		return nil, err
	}
	if most := enc.Stats.Slots * int64(rfx.P31.Bytes()); f.auto && f.kind != kernel.Rows && most > d.limit() {
		return nil, fmt.Errorf("panels take %d bytes at p = %d, and a buffer of %v at most %d: %w", most, rfx.P31, d.Info(), d.limit(), backend.ErrUnsupported)
	}
	c := &packed{candidate: candidate{kernel: shaders.Reproducible, variant: v}, matrix: m, enc: enc, took: time.Since(start)}
	rows, cols := m.Dims()
	p := &Plan{
		Info: Info{
			Rows: rows, Cols: cols, NNZ: m.NNZ(),
			Format: f.kind.Format(), Variant: pick(f.auto, strings.Replace(v.Name, fmt.Sprintf("p%d", f.bits), "auto", 1), v.Name), Precision: m.Type(), EncodeTime: c.took,
			Why: why,
		},
		dev: d, kern: c.kernel, variant: v, fetched: model.Fetched(enc.Stats, distinct(m)), fixed: f,
	}
	if err := p.place(ctx, c); err != nil {
		p.Close()
		return nil, err
	}
	f.parts = map[rfx.P][]part{f.bits: p.parts}
	return p, nil
}

// variant returns the kernel's variant for a precision.
func (f *fixed) variant(caps backend.Caps, bits rfx.P) (*spec.Variant, error) {
	if v, err := kernel.Variant(caps, bits, f.kind); err == nil || !errors.Is(err, backend.ErrUnsupported) {
		return v, err
	}
	return kernel.Variant(caps, bits, kernel.Rows)
}

// pickKind decides between rows and panels of rows, and says why. Products have the same bits whichever it is.
func (f *fixed) pickKind(ctx context.Context, d *Device, m formats.Sparse, o Options) (why string, err error) {
	auto := o.Format == "" || o.Format == "auto"
	f.kind = kernel.KindOf(o.Format)
	byRows := f.kind == kernel.Rows
	if byRows {
		f.kind = kernel.Panels
	}
	v, err := f.variant(d.Caps(), f.bits)
	if err != nil {
		return "", err
	}
	rows, err := kernel.Variant(d.Caps(), f.bits, kernel.Rows)
	if err != nil {
		return "", err
	}
	switch {
	case byRows || o.Variant == rows.Name:
		why = "rows were asked for"
	case v == rows:
		why = "the device has no kernel for panels" + pick(f.auto, "", fmt.Sprintf(" at p = %d", f.bits))
	case f.auto && m.NNZ()*int64(rfx.P47.Size()) > d.limit():
		why = "the matrix must be cut for any p"
	case !auto || o.Variant == v.Name:
		return pick(f.kind == kernel.Shuffled, "its rows are shuffled as in that format", "panels of rows go through matrix units"), nil
	default:
		times, err := f.predict(ctx, d, m, []*spec.Variant{rows, v}, o.cols())
		if err != nil {
			return "", err
		}
		if times[1] < times[0] {
			return fmt.Sprintf("panels are predicted to take %s, and rows %s", short(times[1]), short(times[0])), nil
		}
		why = fmt.Sprintf("rows are predicted to take %s, and panels %s", short(times[0]), short(times[1]))
	}
	f.kind = kernel.Rows
	return why, nil
}

// predict returns what multiplications by n columns are predicted to take in each variant, B being in fixed point,
// from a sample of the matrix. Every row of B is fetched anew for each entry or vector that meets it: a core's
// cache holds few in fixed point.
func (f *fixed) predict(ctx context.Context, d *Device, m formats.Sparse, vs []*spec.Variant, n int) ([]time.Duration, error) {
	rates, err := d.Rates(ctx)
	if err != nil {
		return nil, err
	}
	s := sample(m)
	rows, cols := m.Dims()
	var times []time.Duration
	for _, v := range vs {
		e, err := shaders.Reproducible.Encode(s, v)
		if err != nil {
			return nil, err
		}
		stats, _ := scale(e, s.NNZ(), m.NNZ())
		g, _ := d.model().Gather(shaders.Reproducible.Name, v.Name)
		n := g.Width(v, n)
		w := f.work(v, model.NewWork(rows, cols, n, m.Type(), stats, stats.Gathers, dtype.F32), cols, n, stats.Gathers)
		w.Gather = max(int64(g.Slower*float64(w.Gather)), stats.Gathers*int64(n)*int64(g.Bytes))
		b := rates.Bound(v, w)
		times = append(times, b.Memory+b.Gather+b.Compute)
	}
	return times, nil
}

// ranges returns the range of each of a's rows.
func ranges(a formats.Sparse) []rfx.Range {
	return formats.Dispatch(a, rfx.Rows[half.F16], rfx.Rows[half.BF16], rfx.Rows[float32])
}

// Reproduced returns the precision of the last multiplication in reproducible mode, and whether it was
// found by AutoP to lose nothing: then its finite outputs before alpha and beta are correctly rounded.
func (p *Plan) Reproduced() (bits rfx.P, lossless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fixed == nil || !p.fixed.ran {
		return 0, false
	}
	return p.fixed.bits, p.fixed.lossless
}

// settle makes the plan ready to multiply by b: with AutoP, at the precision that b needs.
func (p *Plan) settle(ctx context.Context, b *Matrix) error {
	f := p.fixed
	f.ran = true
	if !f.auto {
		return nil
	}
	cols, err := p.scan(ctx, b)
	if err != nil {
		return err
	}
	bits, lossless := rfx.Auto(f.rows, cols)
	if err := p.encodeFor(ctx, bits); err != nil {
		return err
	}
	f.lossless = lossless
	return nil
}

// encodeFor turns the plan to a precision.
func (p *Plan) encodeFor(ctx context.Context, bits rfx.P) error {
	f := p.fixed
	if bits == f.bits {
		return nil
	}
	v, err := f.variant(p.dev.Caps(), bits)
	if err != nil {
		return err
	}
	if f.parts[bits] == nil {
		var parts []part
		for lo := 0; lo == 0 || lo < p.Rows; lo += p.rowBlock {
			e, err := p.kern.Encode(f.matrix.RowRange(lo, min(lo+p.rowBlock, p.Rows)), v)
			if err != nil {
				closeParts(parts)
				return err
			}
			pt, err := p.dev.upload(ctx, e)
			if err != nil {
				closeParts(append(parts, pt))
				return err
			}
			parts = append(parts, pt)
		}
		f.parts[bits] = parts
	}
	f.bits, p.variant, p.parts = bits, v, f.parts[bits]
	return nil
}

// scan finds the ranges of b's columns, on the device.
func (p *Plan) scan(ctx context.Context, b *Matrix) ([]rfx.Range, error) {
	var cols []rfx.Range
	for j := range b.colBlocks() {
		w := &composer{p: p, problem: problem{b: b}}
		l := w.quantised(j)
		from, staged := w.source(j)
		if staged {
			if err := p.grow(&p.temps.b, from.bytes(), "staging of B"); err != nil {
				return nil, err
			}
		}
		if err := p.grow(&p.temps.q, l.Bytes(), "B in fixed point"); err != nil {
			return nil, err
		}
		bbuf, err := w.bring(j)
		if err != nil {
			return nil, err
		}
		if err := w.quantise(j, bbuf, false); err != nil {
			return nil, err
		}
		if _, err := p.dev.Run(ctx, w.launches...); err != nil {
			return nil, err
		}
		words := make([]rfx.Range, l.First())
		if len(words) > 0 {
			if err := p.temps.q.buf.Read(ctx, 0, backend.Bytes(words)); err != nil {
				return nil, err
			}
		}
		at := len(cols)
		cols = append(cols, make([]rfx.Range, l.N)...)
		for c := 1; c <= l.Chunks; c++ {
			for i := range l.N {
				cols[at+i] = cols[at+i].Join(words[c*l.LD+i])
			}
		}
	}
	return cols, nil
}

// quantised is how block j of B lies in fixed point.
func (w *composer) quantised(j int) quantise.Layout {
	l := w.b.blockLayout(0, j)
	return kernel.Layout(w.p.variant, l.rows, l.cols)
}

// quantise adds the launches that bring block j of B, which lies in buf, to fixed point; only the first of
// them, which finds ranges, unless whole.
func (w *composer) quantise(j int, buf backend.Buffer, whole bool) error {
	v, err := quantise.Variant(w.p.dev.Caps())
	if err != nil {
		return err
	}
	k, err := w.p.dev.kernel(quantise.Kernel, v)
	if err != nil {
		return err
	}
	from, _ := w.source(j)
	l, err := quantise.Launch(v, w.quantised(j), from.typ, from.ld)
	if err != nil {
		return err
	}
	args := []backend.Buffer{buf, w.p.temps.q.buf}
	if err := w.add(quantise.Kernel.Name, k, l.Groups, args, l.Params); err != nil || !whole {
		return err
	}
	return w.add(quantise.Kernel.Name, k, l.ThenGroups, args, l.ThenParams)
}

// possible refuses n columns at once where B in fixed point exceeds a buffer. With auto that is at the largest
// precision that may be needed, which takes most.
func (f *fixed) possible(d *Device, v *spec.Variant, k, n int) error {
	b := kernel.Layout(v, k, n).Bytes()
	if f.auto {
		b = quantise.NewLayout(k, n, rfx.P47).Bytes()
	}
	if b > d.limit() {
		return fmt.Errorf("%d columns of B in fixed point take %d bytes, and a buffer of %v at most %d: %w", n, b, d.Info(), d.limit(), backend.ErrUnsupported)
	}
	return nil
}

// work adds to what a multiplication by n columns takes in a variant: B is written and read in fixed point, its rows
// are fetched so, and matrix units multiply every pair of digits.
func (f *fixed) work(v *spec.Variant, w model.Work, k, n int, fetched int64) model.Work {
	row := 4 * int64(kernel.Layout(v, k, n).Row())
	w.Bytes += 2 * int64(k) * row
	w.Gather = fetched * row
	if len(v.Need.Shapes) > 0 {
		w.FLOPs *= int64(f.bits.Bytes() * f.bits.Bytes())
	}
	return w
}
