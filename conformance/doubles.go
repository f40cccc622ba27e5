// Matrices of f64, and products whose data are in part.

package conformance

import (
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// doubles adds the cases of f64.
func (w *lister) doubles(kernels []*spec.Format) {
	for _, t := range listed(kernels, false) {
		if t.prec == dtype.F64 {
			w.double(t)
		}
	}
	// Data of f64 for plans that compute in a shorter type.
	for _, t := range targets(kernels) {
		if i := slices.IndexFunc(kernels, func(k *spec.Format) bool { return k == t.kernel }); i > 0 || t.prec == dtype.TF32 {
			continue // one format says it
		}
		in := t.prec.Storage()
		s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
		w.add(Quick, t, MixedSign, s, layout{path: host, a: dtype.F64, b: dtype.F64, c: dtype.F64, bcol: true})
		w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: dtype.F64, c: dtype.F64, ccol: true, changed: fromHost})
		s.kind, s.epilogue = narrow, withReLU(colBias)
		w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: in, c: dtype.F64, bias: dtype.F64})
	}
}

// double adds the cases of a target of f64.
func (w *lister) double(t target) {
	const f64 = dtype.F64
	all := func(tier Tier, class string, shapes []shape, l layout) {
		l.a, l.b = f64, f64
		for _, s := range shapes {
			w.add(tier, t, class, s, l)
		}
	}
	plain := layout{c: f64}
	all(Quick, MixedSign, exactShapes, plain)
	all(Quick, SameSign, sameSignShapes[1:3], plain)
	all(Quick, MixedSign, borderShapes, plain)
	all(Quick, MixedSign, paddedShapes, layout{c: f64, pad: true})
	all(Quick, MixedSign, epilogueShapes, plain)
	all(Quick, NonFinite, nonFiniteShapes, plain)
	all(Quick, NonFinite, scalarShapes, plain)
	all(Quick, Subnormal, subnormalShapes, plain)
	all(Quick, General, generalShapes, plain)
	all(Quick, General, activationShapes, plain)
	all(Full, MixedSign, largeShapes, plain)

	// Through package spmm.
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	for i, l := range orders(layout{a: f64, b: f64, c: f64}) {
		l.path = []string{host, tensor}[i%2]
		l.reuse = i == 1
		w.add(Quick, t, MixedSign, s, l)
		w.add(Quick, t, General, generalShapes[3], l)
	}
	for _, e := range emptyShapes {
		w.add(Quick, t, MixedSign, e, layout{path: host, a: f64, b: f64, c: f64})
	}
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: f64, b: f64, c: f64, changed: fromTensor})
	w.add(Quick, t, General, generalShapes[1], layout{path: host, a: f64, b: f64, c: f64, changed: fromHost, turned: true})
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: f64, b: f64, c: f64, bcol: true, ccol: true, right: true})
	w.add(Quick, t, NonFinite, nonFiniteShapes[0], layout{path: host, a: f64, b: f64, c: f64, ccol: true})
	w.add(Quick, t, General, activationShapes[0], layout{path: host, a: f64, b: f64, c: f64, ccol: true, bias: f64})
	// Numbers that shorter types hold, in these.
	s.kind = narrow
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: dtype.F32, b: dtype.F32, c: f64})
	w.add(Quick, t, MixedSign, s, layout{path: host, a: f64, b: dtype.BF16, c: dtype.F32, ccol: true, pad: true})
	s.kind = over
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: f64, b: dtype.F16, c: dtype.F16, bcol: true})
}

// doubles reports whether dense data of the case are of f64, which devices without kernels for it do not hold.
func (l *layout) doubles() bool {
	return l.b == dtype.F64 || l.c == dtype.F64 || l.bias == dtype.F64
}
