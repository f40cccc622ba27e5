// Class T3: products in reproducible mode, which have one right answer whatever the numbers are.

package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// precisionsT3 are the requested precisions, in each format and type.
func precisionsT3() []int {
	ps := []int{spmm.AutoP}
	for _, p := range rfx.All {
		ps = append(ps, int(p))
	}
	return ps
}

var (
	// reproducibleShapes are the problems of class T3.
	reproducibleShapes = []shape{
		{m: 1, k: 1, n: 1, pattern: "dense", kind: normal},
		{m: 5, k: 3, n: 9, pattern: "empty", kind: normal, beta: 2},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: spans},
		{m: 29, k: 60, n: 34, pattern: "vec8", kind: normal, alpha: -0.3, beta: 1.7},
		{m: 64, k: 200, n: 128, pattern: "vec16", kind: normal},
		{m: 150, k: 400, n: 7, pattern: "ragged", kind: cancel},
		{m: 40, k: 4097, n: 9, pattern: "onerow", kind: cancel},
		{m: 67, k: 129, n: 37, pattern: "eighth", kind: odd},
		{m: 21, k: 40, n: 70, pattern: "dense", kind: wild},
		{m: 64, k: 48, n: 24, pattern: "vec16", kind: wild, alpha: -2, beta: 0.5},
	}
	// largeReproducible are for the full tier: a row whose sums take more than 32 bits, and many panels.
	largeReproducible = []shape{
		{m: 3, k: 70001, n: 8, pattern: "dense", kind: normal},
		{m: 512, k: 512, n: 200, pattern: "vec8", kind: spans},
		{m: 5000, k: 300, n: 40, pattern: "skewed", kind: normal},
	}
)

// reproducible adds the cases of class T3: each problem in each format.
func (w *lister) reproducible(kernels []*spec.Format) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for at, p := range precisionsT3() {
			for i, s := range reproducibleShapes {
				in := kernels
				if (i+at)%2 == 1 { // where rows are multiplied whatever the format, one more says little
					in = kernels[:min(1, len(kernels))]
				}
				l := layout{path: []string{host, tensor}[i%2], a: typ, b: typ, c: dtype.F32, pad: i%3 == 1, bcol: i%4 == 3, ccol: i%5 == 3}
				if i == 4 {
					l.c = dtype.F16
				}
				w.t3(Quick, in, typ, p, s, l)
				if p != spmm.AutoP {
					w.t3(Quick, []*spec.Format{shaders.Reproducible}, typ, p, s, layout{a: typ, b: typ, c: dtype.F32, pad: i%2 == 0})
				}
			}
			for _, s := range largeReproducible {
				w.t3(Full, kernels, typ, p, s, layout{path: tensor, a: typ, b: typ, c: dtype.F32})
			}
		}
	}
}

func (w *lister) t3(tier Tier, kernels []*spec.Format, typ dtype.Type, p int, s shape, l layout) {
	first := len(w.tests)
	for _, k := range kernels {
		w.add(tier, target{kernel: k, prec: typ}, Reproducible, s, l)
	}
	for i := range w.tests[first:] {
		w.tests[first+i].p = p
	}
}

// reproducible fills in numbers of class T3, and what RFX-p makes of them.
func (p *instance) reproducible() {
	p.general()
	if p.kind == odd || p.kind == wild {
		p.entries(func(e, i, j int) { p.a.Val[e] = p.strange(p.a.Val[e], streamSpecialA, i, j) })
		for k := range p.k {
			for j := range p.n {
				p.b.Set(k, j, p.strange(p.b.At(k, j), streamSpecialB, k, j))
			}
		}
	}
	if p.kind == wild {
		p.pollute()
	}
	p.bits = p.p
	if p.p == spmm.AutoP {
		p.bits, p.lossless = oracle.Precision(p.a, p.b)
	}
	c, err := oracle.Reproducible(context.Background(), oracle.Problem{A: p.a, B: p.b, C: p.c, Alpha: p.alpha, Beta: p.beta}, p.bits)
	if err != nil {
		panic(err) // the recipe is wrong
	}
	p.want = c.Data
}

// strange returns x, a zero of either sign, or a subnormal number.
func (p *instance) strange(x float32, stream, i, j int) float32 {
	prec := precisions[p.typ]
	switch z := draw(p.seed, stream, i, j); z % 8 {
	case 0:
		return math.Float32frombits(uint32(z>>63) << 31)
	case 1:
		units := 1 + z>>1%(1<<(prec.bits-1)-1)
		return float32(math.Copysign(math.Ldexp(float64(units), prec.least-prec.bits+1), float64(int64(z))))
	}
	return x
}

// unlistedT3 returns the variants for shapes of 8-bit integers that a device does not list, of few columns and at p = 15:
// a driver for CPUs takes minutes to compile what has more.
func unlistedT3(caps backend.Caps) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range kernel.Coops(rfx.P15, caps.SubgroupMin) {
		if !v.Met(caps) {
			v.Need.Shapes = nil
			vs = append(vs, v)
		}
	}
	return slices.DeleteFunc(vs, func(v *spec.Variant) bool { return !v.Met(caps) })
}

// t3 multiplies in reproducible mode and judges the outputs.
func (r *runner) t3(ctx context.Context, t *test, res *Result) error {
	p := r.last
	out, plan, err := r.front(ctx, t, p, spmm.Options{
		Format: t.kernel.Name, Precision: t.prec, Cols: p.n, Mode: spmm.Reproducible, P: p.p,
	})
	if plan != nil {
		res.Variant = plan.variant
		r.noteNamed(plan.variant)
	}
	if err != nil {
		return err
	}
	if r.after != nil {
		r.after(out)
	}
	res.Output, res.P, res.Lossless = out.digest(), plan.bits, plan.lossless
	if err := out.differ(round(t.c, p.m, p.n, p.want)); err != nil {
		return wrong{err}
	}
	return p.precise(plan.bits, plan.lossless)
}

// precise says whether a precision is the one that the problem asks for.
func (p *instance) precise(bits int, lossless bool) error {
	if bits != p.bits || lossless != p.lossless {
		return wrong{fmt.Errorf("p = %d, lossless %v; must be %d, %v", bits, lossless, p.bits, p.lossless)}
	}
	return nil
}

// noteNamed records a variant of one of the kernels that reproducible mode uses.
func (r *runner) noteNamed(variant string) {
	for _, k := range []*spec.Program{shaders.Dense, shaders.Quantise, shaders.Reproducible.Program} {
		for _, v := range k.Variants {
			if v.Name == variant && v.Code == r.dev.Caps().Code {
				r.note(k, v, false)
			}
		}
	}
}
