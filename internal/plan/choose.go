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
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// candidate is a way to multiply: a format's variant.
type candidate struct {
	kernel  *spec.Kernel
	variant *spec.Variant
	cost    time.Duration // predicted; unlikely if it cannot hold the matrix
}

// unlikely is the cost of what does not come into question.
const unlikely = time.Duration(math.MaxInt64)

func (c *candidate) name() string { return c.kernel.Name + "/" + c.variant.Name }

// packed is a matrix packed for a variant.
type packed struct {
	candidate
	why    string         // it was picked
	matrix formats.Sparse // of the variant's storage type
	enc    *spec.Encoded
	took   time.Duration // encoding
}

// Formats returns the names of the formats there are.
func Formats() []string {
	var names []string
	for _, k := range shaders.Formats() {
		names = append(names, k.Name)
	}
	return names
}

// choose packs the matrix for the first candidate that can hold it and that use takes, in this order: the one
// that was measured to be fastest, those that take it as it is encoded already, and by predicted time.
func choose(ctx context.Context, d *Device, a formats.Sparse, o Options, use func(*packed) error) (*packed, error) {
	cs, err := candidates(d.Caps(), a, o)
	if err != nil {
		return nil, err
	}
	if r := recall(d, a, o); r != nil && r.sort(cs) {
		return pack(ctx, cs, a, o, use, func(*candidate) string { return r.why("when this matrix was tuned") })
	}
	if as := adopting(cs, o); len(as) > 0 {
		if err := rank(ctx, d, as, a, o); err != nil {
			return nil, err
		}
		p, err := pack(ctx, as, a, o, use, func(*candidate) string { return "the matrix comes packed for it" })
		if err == nil || !refusal(err) {
			return p, err
		}
		o.Encoded = nil // what it is packed in does not fit the device
	}
	if len(cs) == 1 {
		return pack(ctx, cs, a, o, use, func(c *candidate) string { return "there is no other " + asked(o, c) })
	}
	if err := rank(ctx, d, cs, a, o); err != nil {
		return nil, err
	}
	return pack(ctx, cs, a, o, use, func(c *candidate) string { return predicted(cs, c) })
}

// adopting returns the candidates that take the matrix as it is encoded already.
func adopting(cs []*candidate, o Options) []*candidate {
	return slices.DeleteFunc(slices.Clone(cs), func(c *candidate) bool { return c.adopt(o) == nil })
}

// asked says what the only candidate was asked for.
func asked(o Options, c *candidate) string {
	if o.Variant != "" {
		return "variant " + o.Variant
	}
	return fmt.Sprintf("kernel for format %s and %v on this device", c.kernel.Name, c.variant.In)
}

// predicted compares a candidate with the best of the others.
func predicted(cs []*candidate, c *candidate) string {
	why := "it is predicted to take " + short(c.cost)
	for _, other := range cs {
		if other != c && other.cost != unlikely {
			return fmt.Sprintf("%s, and %s %s", why, other.name(), short(other.cost))
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

// pack packs the matrix for the first candidate that can hold it and that use takes. A refusal by one leaves it to
// the next; its error is told if all refuse.
func pack(ctx context.Context, cs []*candidate, a formats.Sparse, o Options, use func(*packed) error, why func(*candidate) string) (*packed, error) {
	var first error
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := c.pack(a, o)
		if err == nil {
			p.why = why(c)
			if err = use(p); err == nil {
				return p, nil
			}
			if !refusal(err) {
				return nil, err
			}
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// refusal tells whether an error is about one way to multiply, so that another may do.
func refusal(err error) bool {
	return errors.Is(err, backend.ErrUnsupported) || errors.Is(err, backend.ErrOutOfMemory)
}

// rank sorts candidates by what a multiplication is predicted to cost, from samples of the matrix
// packed for each. Those that cannot hold even that come last.
func rank(ctx context.Context, d *Device, cs []*candidate, a formats.Sparse, o Options) error {
	if len(cs) < 2 {
		return nil
	}
	pr, err := newPredictor(ctx, d, a, o.cols())
	if err != nil {
		return err
	}
	s := sample(a)
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.cost = unlikely
		if p, err := c.pack(s, Options{}); err == nil {
			stats, items := scale(p.enc, s.NNZ(), a.NNZ())
			_, c.cost = pr.Time(c.kernel.Name, c.variant, stats, items)
		}
	}
	slices.SortStableFunc(cs, func(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) })
	return nil
}

// scale extrapolates what was found of a sample to the whole matrix.
func scale(e *spec.Encoded, sampled, all int64) (s formats.Stats, items int64) {
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

// pack packs a matrix, or takes it as it is encoded already.
func (c *candidate) pack(a formats.Sparse, o Options) (*packed, error) {
	m := formats.ConvertTo(a, c.variant.In)
	start := time.Now()
	if enc := c.adopt(o); enc != nil {
		return &packed{candidate: *c, matrix: m, enc: enc, took: time.Since(start)}, nil
	}
	enc, err := c.kernel.Encode(m, c.variant)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", c.kernel.Name, err)
	}
	return &packed{candidate: *c, matrix: m, enc: enc, took: time.Since(start)}, nil
}

// adopt returns the matrix as it is encoded already, nil if that is not as the variant packs it.
func (c *candidate) adopt(o Options) *spec.Encoded {
	if o.Encoded == nil || o.Encoded.Format() != c.kernel.Name || c.kernel.Adopt == nil {
		return nil
	}
	enc, err := c.kernel.Adopt(o.Encoded, c.variant)
	if err != nil {
		return nil
	}
	return enc
}

// candidates returns the variants worth comparing: for each format, and each packing of it, the
// first in the kernel's table that the device can run.
func candidates(caps backend.Caps, a formats.Sparse, o Options) ([]*candidate, error) {
	prec := o.Precision
	if prec == dtype.Invalid {
		prec = a.Type()
	}
	if !slices.Contains([]dtype.Type{dtype.F16, dtype.BF16, dtype.TF32, dtype.F32}, prec) {
		return nil, fmt.Errorf("precision %v: want f16, bf16, tf32 or f32", prec)
	}
	auto := o.Format == "" || o.Format == "auto"
	if !auto && !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("unknown format %q (auto, %s)", o.Format, strings.Join(Formats(), ", "))
	}
	var cs []*candidate
	for _, k := range shaders.Formats() {
		if !auto && k.Name != o.Format {
			continue
		}
		var of []*candidate
		for _, v := range usable(k, caps, prec) {
			same := func(c *candidate) bool { return k.SamePacking(c.variant, v) }
			if o.Variant == v.Name || o.Variant == "" && !slices.ContainsFunc(of, same) {
				of = append(of, &candidate{kernel: k, variant: v})
			}
		}
		cs = append(cs, of...)
	}
	if len(cs) == 0 {
		return nil, fmt.Errorf("no kernel for format %s, precision %v%s on a device that runs %v: %w",
			pick(auto, "auto", o.Format), prec, pick(o.Variant != "", ", variant "+o.Variant, ""), caps.Code, backend.ErrUnsupported)
	}
	return cs, nil
}

// usable returns the kernel's variants for a precision that a device can run. tf32 is a way in which
// tensor cores compute; where there are none, its data are computed in f32.
func usable(k *spec.Kernel, caps backend.Caps, prec dtype.Type) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range k.Variants {
		if v.In == prec && v.Met(caps) {
			vs = append(vs, v)
		}
	}
	if len(vs) == 0 && prec == dtype.TF32 {
		return usable(k, caps, dtype.F32)
	}
	return vs
}

func pick(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}
