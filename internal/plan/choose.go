// Picking a format and a variant for a matrix and a device.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/memory"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// candidate is a way to multiply: a format's variant.
type candidate struct {
	kernel  *spec.Format
	variant *spec.Variant
	cost    time.Duration // predicted; unlikely if it cannot hold the matrix
	why     string        // it comes at its place
	runs    *spec.Variant // what multiplies by as many columns as are asked for, as far as it is known; else nil
	exact   bool          // no other variant may multiply
	cols    int           // that are asked for
	adopted *encoded      // the matrix as it comes, if the variant takes that
	room    int64         // bytes that a packed matrix may take
	far     bool          // it is predicted to be far from the best
}

// unlikely is the cost of what does not come into question.
const unlikely = time.Duration(math.MaxInt64)

// name identifies it: by what the matrix is packed for.
func (c *candidate) name() string { return c.kernel.Name + "/" + c.variant.Name }

// runner names the kernel that multiplies, for people.
func (c *candidate) runner() string { return c.kernel.Name + "/" + cmp.Or(c.runs, c.variant).Kernel() }

// encoded is a matrix packed for a variant.
type encoded struct {
	kernel    *spec.Format
	variant   *spec.Variant
	format    string     // what the matrix is packed in
	name      string     // of the variant, for people
	precision dtype.Type // what products are computed with
	matrix    *source    // of the variant's storage type
	enc       *spec.Packed
	took      time.Duration // encoding
	adopted   bool          // enc shares memory with the matrix as it came
	exact     bool          // no other variant may multiply
	cols      int           // of B, that it was chosen for
	block     int           // if not 0, enc has so many rows, and the rest is to be packed in blocks of as many
}

// Formats returns the names of the formats there are.
func Formats() []string {
	var names []string
	for _, k := range shaders.Formats() {
		names = append(names, k.Name)
	}
	return names
}

// choose returns the ways to multiply in the order in which to try them, and says why: first what was measured to be
// fastest, else what takes the matrix as it is encoded already, else by predicted time.
func choose(ctx context.Context, d *Device, a *source, o Options) ([]*candidate, error) {
	cs, err := candidates(d, a, o)
	if err != nil {
		return nil, err
	}
	if !o.Tune {
		if r := recall(d, a, o); r != nil && r.sort(cs) {
			return explain(cs, func(*candidate) string { return r.why("when this matrix was tuned") }), nil
		}
		if as := adopting(cs, a); len(as) > 0 {
			return explain(as, func(*candidate) string { return "the matrix comes packed for it" }), rankAdopting(ctx, d, as, a, o)
		}
	}
	if len(cs) == 1 {
		return explain(cs, func(c *candidate) string { return "there is no other " + requested(o, c) }), nil
	}
	if err := rank(ctx, d, cs, a, o); err != nil {
		return nil, err
	}
	return explain(cs, func(c *candidate) string { return predicted(cs, c) }), nil
}

// explain sets why each candidate comes at its place.
func explain(cs []*candidate, why func(*candidate) string) []*candidate {
	for _, c := range cs {
		c.why = why(c)
	}
	return cs
}

// adopting returns the candidates that take the matrix as it comes, which is then their adopted.
func adopting(cs []*candidate, a *source) []*candidate {
	var as []*candidate
	for _, c := range cs {
		if a.Format() != c.kernel.Name || c.kernel.Adopt == nil || a.quantised != nil || a.of != (Extent{}) {
			continue
		}
		start := time.Now()
		if enc, err := c.kernel.Adopt(a.Encoded, c.variant); err == nil {
			c.adopted = c.encoded(a, enc, time.Since(start))
			c.adopted.adopted = true
			as = append(as, c)
		}
	}
	return as
}

// requested says what the only candidate fulfils.
func requested(o Options, c *candidate) string {
	switch {
	case c.exact:
		return "kernel " + o.Variant
	case o.Variant != "":
		return "variant " + o.Variant
	}
	return fmt.Sprintf("kernel for format %s and %v on this device", c.kernel.Name, c.variant.In)
}

// predicted compares a candidate with the best of the others.
func predicted(cs []*candidate, c *candidate) string {
	why := "it is predicted to take " + short(c.cost)
	for _, other := range cs {
		if other != c && other.cost != unlikely {
			return fmt.Sprintf("%s, and %s %s", why, other.runner(), short(other.cost))
		}
	}
	return why
}

// short prints a time with three digits.
func short(d time.Duration) string {
	us := float64(d) / float64(time.Microsecond)
	switch {
	case us < 999.5:
		return fmt.Sprintf("%.3g µs", us)
	case us < 999.5e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

// cannotHold is the error of a format that cannot hold a matrix.
type cannotHold struct{ error }

func (e cannotHold) Unwrap() error { return e.error }

// refusal tells whether an error is about one way to multiply, so that another may do.
func refusal(err error) bool {
	return errors.As(err, new(cannotHold)) || errors.Is(err, backend.ErrUnsupported) || errors.Is(err, backend.ErrCompile) || errors.Is(err, backend.ErrOutOfMemory)
}

// rank sorts candidates by what a multiplication is predicted to cost, from samples of the matrix
// packed for each. Those that cannot hold even that come last.
func rank(ctx context.Context, d *Device, cs []*candidate, a *source, o Options) error {
	if len(cs) < 2 {
		return nil
	}
	if err := price(ctx, d, cs, a, o); err != nil {
		return err
	}
	dropFar(cs)
	sortByCost(cs)
	return nil
}

// price sets what a multiplication is predicted to cost with each candidate.
func price(ctx context.Context, d *Device, cs []*candidate, a *source, o Options) error {
	pr, err := newPredictor(ctx, d, a.csr(), o.cols())
	if err != nil {
		return err
	}
	s, err := a.sampled()
	if err != nil {
		return err
	}
	for _, c := range cs {
		c.cost = unlikely
		if o.anyFormat() && c.hollow(a) {
			continue
		}
		enc, stats, items, err := c.measure(ctx, a, s)
		if errors.As(err, new(cannotHold)) {
			continue
		}
		if err != nil {
			return err
		}
		_, c.cost = c.predict(d, pr, enc, stats, items)
	}
	return nil
}

// hollow tells whether nearly all value slots of a packed matrix would be empty: those of a graph would take gigabytes.
func (c *candidate) hollow(a *source) bool {
	const most = 256 // slots for an entry
	rows, cols := a.Dims()
	return c.kernel.Slots != nil && c.kernel.Slots(rows, cols)/most > a.NNZ()
}

// predict predicts the variant that multiplies where the matrix, or a sample of it, is packed as enc, the whole matrix having these stats.
func (c *candidate) predict(d *Device, pr *model.Predictor, enc *spec.Packed, s formats.Stats, items int64) (Bound, time.Duration) {
	if enc != nil {
		whole := *enc
		whole.Stats, whole.Items = s, items
		enc = &whole
	}
	c.runs = runs(c.kernel, c.variant, c.exact, enc, spec.Problem{M: pr.Rows, K: pr.Cols, N: pr.N, Caps: d.Caps()})
	return pr.Time(c.kernel.Name, c.runs, s, items)
}

// runs decides which variant multiplies in a problem what is packed for v: predictions, launches and reports go by it.
func runs(k *spec.Format, v *spec.Variant, exact bool, e *spec.Packed, p spec.Problem) *spec.Variant {
	if exact {
		return v
	}
	return k.Runs(v, e, p)
}

// dropFar rules out what takes a matrix of any pattern, at the same cost, and is predicted to be far from the best: where
// the best cannot be had, this must not be tried either, for it may take all memory.
func dropFar(cs []*candidate) {
	const far = 16
	least := slices.MinFunc(cs, func(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) }).cost
	for _, c := range cs {
		if c.kernel.Measure != nil && c.cost/far > least {
			c.cost, c.far = unlikely, true
		}
	}
}

// measure tells what packing a matrix gives, of which s is a sample, and returns that packed; nil if that need not be.
func (c *candidate) measure(ctx context.Context, a, s *source) (*spec.Packed, formats.Stats, int64, error) {
	if c.kernel.Measure != nil {
		stats, items, err := c.measured(a.Encoded)
		return nil, stats, items, err
	}
	e, err := c.encode(ctx, s)
	if err != nil {
		return nil, formats.Stats{}, 0, err
	}
	stats, items := scale(e.enc, s.NNZ(), a.NNZ())
	return e.enc, stats, items, nil
}

// measured is measure for a kernel that knows it of any matrix. What there is no memory for is refused.
func (c *candidate) measured(a formats.Encoded) (formats.Stats, int64, error) {
	rows, cols := a.Dims()
	stats, items, err := c.kernel.Measure(rows, cols, a.NNZ(), c.variant)
	if err == nil && c.far {
		err = fmt.Errorf("kernel %s is predicted to take far longer than others", c.name())
	}
	if err == nil && c.room > 0 && stats.StoredBytes > c.room {
		err = fmt.Errorf("kernel %s: %d×%d elements take %d bytes, and there is memory for %d: %w", c.name(), rows, cols, stats.StoredBytes, c.room, backend.ErrOutOfMemory)
	}
	if err != nil {
		return stats, items, cannotHold{fmt.Errorf("format %s: %w", c.kernel.Name, err)}
	}
	return stats, items, nil
}

// room is how many bytes of a matrix the device and the host have memory for: of what they have, a good part is left to B
// and C, and to the program. It is 0 if that is not known.
func room(d *Device) int64 {
	least := memory.Available() / 2
	if m := d.Info().Memory / 4 * 3; m > 0 && (least <= 0 || m < least) {
		least = m
	}
	return max(0, least)
}

// rankAdopting is rank for candidates that take the matrix as it comes: packed whole, so that nothing need be
// decoded or encoded.
func rankAdopting(ctx context.Context, d *Device, cs []*candidate, a *source, o Options) error {
	if len(cs) < 2 {
		return nil
	}
	pr, err := newPredictor(ctx, d, a.Encoded, o.cols())
	if err != nil {
		return err
	}
	for _, c := range cs {
		_, c.cost = c.predict(d, pr, c.adopted.enc, c.adopted.enc.Stats, c.adopted.enc.Items)
	}
	sortByCost(cs)
	return nil
}

func sortByCost(cs []*candidate) {
	slices.SortStableFunc(cs, func(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) })
}

// scale extrapolates what was found of a sample to the whole matrix.
func scale(e *spec.Packed, sampled, all int64) (s formats.Stats, items int64) {
	s, items = e.Stats, e.Items
	if sampled == all || sampled == 0 {
		return s, items
	}
	f := float64(all) / float64(sampled)
	for _, x := range []*int64{&s.StoredBytes, &s.Slots, &s.MACs, &s.Gathers, &items} {
		*x = int64(float64(*x) * f)
	}
	return s, items
}

// encode packs a matrix, or takes it as it comes.
func (c *candidate) encode(ctx context.Context, a *source) (*encoded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.adopted != nil {
		return c.adopted, nil
	}
	if c.kernel.Measure != nil {
		if _, _, err := c.measured(a.Encoded); err != nil {
			return nil, err
		}
	}
	a.csr()
	start := time.Now()
	if c.kernel.EncodeShare != nil && a.quantised == nil && a.NNZ() > mostAtOnce {
		return c.encodeBlocks(a, start)
	}
	m, enc, err := a.pack(c.kernel, c.variant)
	if err != nil {
		return nil, cannotHold{fmt.Errorf("format %s: %w", c.kernel.Name, err)}
	}
	return c.encoded(m, enc, time.Since(start)), nil
}

// mostAtOnce is how many entries a packed matrix may have: as many as a buffer can. (A test sets it.)
var mostAtOnce = int64(1) << 31

// encodeBlocks is encode for a matrix that is too large to be packed at once. What it returns has the first rows.
func (c *candidate) encodeBlocks(a *source, start time.Time) (*encoded, error) {
	m := newSource(formats.ConvertTo(a.csr(), c.variant.In))
	rows, _ := m.Dims()
	ptr, _ := m.csr().Pattern()
	if m.of = a.of; m.of == (Extent{}) {
		m.of = Extent{Rows: rows, NNZ: m.NNZ()}
		m.of.Pieces = m.of.CountPieces(ptr)
	}
	block := rows
	for longest := m.NNZ(); longest > mostAtOnce && block > 1; {
		block = max(1, partRows(block/2, 1))
		longest = 0
		for lo := 0; lo < rows; lo += block {
			longest = max(longest, ptr[min(lo+block, rows)]-ptr[lo])
		}
		if block <= partRows(1, 1) {
			break // a refusal of the kernel's says the rest
		}
	}
	enc, err := m.part(0, min(block, rows), c.kernel, c.variant, nil)
	if err != nil {
		return nil, cannotHold{fmt.Errorf("format %s: %w", c.kernel.Name, err)}
	}
	e := c.encoded(m, enc, time.Since(start))
	e.block = block
	return e, nil
}

// encoded describes a matrix that was packed for the candidate.
func (c *candidate) encoded(m *source, enc *spec.Packed, took time.Duration) *encoded {
	return &encoded{
		kernel: c.kernel, variant: c.variant, format: c.kernel.Name, name: c.variant.Name, precision: c.variant.In,
		matrix: m, enc: enc, took: took, exact: c.exact, cols: c.cols,
	}
}

// candidates returns the variants worth comparing: for each format, and each packing of it, the
// first in the kernel's table that the device can run.
func candidates(d *Device, a *source, o Options) ([]*candidate, error) {
	caps, prec := d.Caps(), o.precision(a)
	most := room(d)
	var cs []*candidate
	var there []string // what might have been asked for
	for _, k := range shaders.Formats() {
		if !o.anyFormat() && k.Name != o.Format {
			continue
		}
		if a.of != (Extent{}) && k.EncodeShare == nil {
			if o.anyFormat() {
				continue
			}
			return nil, fmt.Errorf("Options.Whole: format %s sums rows of a larger matrix otherwise than within it: %w", k.Name, backend.ErrUnsupported)
		}
		var of []*candidate
		for _, v := range usable(k, caps, prec, a.kind()) {
			same := func(c *candidate) bool { return k.SamePacking(c.variant, v) }
			exact := o.asksFor(v)
			if exact || o.Variant == v.Name || o.Variant == "" && !slices.ContainsFunc(of, same) {
				of = append(of, &candidate{kernel: k, variant: v, room: most, exact: exact, cols: o.cols()})
			}
			if !v.Any {
				there = append(there, k.Name+"/"+v.KernelName())
			}
		}
		cs = append(cs, of...)
	}
	format := pick(o.anyFormat(), "auto", o.Format)
	if a.kind() != dtype.Invalid {
		format += fmt.Sprintf(" with values of %v", a.kind())
	}
	switch {
	case len(cs) > 0:
		return cs, nil
	case prec == dtype.F64 && !caps.F64:
		return nil, fmt.Errorf("no kernel for precision f64 on %v: %s: %w", d.Info(), withoutDoubles(caps), backend.ErrUnsupported)
	case len(there) > 0:
		slices.Sort(there)
		return nil, fmt.Errorf("kernel %q: for format %s and precision %v this device runs %s: %w",
			o.Variant, format, prec, strings.Join(near(o.Variant, slices.Compact(there)), ", "), backend.ErrUnsupported)
	}
	return nil, fmt.Errorf("no kernel for format %s, precision %v on a device that runs %v: %w", format, prec, caps.Code, backend.ErrUnsupported)
}

// near returns the names that share a word with what was asked for, or all of them.
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

// withoutDoubles says why a device multiplies nothing of f64, and which does.
func withoutDoubles(c backend.Caps) string {
	const others = "the cpu backend has it, as have cuda and vulkan on most GPUs"
	switch c.Code {
	case backend.CodeWGSL:
		return "WebGPU has no numbers of 64 bits; " + others
	case backend.CodeSPIRV:
		return "it lacks the feature shaderFloat64, or room for 144 bytes of push constants; " + others
	}
	return others
}

// usable returns the kernel's variants for a precision that a device can run. tf32 is a way in which
// tensor cores compute; its data are computed in f32 where there are none, or where that is faster. kind is that of quantised values.
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

func pick(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}
