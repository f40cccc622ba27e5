// A on the right of B: Cᵀ = alpha·Bᵀ·Aᵀ + beta·Cᵀ, whose inputs and outputs are those of C = alpha·A·B + beta·C.

package conformance

import (
	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// right adds matrices on the right, with Bᵀ and Cᵀ row-major, as layers of networks have them (which is bcol and ccol),
// and otherwise.
func (w *lister) right(t target) {
	in := t.prec.Storage()
	samples := layout{path: tensor, a: in, b: in, c: dtype.F32, bcol: true, ccol: true, right: true}
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	w.add(Quick, t, MixedSign, s, samples)
	other := samples
	other.path, other.ccol, other.turned = host, false, true
	w.add(Quick, t, MixedSign, s, other)
	other.bcol, other.ccol, other.pad, other.reuse = false, true, true, true
	w.add(Quick, t, MixedSign, s, other)
	s.kind = narrow
	other = samples
	other.c, other.b, other.changed = dtype.F16, dtype.F32, fromTensor
	w.add(Quick, t, MixedSign, s, other)
	w.add(Quick, t, NonFinite, nonFiniteShapes[0], samples)
	w.add(Quick, t, General, generalShapes[3], samples)
}

// reproducibleRight adds the same in reproducible mode, in every format at one precision.
func (w *lister) reproducibleRight(kernels []*spec.Format) {
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for i, p := range []int{spmm.AutoP, 23} {
			in := kernels
			if p == spmm.AutoP {
				in = kernels[:min(1, len(kernels))]
			}
			l := layout{path: []string{host, tensor}[i], a: typ, b: typ, c: dtype.F32, bcol: true, ccol: i == 1, right: true,
				turned: i == 0}
			w.t3(Quick, in, typ, p, shape{m: 67, k: 129, n: 33, pattern: "eighth", kind: spans}, l)
			w.t3(Quick, in, typ, p, shape{m: 64, k: 48, n: 24, pattern: "vec16", kind: wild, alpha: -2, beta: 0.5,
				epilogue: withReLU(rowBias)}, l)
		}
	}
}
