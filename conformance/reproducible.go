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
	"github.com/spmmrun/spmm/formats"
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
	// reproducibleEdgeShapes are sums where two roundings differ from one, results that are subnormal, rows at the borders
	// of segments, columns whose range their last element decides, rows whose sums are as large as they can be (more
	// entries than four segments of any kernel have), and scalars that are not finite.
	reproducibleEdgeShapes = []shape{
		{m: 16, k: 5, n: 16, pattern: "dense", kind: ties},
		{m: 9, k: 1030, n: 9, pattern: "dense", kind: ties},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: tiny},
		{m: 67, k: 129, n: 13, pattern: "eighth", kind: tiny, alpha: 0x1p-100, beta: 0x1p-101},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: units},
		{m: 40, k: 1100, n: 9, pattern: "borders", kind: normal, beta: 0.7},
		{m: 40, k: 400, n: 13, pattern: "eighth", kind: rising},
		{m: 9, k: 80001, n: 3, pattern: "onerow", kind: most},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: alphaNaN},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: alphaInf, beta: 0.5},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: betaNaN, beta: 0.5},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: betaInf, beta: 0.5},
	}
	// reproducibleEpilogueShapes have a bias, ReLU, or both, on sums like those above.
	reproducibleEpilogueShapes = []shape{
		{m: 1, k: 1, n: 1, pattern: "dense", kind: normal, epilogue: colBias},
		{m: 5, k: 3, n: 9, pattern: "empty", kind: normal, beta: 2, epilogue: rowBias},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: spans, epilogue: rowBias},
		{m: 29, k: 60, n: 34, pattern: "vec8", kind: normal, alpha: -0.3, beta: 1.7, epilogue: withReLU(colBias)},
		{m: 64, k: 200, n: 128, pattern: "vec16", kind: normal, epilogue: withReLU(noBias)},
		{m: 40, k: 4097, n: 9, pattern: "onerow", kind: cancel, epilogue: withReLU(rowBias)},
		{m: 150, k: 400, n: 7, pattern: "ragged", kind: cancel, epilogue: colBias},
		{m: 67, k: 129, n: 37, pattern: "eighth", kind: odd, epilogue: withReLU(colBias)},
		{m: 21, k: 40, n: 70, pattern: "dense", kind: wild, epilogue: withReLU(rowBias)},
		{m: 64, k: 48, n: 24, pattern: "vec16", kind: wild, alpha: -2, beta: 0.5, epilogue: colBias},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: tiny, epilogue: rowBias},
		{m: 67, k: 129, n: 13, pattern: "eighth", kind: tiny, alpha: 0x1p-100, beta: 0x1p-101, epilogue: withReLU(colBias)},
		{m: 45, k: 7, n: 40, pattern: "dense", kind: halves, epilogue: rowBias},
		{m: 45, k: 7, n: 40, pattern: "dense", kind: halves, epilogue: withReLU(colBias)},
		{m: 45, k: 7, n: 40, pattern: "dense", kind: halves, alpha: 0x1p80, epilogue: withReLU(rowBias)},
		{m: 45, k: 7, n: 40, pattern: "dense", kind: halves, alpha: -0x1p80, epilogue: colBias},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: alphaNaN, epilogue: withReLU(colBias)},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: betaInf, beta: 0.5, epilogue: withReLU(rowBias)},
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
				l := layout{path: []string{host, tensor}[i%2], a: typ, b: typ, c: dtype.F32, pad: i%3 == 1, bcol: i%4 == 3,
					ccol: i%5 == 3}
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

// reproducibleEdges adds the edges of arithmetic: for each kernel variant, and in csr through package spmm.
func (w *lister) reproducibleEdges(kernels []*spec.Format) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for _, p := range precisionsT3() {
			for i, s := range reproducibleEdgeShapes {
				// on panels and in rows: more say little, and take long
				if s.kind == most && (typ != dtype.F16 || p != 15 && p != 47) {
					continue
				}
				if p != spmm.AutoP {
					w.t3(Quick, []*spec.Format{shaders.Reproducible}, typ, p, s, layout{a: typ, b: typ, c: dtype.F32, pad: i%2 == 0})
				}
				if s.kind == most {
					continue
				}
				l := layout{path: []string{host, tensor}[i%2], a: typ, b: typ, c: dtype.F32, bcol: i%4 == 3, reuse: i < 5}
				w.t3(Quick, kernels[:min(1, len(kernels))], typ, p, s, l)
			}
		}
	}
}

// reproducibleEpilogues adds epilogues: each shape alternately for each kernel variant and in csr through package spmm,
// where the bias has other types and orders.
func (w *lister) reproducibleEpilogues(kernels []*spec.Format) {
	types := []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}
	for of, typ := range types {
		for at, p := range precisionsT3() {
			for i, s := range reproducibleEpilogueShapes {
				if (i+at+of)%2 == 0 && p != spmm.AutoP {
					w.t3(Quick, []*spec.Format{shaders.Reproducible}, typ, p, s, layout{a: typ, b: typ, c: dtype.F32, pad: i%3 == 0})
					continue
				}
				l := layout{path: []string{host, tensor}[i%2], a: typ, b: typ, c: types[2-i%5/4], ccol: i%3 == 2, reuse: i%4 == 1}
				if s.kind == normal && typ != dtype.F32 { // whose biases are numbers of that type
					l.bias = typ
				}
				w.t3(Quick, kernels[:min(1, len(kernels))], typ, p, s, l)
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

// reproducible fills in numbers of class T3.
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
	switch p.kind {
	case wild:
		p.pollute()
	case ties:
		p.tied()
	case tiny:
		p.tinier()
	case rising:
		p.rise()
	case units:
		p.entries(func(e, i, j int) { p.a.Val[e] = float64(1 + draw(p.seed, streamA, i, j)>>63) })
	case most:
		p.largest()
	case halves:
		p.whole()
	}
	p.biases()
	p.scalars()
}

// reproduce computes what RFX-p makes of the numbers.
func (p *instance) reproduce() {
	p.bits = p.p
	single := p.single()
	if p.p == spmm.AutoP {
		p.bits, p.lossless = oracle.Precision(single.A, single.B)
	}
	c, err := oracle.Reproducible(context.Background(), single, p.bits)
	if err != nil {
		panic(err) // the recipe is wrong
	}
	p.want = make([]float64, len(c.Data))
	formats.ConvertSlice(p.want, c.Data)
}

// single returns the problem in float32, which holds its numbers.
func (p *instance) single() oracle.Problem {
	narrow := func(x []float64) []float32 {
		if x == nil {
			return nil
		}
		y := make([]float32, len(x))
		formats.ConvertSlice(y, x)
		return y
	}
	e := p.finish()
	s := oracle.Problem{
		A: formats.Convert[float32](p.a), B: formats.ConvertDense[float32](p.b), Alpha: p.alpha, Beta: p.beta,
		Epilogue: oracle.Epilogue{RowBias: narrow(e.RowBias), ColBias: narrow(e.ColBias), Activation: e.Activation},
	}
	if p.c != nil {
		s.C = formats.ConvertDense[float32](p.c)
	}
	return s
}

// tied makes every output a sum of c·2^(x+y), half a unit in its last place of float64, and something far smaller of
// either sign, c a power of two: to round it twice, first to the bits of float64 or fewer, is to round the tie. Row i
// and column j decide whether the last place is odd, the signs, and x and y, the exponents of the largest elements.
func (p *instance) tied() {
	c := 1
	for 2*c <= p.k-4 {
		c *= 2
	}
	bits := p.p
	if bits == spmm.AutoP {
		bits = 31
	}
	power := func(e int) float64 { return math.Ldexp(1, e) }
	half := power(-12) * float64(c)
	exponent := func(stream, i int) int {
		if p.typ == dtype.F16 {
			return 15 // so that there is room below
		}
		return int(below(31, p.seed, stream, i, 0)) - 15
	}
	// smallest is one unit in fixed point where the largest element is 2^x.
	smallest := func(x int) float64 {
		x -= bits - 1
		if p.typ == dtype.F16 {
			x = max(x, -24)
		}
		return power(x)
	}
	p.entries(func(e, i, j int) {
		x := exponent(streamScaleA, i)
		v := 0.0
		switch {
		case j < c:
			v = power(x)
		case j == c:
			v = power(x - 12)
		case j == c+1:
			v = power(x-11) * float64(i%2)
		case j == c+2:
			v = smallest(x)
		}
		p.a.Val[e] = p.element(math.Copysign(v, float64(1-i/2%2*2)))
	})
	for k := range p.k {
		for j := range p.n {
			y := exponent(streamScaleB, j)
			v := 0.0
			switch {
			case k < c:
				v = power(y)
			case k <= c+1:
				v = half * power(y)
			case k == c+2:
				v = math.Copysign(smallest(y), float64(1-j%2*2))
			}
			p.b.Set(k, j, p.element(v))
		}
	}
}

// tinier scales rows of A and columns of B so that sums are subnormal numbers of float64, of all lengths and below the
// least; those of f16 cannot be, other than by alpha.
func (p *instance) tinier() {
	if p.typ == dtype.F16 {
		return
	}
	// With alpha, sums themselves are normal.
	start := -70
	if p.alpha != 1 {
		start = -20
	}
	p.entries(func(e, i, j int) {
		p.a.Val[e] = p.element(math.Ldexp(float64(p.a.Val[e]), start+int(below(9, p.seed, streamScaleA, i, 0))))
	})
	for k := range p.k {
		for j := range p.n {
			p.b.Set(k, j, p.element(math.Ldexp(float64(p.b.At(k, j)), start-int(below(9, p.seed, streamScaleB, j, 0)))))
		}
	}
}

// rise scales element k of rows of A and columns of B by 2^(10k/K).
func (p *instance) rise() {
	up := func(x float64, k int) float64 { return p.element(math.Ldexp(float64(x), 10*k/p.k)) }
	p.entries(func(e, i, j int) { p.a.Val[e] = up(p.a.Val[e], j) })
	for k := range p.k {
		for j := range p.n {
			p.b.Set(k, j, up(p.b.At(k, j), k))
		}
	}
}

// largest makes every element the largest of its binade that RFX does not move to the next: all digits are as large
// as they get. Columns of B have signs.
func (p *instance) largest() {
	x := 2039.0 / 1024
	if p.typ == dtype.BF16 {
		x = 254.0 / 128
	}
	p.entries(func(e, i, j int) { p.a.Val[e] = float64(x) })
	for k := range p.k {
		for j := range p.n {
			p.b.Set(k, j, float64(math.Copysign(x, float64(1-j%2*2))))
		}
	}
}

// whole makes sums whole numbers of 24 bits, which every p keeps, of both signs: in every eighth column the least and
// in the next the largest, 2^23 and 2^24 - 1. Every third row is negative.
func (p *instance) whole() {
	factors := []float64{0x1p14, 0x1p14, 0x1p14, 0x1p14, 0x1p14, 0x1p7, 1}
	p.entries(func(e, i, j int) { p.a.Val[e] = factors[j] * float64(1-i%3/2*2) })
	for k := range p.k {
		for j := range p.n {
			z := below(128, p.seed, streamB, k, j)
			least, most, x := int64(0), int64(127), z
			switch {
			case k < 4:
				least, most, x = 128, 255, 128+z
			case k == 4:
				most, x = 3, 0
			}
			p.b.Set(k, j, float64([]int64{least, most, x}[min(2, j%8)]))
		}
	}
}

// strange returns x, a zero of either sign, or a subnormal number.
func (p *instance) strange(x float64, stream, i, j int) float64 {
	prec := precisions[p.typ]
	switch z := draw(p.seed, stream, i, j); z % 8 {
	case 0:
		return math.Copysign(0, 0.5-float64(z>>63))
	case 1:
		units := 1 + z>>1%(1<<(prec.bits-1)-1)
		return float64(math.Copysign(math.Ldexp(float64(units), prec.least-prec.bits+1), float64(int64(z))))
	}
	return x
}

// unlistedT3 returns the variants for shapes of 8-bit integers that a device does not list, of few columns and at p =
// 15: a driver for CPUs takes minutes to compile what has more.
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
	for _, k := range []*spec.Program{shaders.DenseCopy, shaders.Quantise, shaders.Reproducible.Program} {
		for _, v := range k.Variants {
			if v.Name == variant && v.Code == r.dev.Caps().Code {
				r.note(k, v, false)
			}
		}
	}
}
