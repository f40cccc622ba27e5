// Quantised matrices: values of 8 bits with scales.

package conformance

import (
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// quantised adds the cases of a quantised target. In the exact classes A is such that quantising loses nothing, with a
// scale of its own for each group of columns.
func (w *lister) quantised(t target) {
	in, all := t.prec.Storage(), w.adder(t)
	plain := layout{c: dtype.F32}
	all(Quick, MixedSign, exactShapes, plain)
	all(Quick, SameSign, sameSignShapes, plain)
	all(Quick, MixedSign, borderShapes, plain)
	all(Quick, MixedSign, paddedShapes, layout{c: dtype.F32, pad: true})
	all(Quick, MixedSign, epilogueShapes, plain)
	all(Quick, NonFinite, nonFiniteShapes, plain)
	all(Quick, NonFinite, scalarShapes, plain)
	all(Quick, General, generalShapes, plain)
	all(Full, MixedSign, largeShapes, plain)
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16} {
		all(Quick, MixedSign, roundedShapes[:3], layout{c: c})
		all(Quick, General, generalShapes[3:4], layout{c: c})
	}
	s := shape{m: 67, k: 329, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	for i, l := range orders(layout{a: in, b: in, c: dtype.F32}) {
		l.path = []string{host, tensor}[i%2]
		w.add(Quick, t, MixedSign, s, l)
		w.add(Quick, t, General, generalShapes[3], l)
	}
	w.add(Quick, t, MixedSign, s, layout{path: host, a: dtype.F32, b: in, c: dtype.F32, turned: true})
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: in, c: dtype.F32, right: true})
	s.kind = narrow
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: dtype.F32, c: dtype.F16, reuse: true, ccol: true})
	for _, e := range emptyShapes {
		w.add(Quick, t, MixedSign, e, layout{path: host, a: in, b: in, c: dtype.F32})
	}
}

// quantised returns A as it is quantised; nil if it is not.
func (p *instance) quantised() (*formats.Quantised, error) {
	if p.quant == dtype.Invalid {
		return nil, nil
	}
	q, _, err := formats.Quantise(p.a, p.quant)
	return q, err
}
