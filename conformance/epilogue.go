// Biases and activations of problems.

package conformance

import (
	"math"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Epilogues of shapes.
var (
	noBias  = spec.Epilogue{}
	rowBias = spec.Epilogue{Bias: spec.RowBias}
	colBias = spec.Epilogue{Bias: spec.ColBias}
)

// withReLU returns the epilogue with ReLU.
func withReLU(e spec.Epilogue) spec.Epilogue {
	e.Activation = spec.ReLU
	return e
}

// with returns the epilogue with another activation.
func with(e spec.Epilogue, a spec.Activation) spec.Epilogue {
	e.Activation = a
	return e
}

var (
	// epilogueShapes are problems of class T1± with a bias and ReLU: heavy rows, borders of segments, odd numbers of
	// columns.
	epilogueShapes = []shape{
		{m: 67, k: 129, n: 33, pattern: "eighth", epilogue: rowBias},
		{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5, epilogue: withReLU(colBias)},
		{m: 150, k: 400, n: 1, pattern: "ragged", epilogue: withReLU(rowBias)},
		{m: 40, k: 4097, n: 65, pattern: "onerow", epilogue: withReLU(colBias)},
		{m: 194, k: 500, n: 24, pattern: "skewed", epilogue: withReLU(rowBias)},
		{m: 20, k: 1100, n: 521, pattern: "borders", beta: 0.5, epilogue: colBias},
		{m: 5, k: 3, n: 9, pattern: "empty", epilogue: withReLU(rowBias)},
	}
	// paddedEpilogueShapes have leading dimensions larger than needed, and elements of the bias apart.
	paddedEpilogueShapes = []shape{
		{m: 29, k: 60, n: 34, pattern: "vec8", beta: -1, epilogue: withReLU(rowBias)},
		{m: 150, k: 400, n: 7, pattern: "ragged", epilogue: colBias},
	}
	// roundedEpilogueShapes have outputs of 16 bits.
	roundedEpilogueShapes = []shape{
		{m: 67, k: 129, n: 7, pattern: "eighth", kind: narrow, epilogue: withReLU(rowBias)},
		{m: 150, k: 400, n: 33, pattern: "ragged", kind: narrow, alpha: -2, beta: 0.5, epilogue: colBias},
	}
	nonFiniteEpilogueShapes = []shape{
		{m: 67, k: 129, n: 37, pattern: "eighth", epilogue: withReLU(colBias)},
		{m: 150, k: 400, n: 5, pattern: "ragged", alpha: -2, beta: 0.5, epilogue: rowBias},
		{m: 21, k: 40, n: 70, pattern: "dense", epilogue: withReLU(noBias)},
	}
	// activationShapes are problems of class T2.
	activationShapes = []shape{
		{m: 96, k: 512, n: 40, pattern: "eighth", kind: normal, alpha: 0.3, epilogue: with(colBias, spec.GELU)},
		{m: 90, k: 700, n: 50, pattern: "ragged", kind: normal, alpha: 0.3, beta: 1.7, epilogue: with(rowBias, spec.SiLU)},
		{m: 61, k: 300, n: 19, pattern: "vec8", kind: spans, epilogue: with(noBias, spec.GELU)},
		{m: 40, k: 4097, n: 65, pattern: "onerow", kind: normal, epilogue: with(noBias, spec.SiLU)},
		{m: 67, k: 129, n: 37, pattern: "eighth", kind: wild, epilogue: with(colBias, spec.GELU)},
		{m: 67, k: 129, n: 37, pattern: "eighth", kind: wild, beta: 0.5, epilogue: with(rowBias, spec.SiLU)},
	}
)

// epilogues adds problems with a bias and an activation.
func (w *lister) epilogues(t target) {
	in := t.prec.Storage()
	all := func(class string, shapes []shape, l layout) {
		l.a, l.b = in, in
		for _, s := range shapes {
			w.add(Quick, t, class, s, l)
		}
	}
	plain := layout{c: dtype.F32}
	all(MixedSign, epilogueShapes, plain)
	all(MixedSign, paddedEpilogueShapes, layout{c: dtype.F32, pad: true})
	all(NonFinite, nonFiniteEpilogueShapes, plain)
	all(General, activationShapes, plain)
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16} {
		all(MixedSign, roundedEpilogueShapes, layout{c: c})
		all(General, activationShapes[:1], layout{c: c})
	}
	// Through package spmm: C in each order, biases of other types.
	all(MixedSign, epilogueShapes[1:2], layout{path: host, c: dtype.F32, ccol: true, bias: dtype.F16})
	all(MixedSign, epilogueShapes[:1], layout{path: tensor, c: dtype.F32, bcol: true, reuse: true})
	all(MixedSign, roundedEpilogueShapes, layout{path: tensor, c: dtype.F16, ccol: true, pad: true, bias: dtype.BF16})
	all(MixedSign, roundedEpilogueShapes[:1], layout{path: host, c: dtype.BF16})
	all(NonFinite, nonFiniteEpilogueShapes[:1], layout{path: host, c: dtype.F32, ccol: true})
	all(General, activationShapes[:2], layout{path: tensor, c: dtype.F32, ccol: true})
	all(General, activationShapes[1:2], layout{path: host, c: dtype.F16, bias: dtype.BF16})
}

// newBias makes room for the bias of the epilogue, if it has one.
func (p *instance) newBias() {
	switch p.epilogue.Bias {
	case spec.RowBias:
		p.bias = make([]float64, p.m)
	case spec.ColBias:
		p.bias = make([]float64, p.n)
	}
}

// finish is the epilogue as package oracle has it.
func (p *instance) finish() oracle.EpilogueOf[float64] {
	e := oracle.EpilogueOf[float64]{Activation: map[spec.Activation]oracle.Activation{
		spec.NoActivation: oracle.NoActivation, spec.ReLU: oracle.ReLU, spec.GELU: oracle.GELU, spec.SiLU: oracle.SiLU,
	}[p.epilogue.Activation]}
	switch p.epilogue.Bias {
	case spec.RowBias:
		e.RowBias = p.bias
	case spec.ColBias:
		e.ColBias = p.bias
	}
	return e
}

// exactBiases fills in a bias of the T1 classes: whole numbers of 8 bits on the coarsest grid of its row or column, so
// that sums with it are exact too; of class nonfinite some are infinities and NaN. scaleOf is that of exact, and most
// its largest exponent.
func (p *instance) exactBiases(scaleOf func(stream, i int) int, most int) {
	p.newBias()
	stream := streamScaleA
	if p.epilogue.Bias == spec.ColBias {
		stream = streamScaleB
	}
	for i := range p.bias {
		x := float64(1+below(255, p.seed, streamBias, i, 0)) * math.Abs(p.alpha)
		p.bias[i] = math.Copysign(math.Ldexp(x, scaleOf(stream, i)+most), float64(int64(draw(p.seed, streamBias, i, 1))))
	}
}

// generalBiases fills in a bias of class T2: numbers of few bits, so that it is stored exactly in any type.
func (p *instance) generalBiases() {
	p.newBias()
	for i := range p.bias {
		p.bias[i] = math.Round(64*p.any(draw(p.seed, streamBias, i, 0))) / 64
	}
}

// finished returns what the epilogue makes of element (i, j), in exact arithmetic: there is no other activation than
// ReLU.
func (p *instance) finished(x float64, i, j int) float64 {
	switch p.epilogue.Bias {
	case spec.RowBias:
		x += p.bias[i]
	case spec.ColBias:
		x += p.bias[j]
	}
	if p.epilogue.Activation == spec.ReLU {
		return math.Max(x, 0)
	}
	return x
}

// biases fills in a bias of class T3: numbers of the problem's type, about as large as the sums; of kind tiny subnormal
// ones, of kind wild also infinities and NaN, of kind halves what makes sums of 24 bits hard to round.
func (p *instance) biases() {
	p.newBias()
	for i := range p.bias {
		x := p.element(math.Sqrt(float64(p.k)) * p.any(draw(p.seed, streamBias, i, 0)))
		z := draw(p.seed, streamSpecialBias, i, 0)
		switch p.kind {
		case tiny:
			x = float64(math.Float32frombits(uint32(z)&(1<<31) | uint32(z)&0x7fffff>>(z>>32%24))) // of all lengths
		case wild, odd:
			specials := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1), 0x1p-149}
			if p.kind == odd {
				specials = specials[3:]
			}
			if z%3 == 0 {
				x = specials[z>>8%uint64(len(specials))]
			}
		case halves:
			x = half24[z%uint64(len(half24))] * math.Abs(p.alpha)
			switch {
			case i == 8: // in a column of least sums
				x = 0x1p23 * math.Abs(p.alpha)
			case z>>8%4 == 0:
				x = largest24[z>>16%uint64(len(largest24))]
			}
			if z>>63 == 1 {
				x = -x
			}
		}
		p.bias[i] = x
	}
}

// half24 is added to whole numbers of 24 bits: half a unit and its neighbours in float64, more units and a half, a
// quarter (below 2^23 half a unit), the least number, and what cancels them or carries to the next binade.
var half24 = []float64{
	0.5, 0.5, 0x1.000002p-1, 0x1.fffffep-2, 1.5, 2.5, 0.25, 0x1.000002p-2, 0x1.fffffep-3, 0x1p-149, 0x1p23, 0x1p24 - 1,
	0x1p24, 0x1p47,
}

// largest24 is the largest number of float64, the one below, and numbers next to which 24 bits vanish.
var largest24 = []float64{math.MaxFloat32, 0x1.fffffcp127, 0x1p127, 0x1p100, 0x1p-149}
