// Which variants must run a case: a function of the device's capabilities and the case alone. The runner asks it
// before it multiplies, and Verifier asks it of the capabilities that a manifest records. A case is unsupported only
// where this file says so; whatever else keeps an eligible variant from running is a failure.

package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// eligibility answers for one device.
type eligibility struct {
	caps     backend.Caps
	unlisted bool                             // matrix shapes that the device does not list run too
	rotated  map[string][]string              // of these, the names of those that run, by kernels; nil: all
	remade   map[*spec.Format][]*spec.Variant // variants for those shapes
}

func newEligibility(caps backend.Caps, unlisted bool) *eligibility {
	return &eligibility{caps: caps, unlisted: unlisted, remade: map[*spec.Format][]*spec.Variant{}}
}

// variants returns those that must run a case, and how many of them the device lists the matrix shapes of: these
// come first. In reproducible mode through package spmm it is one nil: the plan picks the variant.
func (e *eligibility) variants(t *test) (vs []*spec.Variant, listed int) {
	if t.doubles() && !e.caps.F64 {
		return nil, 0
	}
	if t.class == Reproducible && t.path != direct {
		return []*spec.Variant{nil}, 1
	}
	for _, v := range t.kernel.Variants {
		if t.fits(v) && v.Met(e.caps) {
			vs = append(vs, v)
		}
	}
	if t.path != direct {
		if len(vs) == 0 && t.prec == dtype.TF32 && !e.has(t.kernel, dtype.TF32) { // computed in f32, says package spmm
			f32 := *t
			f32.prec = dtype.F32
			return e.variants(&f32)
		}
		n := min(1, len(vs))
		return vs[:n], n
	}
	writes := func(v *spec.Variant) bool { return t.c == v.Sums() || slices.Contains(v.Out, t.c) }
	vs = slices.DeleteFunc(vs, func(v *spec.Variant) bool { return !writes(v) })
	listed = len(vs)
	if e.unlisted && t.kind != most { // which takes a software driver minutes on foreign shapes
		for _, v := range e.others(t.kernel) {
			if t.fits(v) && writes(v) && e.runs(t.kernel, v) {
				vs = append(vs, v)
			}
		}
	}
	return vs, listed
}

// has reports whether the device runs a variant of a kernel that computes in a precision.
func (e *eligibility) has(k *spec.Format, prec dtype.Type) bool {
	return slices.ContainsFunc(k.Variants, func(v *spec.Variant) bool { return v.In == prec && v.Met(e.caps) })
}

// named returns the variant of a kernel with that name, nil if the device cannot run one.
func (e *eligibility) named(k *spec.Format, name string) *spec.Variant {
	for _, v := range slices.Concat(k.Variants, e.others(k)) {
		if v.Name == name && v.Met(e.caps) {
			return v
		}
	}
	return nil
}

// others returns k's variants for matrix shapes that the device does not list, rewritten for its least subgroup
// size: the same number of subgroups, of that size.
func (e *eligibility) others(k *spec.Format) []*spec.Variant {
	if vs, ok := e.remade[k]; ok {
		return vs
	}
	vs := []*spec.Variant{}
	variants := k.Variants
	if k == shaders.Reproducible {
		vs, variants = unlistedT3(e.caps), nil
	}
	for _, v := range variants {
		if v.Code != e.caps.Code || !v.Matrix || v.Met(e.caps) {
			continue
		}
		x := remake(k, v, e.caps.SubgroupMin)
		if x != nil && x.Met(e.caps) && !slices.ContainsFunc(vs, func(o *spec.Variant) bool { return o.Name == x.Name }) {
			vs = append(vs, x)
		}
	}
	e.remade[k] = vs
	return vs
}

// runs reports whether a variant for a matrix shape that the device does not list is among those that run.
func (e *eligibility) runs(k *spec.Format, v *spec.Variant) bool {
	return e.rotated == nil || slices.Contains(e.rotated[k.Name], v.Name)
}

// rotate leaves each kernel one variant for a matrix shape that the device does not list: if there is one, for a shape
// that no kernel before it has. Kernels of large tiles have none left.
func (e *eligibility) rotate() {
	const most = 2048 // outputs of a tile: a driver compiles those of dense for 20 seconds
	e.rotated = map[string][]string{}
	covered := map[string]bool{}
	rank := func(v *spec.Variant) int { // low panels come first: they compile faster
		if covered[tile(v.Const)] {
			return v.Tile.Panel + 1<<16
		}
		return v.Tile.Panel
	}
	for _, k := range append(shaders.Formats(), shaders.Reproducible) {
		var first *spec.Variant
		for _, v := range e.others(k) {
			if v.Tile.Rows*v.Tile.Cols <= most && (first == nil || rank(v) < rank(first)) {
				first = v
			}
		}
		if first != nil {
			e.rotated[k.Name], covered[tile(first.Const)] = []string{first.Name}, true
		}
	}
}

// tile is a variant's matrix shape, as its constants give it.
func tile(constant func(name string) uint32) string {
	return fmt.Sprintf("%d×%d×%d", constant("TM"), constant("TN"), constant("TK"))
}

// remake returns a variant made over for subgroups of another size, whatever matrix shapes the device lists; nil if it
// cannot be. Of tiles side by side it keeps two a subgroup: a software driver compiles for as long as there are tiles.
func remake(k *spec.Format, v *spec.Variant, sub uint32) *spec.Variant {
	if k.Remake != nil {
		if v = k.Remake(v, sub); v != nil {
			v.Need.Shapes = nil
		}
		return v
	}
	const most = 64 // rows of a tile: a software driver takes minutes to compile larger ones
	if v.Const("SUBS") == 0 || v.Tile.Rows > most {
		return nil
	}
	x := *v
	x.Need.Shapes = nil
	x.Sub = sub
	x.Local[0] = x.Sub * v.Const("SUBS")
	x.Consts = slices.Clone(v.Consts)
	columns := v.Const("TN")
	if v.Const("SWAP") == 1 {
		columns = v.Const("TM")
	}
	for i := range x.Consts {
		switch c := &x.Consts[i]; {
		case c.Name == "LOCAL":
			c.Value = x.Local[0]
		case c.Name == "COLS" && c.ID >= 0: // else it is in the code
			c.Value = min(c.Value, 2*columns*v.Const("SUBS"))
			x.Tile.Cols = int(c.Value)
		}
	}
	x.Name = strings.Replace(v.Name, fmt.Sprintf("_sub%d", v.Sub), fmt.Sprintf("_sub%d", x.Sub), 1)
	return &x
}

// composition is a case's arrays and launch for a variant, made by the kernel's table on the host.
type composition struct {
	encoded *spec.Packed
	problem spec.Problem
	launch  spec.Launch
	fixed   *quantised // set in reproducible mode
}

// compose encodes the matrix and lays out the launch. It touches no device: an error that is ErrUnsupported says that
// the format does not take this matrix, or that the device's limits do not admit it.
func compose(t *test, p *instance, v *spec.Variant, caps backend.Caps) (c composition, err error) {
	if c.encoded, err = t.kernel.Encode(formats.ConvertTo(p.a, t.prec), v); err != nil {
		return c, err
	}
	c.problem = spec.Problem{
		M: p.m, K: p.k, N: p.n, LDB: (p.n + 7) &^ 7, LDC: p.n, Out: t.c, Alpha: p.alpha, Beta: p.beta, Epilogue: p.epilogue,
		Caps: caps,
	}
	if t.pad {
		c.problem.LDB += 16
		c.problem.LDC += 5
		c.problem.Epilogue.BiasShift = 3
	}
	if t.path != direct { // package plan converts types that the variant does not write
		c.problem.Out = v.Sums()
	}
	if c.launch, err = t.kernel.LaunchSuited(v, c.encoded, c.problem); err == nil && t.class == Reproducible {
		c.fixed, err = quantiseFor(t, v, c.problem)
	}
	return c, err
}

// quantised is how kernel quantise brings B to fixed point.
type quantised struct {
	launch spec.Launch // its arguments are B and the result
	bytes  int
}

// quantiseFor lays out how B is brought to the fixed point that the variant takes.
func quantiseFor(t *test, v *spec.Variant, p spec.Problem) (*quantised, error) {
	q, err := quantise.Variant(p.Caps)
	if err != nil {
		return nil, err
	}
	layout := kernel.Layout(v, p.K, p.N)
	l, err := quantise.Launch(q, layout, t.prec, p.LDB)
	return &quantised{l, int(layout.Bytes())}, err
}

// refuses reports whether a kernel's table refuses a case for a variant: the one reason, besides having no eligible
// variant, for which a case may be unsupported.
func refuses(t *test, p *instance, v *spec.Variant, caps backend.Caps) bool {
	if v == nil {
		return false
	}
	_, err := compose(t, p, v, caps)
	return errors.Is(err, backend.ErrUnsupported)
}
