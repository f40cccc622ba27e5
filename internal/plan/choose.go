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

// candidate is a way to multiply: a format's variant and the matrix packed for it.
type candidate struct {
	kernel  *spec.Kernel
	variant *spec.Variant
	matrix  formats.Sparse // of the variant's storage type
	enc     *spec.Encoded
	took    time.Duration // encoding
	fetched int64         // rows of B that are fetched, see distinct
}

// Formats returns the names of the formats there are.
func Formats() []string {
	var names []string
	for _, k := range shaders.Formats() {
		names = append(names, k.Name)
	}
	return names
}

// choose packs the matrix for each candidate and returns the one that is predicted to be fastest. A
// single candidate is not predicted, which spares measuring the device.
func choose(ctx context.Context, d *Device, a formats.Sparse, o Options) (*candidate, error) {
	cs, err := candidates(d.Caps(), a, o)
	if err != nil {
		return nil, err
	}
	if cs, err = encodeAll(ctx, cs, a); err != nil {
		return nil, err
	}
	nearby := int64(math.Ceil(distinct(a) * float64(a.NNZ())))
	for _, c := range cs {
		c.fetched = min(nearby, c.enc.Stats.Gathers)
	}
	if len(cs) == 1 {
		return cs[0], nil
	}
	ceil, err := d.Ceilings(ctx)
	if err != nil {
		return nil, err
	}
	n := o.Cols
	if n <= 0 {
		n = DefaultCols
	}
	cost := func(c *candidate) time.Duration {
		w := newWork(c.enc.Rows, c.enc.Cols, n, c.variant, c.enc.Stats, c.fetched, dtype.F32)
		return ceil.bound(c.variant, w).sum()
	}
	return slices.MinFunc(cs, func(x, y *candidate) int { return cmp.Compare(cost(x), cost(y)) }), nil
}

// encodeAll packs the matrix for each candidate and returns those that can hold it, of which there is
// at least one unless it returns an error.
func encodeAll(ctx context.Context, cs []*candidate, a formats.Sparse) (ok []*candidate, err error) {
	var first error
	for _, c := range cs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.encode(a); err == nil {
			ok = append(ok, c)
		} else if first == nil {
			first = err
		}
	}
	if len(ok) == 0 {
		return nil, first
	}
	return ok, nil
}

// encode packs the matrix.
func (c *candidate) encode(a formats.Sparse) error {
	m := formats.ConvertTo(a, c.variant.In)
	start := time.Now()
	enc, err := c.kernel.Encode(m, c.variant)
	if err != nil {
		return fmt.Errorf("format %s: %w", c.kernel.Name, err)
	}
	c.matrix, c.enc, c.took = m, enc, time.Since(start)
	return nil
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
