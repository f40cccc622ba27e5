// Package choose decides which kernel variant multiplies with a matrix on a device.
//
// InOrder gives the ways to multiply, the best first, each with the reason for its place: what was measured when the
// matrix was tuned, what takes the matrix as it is encoded, or what package model predicts from the device's rates.
// The package keeps rates, corrections of the model and what tuning found in the user's cache folder.
package choose

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/memory"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Candidate is a way to multiply: a format's variant.
type Candidate struct {
	Kernel  *spec.Format
	Variant *spec.Variant
	Why     string        // reads behind "because": the reason for its place
	runs    *spec.Variant // the one that multiplies by w.Cols columns, once it is predicted
	cost    time.Duration // predicted; Unlikely if it cannot hold the matrix
	bound   api.Bound     // that the prediction is made from, as are stats and items
	stats   formats.Stats
	items   int64
	encode  time.Duration // of the whole matrix, estimated from a sample
	packed  *work.Packed  // the whole matrix, if the sample was all of it and has the matrix's values
	adopted *work.Packed  // the matrix as it comes, if the variant takes that
	room    int64         // bytes that a packed matrix may take
	far     bool          // it is predicted to be far from the best
	over    time.Duration // if not 0, it was not packed, as even the best packing takes this long
}

// Unlikely is the cost of a candidate that cannot hold the matrix, or is far from the best.
const Unlikely = time.Duration(math.MaxInt64)

// name identifies it: by the variant that the matrix is packed for.
func (c *Candidate) name() string { return c.Kernel.Name + "/" + c.Variant.Name }

// runner names the kernel that multiplies, for people.
func (c *Candidate) runner() string { return c.Kernel.Name + "/" + cmp.Or(c.runs, c.Variant).Kernel() }

// InOrder gives the ways to multiply in the order in which to try them: those that Choose returns, and behind those
// that take the matrix as it is encoded, the ones for the decoded matrix, which is decoded only then.
func InOrder(ctx context.Context, d *device.Device, w *work.Work) iter.Seq2[*Candidate, error] {
	return func(yield func(*Candidate, error) bool) {
		cs, err := Choose(ctx, d, w)
		for err == nil && len(cs) > 0 {
			for _, c := range cs {
				if !yield(c, nil) {
					return
				}
			}
			if cs[0].adopted == nil {
				return
			}
			w = w.Decoded()
			cs, err = Choose(ctx, d, w)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// Choose returns the ways to multiply in the order in which to try them: first the one that was measured to be fastest,
// else those that take the matrix as it is encoded, else all by predicted time.
func Choose(ctx context.Context, d *device.Device, w *work.Work) ([]*Candidate, error) {
	cs, err := candidates(d, w)
	if err != nil {
		return nil, err
	}
	if !w.Tune {
		if r := recall(d, w); r != nil && r.sort(cs) {
			return explain(cs, func(*Candidate) string { return r.why("when this matrix was tuned") }), nil
		}
		if as := adopting(cs, w.A); len(as) > 0 {
			return explain(as, func(*Candidate) string { return "the matrix comes packed for it" }), rankAdopting(ctx, d, as, w)
		}
	}
	if len(cs) == 1 {
		cs[0].Why = "there is no other " + requested(w, cs[0])
		return cs, nil
	}
	within := 1.0
	if w.Tune { // which measures those that are near
		within = math.Inf(1)
	}
	if err := price(ctx, d, cs, w, within); err != nil {
		return nil, err
	}
	dropFar(cs)
	sortByCost(cs, w.Uses)
	return explain(cs, func(c *Candidate) string { return predicted(cs, c) + forUses(c, w.Uses) }), nil
}

// explain sets why each candidate comes at its place.
func explain(cs []*Candidate, why func(*Candidate) string) []*Candidate {
	for _, c := range cs {
		c.Why = why(c)
	}
	return cs
}

// adopting returns the candidates that take the matrix as it comes, which is then their adopted.
func adopting(cs []*Candidate, a *work.Matrix) []*Candidate {
	var as []*Candidate
	for _, c := range cs {
		if a.Format() != c.Kernel.Name || c.Kernel.Adopt == nil || a.Kind() != dtype.Invalid || a.IsPart() {
			continue
		}
		if p, err := a.Adopt(c.Kernel, c.Variant); err == nil {
			c.adopted = p
			as = append(as, c)
		}
	}
	return as
}

// requested says what the only candidate fulfils.
func requested(w *work.Work, c *Candidate) string {
	switch {
	case w.AsksFor(c.Variant):
		return "kernel " + w.Variant
	case w.Variant != "":
		return "variant " + w.Variant
	}
	return fmt.Sprintf("kernel for format %s and %v on this device", c.Kernel.Name, c.Variant.In)
}

// predicted compares a candidate with the best of the others.
func predicted(cs []*Candidate, c *Candidate) string {
	why := "it is predicted to take " + Short(c.cost)
	var next *Candidate // of those that were not packed
	for _, other := range cs {
		if other != c && other.cost != Unlikely {
			return fmt.Sprintf("%s, and %s %s", why, other.runner(), Short(other.cost))
		}
		if other.over > 0 && (next == nil || other.over < next.over) {
			next = other
		}
	}
	if next != nil {
		why = fmt.Sprintf("%s, and %s at least %s", why, next.runner(), Short(next.over))
	}
	return why
}

// Short prints a time with three digits and a fitting unit.
func Short(d time.Duration) string { return Micros(float64(d) / float64(time.Microsecond)) }

// Micros prints a time in microseconds as Short does.
func Micros(us float64) string {
	switch {
	case us < 999.5:
		return fmt.Sprintf("%.3g µs", us)
	case us < 999.5e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

// hollow tells whether nearly all value slots of a packed matrix would be empty: those of a graph would take gigabytes.
func (c *Candidate) hollow(a *work.Matrix) bool {
	const most = 64 // slots for an entry
	rows, cols := a.Dims()
	return c.Kernel.Slots != nil && c.Kernel.Slots(rows, cols)/most > a.NNZ()
}

// predict predicts the variant that multiplies where the matrix, or a sample of it, is packed as enc, the whole matrix
// having these stats.
func (c *Candidate) predict(d *device.Device, pr *model.Predictor, enc *spec.Packed, s formats.Stats,
	items int64) (api.Bound, time.Duration) {
	if enc != nil {
		whole := *enc
		whole.Stats, whole.Items = s, items
		enc = &whole
	}
	q := spec.Problem{M: pr.Rows, K: pr.Cols, N: pr.N, BCol: pr.Columns, CCol: pr.Columns, Caps: d.Caps()}
	c.runs = c.Kernel.Runs(c.Variant, enc, q)
	b, t := pr.Time(c.Kernel.Name, c.runs, s, items)
	return b, t + pr.Passes(c.runs)
}

// dropFar rules out what takes a matrix of any pattern, at the same cost, and is predicted to be far from the best:
// where the best cannot be had, this must not be tried either, for it may take all memory.
func dropFar(cs []*Candidate) {
	const far = 16
	least := slices.MinFunc(cs, func(x, y *Candidate) int { return cmp.Compare(x.cost, y.cost) }).cost
	for _, c := range cs {
		if c.Kernel.Measure != nil && c.cost/far > least {
			c.cost, c.far = Unlikely, true
		}
	}
}

// measure tells what packing a matrix gives, with s a sample of it, and returns that packed; nil if that need not be.
func (c *Candidate) measure(ctx context.Context, a, s *work.Matrix) (*spec.Packed, formats.Stats, int64, error) {
	if c.Kernel.Measure != nil {
		stats, items, err := c.measured(a.Encoded)
		return nil, stats, items, err
	}
	e, err := c.Pack(ctx, s)
	if err != nil {
		return nil, formats.Stats{}, 0, err
	}
	c.encode = e.Took
	if all, sampled := a.NNZ(), s.NNZ(); sampled < all {
		c.encode = time.Duration(float64(e.Took) * float64(all) / float64(max(1, sampled)))
	} else if e.Block == 0 && a.Kind() == dtype.Invalid { // a quantised sample has other scales
		c.packed = e
	}
	stats, items := work.Scale(e.Data, s.NNZ(), a.NNZ())
	return e.Data, stats, items, nil
}

// measured is measure for a kernel that knows it of any matrix. What there is no memory for is refused.
func (c *Candidate) measured(a formats.Encoded) (formats.Stats, int64, error) {
	rows, cols := a.Dims()
	stats, items, err := c.Kernel.Measure(rows, cols, a.NNZ(), c.Variant)
	if err == nil && c.far {
		err = fmt.Errorf("kernel %s is predicted to take far longer than others", c.name())
	}
	if err == nil && c.room > 0 && stats.StoredBytes > c.room {
		err = fmt.Errorf("kernel %s: %d×%d elements take %d bytes, and there is memory for %d: %w", c.name(), rows, cols, stats.StoredBytes, c.room, backend.ErrOutOfMemory)
	}
	if err != nil {
		return stats, items, work.NotHeld(c.Kernel.Name, err)
	}
	return stats, items, nil
}

// room is how many bytes of a matrix the device and the host have memory for: of what they have, a good part is left to
// B and C, and to the program. It is 0 if that is not known.
func room(d *device.Device) int64 {
	least := memory.Available() / 2
	if m := d.Info().Memory / 4 * 3; m > 0 && (least <= 0 || m < least) {
		least = m
	}
	return max(0, least)
}

// rankAdopting sorts candidates that take the matrix as it comes by what a multiplication is predicted to cost. They
// are packed whole, so that nothing need be decoded or encoded.
func rankAdopting(ctx context.Context, d *device.Device, cs []*Candidate, w *work.Work) error {
	if len(cs) < 2 {
		return nil
	}
	pr, err := newPredictor(ctx, d, w.A.Encoded, w)
	if err != nil {
		return err
	}
	for _, c := range cs {
		_, c.cost = c.predict(d, pr, c.adopted.Data, c.adopted.Data.Stats, c.adopted.Data.Items)
	}
	sortByCost(cs, 0)
	return nil
}

// sortByCost sorts by predicted time; where the number of uses is known, by that of packing and all uses.
func sortByCost(cs []*Candidate, uses int) {
	slices.SortStableFunc(cs, func(x, y *Candidate) int { return cmp.Compare(x.total(uses), y.total(uses)) })
}

// Pack packs a matrix, or takes it as it comes: the one that the candidate was chosen for, or, of one that is not taken
// as it comes, some rows.
func (c *Candidate) Pack(ctx context.Context, a *work.Matrix) (*work.Packed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.adopted != nil {
		return c.adopted, nil
	}
	if c.packed != nil && sameSize(a, c.packed.Matrix) {
		return c.packed, nil
	}
	if c.Kernel.Measure != nil {
		if _, _, err := c.measured(a.Encoded); err != nil {
			return nil, err
		}
	}
	return work.Abandon(ctx, func() (*work.Packed, error) { return a.Pack(c.Kernel, c.Variant) }, nil)
}

// sameSize tells whether a is all of b, rather than some of its rows.
func sameSize(a, b *work.Matrix) bool {
	rows, _ := a.Dims()
	all, _ := b.Dims()
	return rows == all && a.NNZ() == b.NNZ()
}

// candidates returns the variants worth comparing: for each format, and each packing of it, the
// first in the kernel's table that the device can run.
func candidates(d *device.Device, w *work.Work) ([]*Candidate, error) {
	caps, prec, kind := d.Caps(), w.Precision, w.A.Kind()
	most := room(d)
	var cs []*Candidate
	var there []string // the kernels that might have been asked for
	for _, k := range shaders.Formats() {
		if w.Format != "" && k.Name != w.Format {
			continue
		}
		if w.A.IsPart() && k.EncodeShare == nil {
			if w.Format == "" {
				continue
			}
			return nil, fmt.Errorf("Options.Whole: format %s sums rows of a larger matrix otherwise than within it: %w", k.Name, backend.ErrUnsupported)
		}
		var of []*Candidate
		for _, v := range usable(k, caps, prec, kind) {
			same := func(c *Candidate) bool { return k.SamePacking(c.Variant, v) }
			switch {
			case w.AsksFor(v):
				only := *k
				only.Suited = nil // no other variant multiplies
				of = append(of, &Candidate{Kernel: &only, Variant: v, room: most})
			case w.Variant == v.Name || w.Variant == "" && !slices.ContainsFunc(of, same):
				of = append(of, &Candidate{Kernel: k, Variant: v, room: most})
			}
			if !v.Any {
				there = append(there, k.Name+"/"+v.KernelName())
			}
		}
		cs = append(cs, of...)
	}
	format := w.FormatName()
	if kind != dtype.Invalid {
		format += fmt.Sprintf(" with values of %v", kind)
	}
	switch {
	case len(cs) > 0:
		return cs, nil
	case prec == dtype.F64 && !caps.F64:
		return nil, fmt.Errorf("no kernel for precision f64 on %v: %s: %w", d.Info(), device.WithoutDoubles(caps),
			backend.ErrUnsupported)
	case len(there) > 0:
		slices.Sort(there)
		return nil, fmt.Errorf("kernel %q: for format %s and precision %v this device runs %s: %w",
			w.Variant, format, prec, strings.Join(near(w.Variant, slices.Compact(there)), ", "), backend.ErrUnsupported)
	}
	return nil, fmt.Errorf("no kernel for format %s, precision %v on a device that runs %v: %w", format, prec, caps.Code, backend.ErrUnsupported)
}

// near returns the names that share a word with the one that was asked for, or all of them.
func near(asked string, names []string) []string {
	words := strings.FieldsFunc(asked, func(r rune) bool { return r == '/' || r == '_' || r == '-' })
	close := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	})
	if len(close) > 0 {
		return close
	}
	return names
}

// usable returns the kernel's variants for a precision that a device can run. tf32 is a way in which
// tensor cores compute; its data are computed in f32 where there are none, or where that is faster. kind is that of
// quantised values.
func usable(k *spec.Format, caps backend.Caps, prec, kind dtype.Type) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range k.Variants {
		if v.In == prec && v.Quant == kind && v.Met(caps) {
			vs = append(vs, v)
		}
	}
	if prec == dtype.TF32 {
		vs = append(vs, usable(k, caps, dtype.F32, kind)...)
	}
	return vs
}

// On returns the candidate of the same format and packing for another device.
func (c *Candidate) On(d *device.Device, w *work.Work) (*Candidate, error) {
	for _, v := range usable(c.Kernel, d.Caps(), w.Precision, w.A.Kind()) {
		if v == c.Variant || w.Variant == "" && c.Kernel.SamePacking(c.Variant, v) {
			return &Candidate{Kernel: c.Kernel, Variant: v, Why: c.Why, room: c.room}, nil
		}
	}
	return nil, fmt.Errorf("no kernel for format %s and %v as on the group's first device: %w", c.Kernel.Name, w.Precision, backend.ErrUnsupported)
}
