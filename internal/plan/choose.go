// Picking a format and a variant for a matrix and a device.

package plan

import (
	"cmp"
	"context"
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
	cost    time.Duration // predicted
}

// packed is a matrix packed for a variant.
type packed struct {
	candidate
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

// choose packs the matrix for the candidate that is predicted to be fastest and can hold it.
func choose(ctx context.Context, d *Device, a formats.Sparse, o Options) (*packed, error) {
	cs, err := candidates(d.Caps(), a, o)
	if err != nil {
		return nil, err
	}
	if len(cs) > 1 {
		if err := rank(ctx, d, cs, a, o); err != nil {
			return nil, err
		}
	}
	var first error
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := c.pack(a)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// rank sorts candidates by what a multiplication is predicted to cost, from samples of the matrix
// packed for each. Those that cannot hold even that come last.
func rank(ctx context.Context, d *Device, cs []*candidate, a formats.Sparse, o Options) error {
	ceil, err := d.Ceilings(ctx)
	if err != nil {
		return err
	}
	n := o.Cols
	if n <= 0 {
		n = DefaultCols
	}
	s := sample(a)
	rows, cols := a.Dims()
	nearby := distinct(a)
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.cost = math.MaxInt64
		if p, err := c.pack(s); err == nil {
			stats := scale(p.enc.Stats, s.NNZ(), a.NNZ())
			c.cost = ceil.bound(c.variant, newWork(rows, cols, n, c.variant, stats, fetched(stats, nearby), dtype.F32)).sum()
		}
	}
	slices.SortStableFunc(cs, func(x, y *candidate) int { return cmp.Compare(x.cost, y.cost) })
	return nil
}

// scale extrapolates the stats of a sample to the whole matrix.
func scale(s formats.Stats, sampled, all int64) formats.Stats {
	if sampled == all || sampled == 0 {
		return s
	}
	f := float64(all) / float64(sampled)
	for _, x := range []*int64{&s.StoredBytes, &s.Slots, &s.MACs, &s.Gathers} {
		*x = int64(float64(*x) * f)
	}
	return s
}

// pack packs a matrix.
func (c *candidate) pack(a formats.Sparse) (*packed, error) {
	m := formats.ConvertTo(a, c.variant.In)
	start := time.Now()
	enc, err := c.kernel.Encode(m, c.variant)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", c.kernel.Name, err)
	}
	return &packed{candidate: *c, matrix: m, enc: enc, took: time.Since(start)}, nil
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
