// The list of cases: every format and precision in the kernels' tables times the problems below.

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Tier says how many cases run.
type Tier string

// The tiers. Full includes Quick.
const (
	Quick Tier = "quick" // minutes on two cores and a software driver
	Full  Tier = "full"  // larger problems, and more seeds
)

// target has the properties for which a device may have several variants: a format, its panel height, a precision, and
// the type of quantised values.
type target struct {
	kernel *spec.Format
	v      uint32 // 0 for formats without panels
	prec   dtype.Type
	quant  dtype.Type // S8 or E4M3; Invalid: A is not quantised
}

func (t target) name() string {
	if t.quant != dtype.Invalid {
		t.kernel = &spec.Format{Program: &spec.Program{Name: fmt.Sprintf("%s/%v", t.kernel.Name, t.quant)}}
	}
	if t.v == 0 {
		return t.kernel.Name
	}
	return fmt.Sprintf("%s/v%d", t.kernel.Name, t.v)
}

// fits reports whether a variant is one that the case is for.
func (t *test) fits(v *spec.Variant) bool {
	if t.class == Reproducible {
		return int(kernel.PrecisionOf(v)) == t.p
	}
	return v.In == t.prec && uint32(v.Tile.Panel) == t.v && v.Quant == t.target.quant
}

// targets lists what the kernels' tables offer, on any device, for matrices as they are, but for f64.
func targets(kernels []*spec.Format) []target {
	return slices.DeleteFunc(listed(kernels, false), func(t target) bool { return t.prec == dtype.F64 })
}

// listed lists the targets whose values are quantised, or the others.
func listed(kernels []*spec.Format, quantised bool) []target {
	var ts []target
	for _, k := range kernels {
		for _, v := range k.Variants {
			if t := (target{k, uint32(v.Tile.Panel), v.In, v.Quant}); (v.Quant != dtype.Invalid) == quantised &&
				!slices.Contains(ts, t) {
				ts = append(ts, t)
			}
		}
	}
	key := func(t target) string { return fmt.Sprintf("%s %02d %d %d", t.kernel.Name, t.v, t.prec, t.quant) }
	slices.SortFunc(ts, func(a, b target) int { return strings.Compare(key(a), key(b)) })
	return ts
}

// How a case reaches the kernel.
const (
	direct = ""       // its table's Encode and Launch, as package plan uses them
	host   = "host"   // spmm.Multiply, B and C in the host's memory
	tensor = "tensor" // spmm.Plan.Run, B and C on the device
)

// layout is how a case's data lie.
type layout struct {
	path       string
	pad        bool       // leading dimensions larger than needed, NaN in between
	a, b, c    dtype.Type // storage; a and b are the precision's unless by package spmm
	bias       dtype.Type // storage of the bias; Invalid: f32, which it is unless by package spmm
	bcol, ccol bool       // column-major
	reuse      bool       // the plan, and on the device B and C, have multiplied with another alpha and beta before
	changed    string     // the plan was made with other values of A, which were replaced: see values.go
	turned     bool       // Aᵀ is prepared, to be transposed; on the right A
	sampled    string     // the pattern of the elements of C that are computed: see sampled.go
	right      bool       // Cᵀ = alpha·Bᵀ·Aᵀ + beta·Cᵀ is computed, Aᵀ on the right
}

func (l layout) name(prec dtype.Type) string {
	var s strings.Builder
	add := func(yes bool, word string) {
		if yes {
			s.WriteString("/" + word)
		}
	}
	add(l.path != direct, l.path)
	add(l.bcol, "bcol")
	add(l.ccol, "ccol")
	add(l.pad, "ldpad")
	add(l.reuse, "reuse")
	add(l.changed != "", "values:"+l.changed)
	add(l.turned, "transpose")
	add(l.right, "right")
	add(l.sampled != "", "sample:"+l.sampled)
	add(l.a != prec.Storage(), "a:"+l.a.String())
	add(l.b != prec.Storage(), "b:"+l.b.String())
	add(l.c != dtype.F32, "c:"+l.c.String())
	add(l.bias != dtype.Invalid, "bias:"+l.bias.String())
	return s.String()
}

// test is one case.
type test struct {
	target
	recipe
	layout
	tier Tier
}

func (t test) id() string {
	return t.target.name() + "/" + t.recipe.name() + t.layout.name(t.prec)
}

// shape is a problem without its class and precision.
type shape struct {
	m, k, n     int
	pattern     string
	alpha, beta float64 // an alpha of 0 means 1
	kind        string
	epilogue    spec.Epilogue
}

var (
	// exactShapes are the problems of class T1±.
	exactShapes = []shape{
		{m: 1, k: 1, n: 1, pattern: "dense"},
		{m: 5, k: 3, n: 9, pattern: "empty"},
		{m: 5, k: 3, n: 9, pattern: "empty", beta: 2},
		{m: 37, k: 1, n: 40, pattern: "dense", alpha: 2},
		{m: 1, k: 3001, n: 17, pattern: "dense", alpha: -2, beta: 0.5},
		{m: 67, k: 129, n: 7, pattern: "eighth", alpha: 4},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: zeros},
		{m: 64, k: 200, n: 128, pattern: "vec16"},
		{m: 29, k: 60, n: 34, pattern: "vec8", beta: -1},
		{m: 21, k: 50, n: 531, pattern: "vec8", beta: 1},
		{m: 1120, k: 80, n: 20, pattern: "ladder"},
		{m: 40, k: 4097, n: 65, pattern: "onerow"},
		{m: 300, k: 300, n: 16, pattern: "band"},
		{m: 33, k: 17, n: 257, pattern: "dense"},
		{m: 194, k: 500, n: 24, pattern: "skewed"},
		{m: 300, k: 1300, n: 72, pattern: "vec8"},
		{m: 530, k: 1025, n: 40, pattern: "fortieth"},
		{m: 150, k: 400, n: 1, pattern: "ragged"},
		{m: 150, k: 400, n: 2, pattern: "ragged"},
		{m: 150, k: 400, n: 8, pattern: "ragged"},
		{m: 150, k: 400, n: 31, pattern: "ragged"},
		{m: 150, k: 400, n: 64, pattern: "ragged", alpha: -2},
		{m: 150, k: 400, n: 129, pattern: "ragged"},
	}
	// sameSignShapes are those of class T1+.
	sameSignShapes = []shape{
		{m: 1, k: 1, n: 1, pattern: "dense"},
		{m: 67, k: 129, n: 7, pattern: "eighth", alpha: 4, beta: 0.5},
		{m: 64, k: 200, n: 128, pattern: "vec16"},
		{m: 40, k: 4097, n: 65, pattern: "onerow"},
		{m: 150, k: 400, n: 31, pattern: "ragged", beta: 2},
	}
	// paddedShapes have leading dimensions larger than needed.
	paddedShapes = []shape{
		{m: 29, k: 60, n: 33, pattern: "vec8", beta: -1},
		{m: 150, k: 400, n: 7, pattern: "ragged"},
		{m: 67, k: 129, n: 130, pattern: "eighth", alpha: 0.5},
	}
	// roundedShapes have outputs of 16 bits.
	roundedShapes = []shape{
		{m: 67, k: 129, n: 7, pattern: "eighth", kind: narrow},
		{m: 150, k: 400, n: 33, pattern: "ragged", kind: narrow, alpha: -2, beta: 0.5},
		{m: 64, k: 200, n: 128, pattern: "vec16", kind: narrow, beta: 1},
		{m: 29, k: 60, n: 34, pattern: "vec8", kind: over},
	}
	nonFiniteShapes = []shape{
		{m: 67, k: 129, n: 37, pattern: "eighth"},
		{m: 64, k: 48, n: 24, pattern: "vec16"},
		{m: 150, k: 400, n: 5, pattern: "ragged", alpha: -2, beta: 0.5},
		{m: 21, k: 40, n: 70, pattern: "dense"},
	}
	subnormalShapes = []shape{
		{m: 40, k: 60, n: 20, pattern: "eighth"},
		{m: 40, k: 60, n: 20, pattern: "eighth", kind: inB},
	}
	// lowShapes have subnormal operands, in class T2.
	lowShapes = []shape{
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: low},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: lowB},
		{m: 67, k: 129, n: 33, pattern: "eighth", kind: beside},
	}
	generalShapes = []shape{
		{m: 96, k: 512, n: 40, pattern: "eighth", kind: normal},
		{m: 61, k: 300, n: 19, pattern: "vec8", kind: spans},
		{m: 40, k: 512, n: 12, pattern: "eighth", kind: cancel},
		{m: 90, k: 700, n: 50, pattern: "ragged", kind: normal, alpha: 0.3, beta: 1.7},
		{m: 2, k: 2048, n: 9, pattern: "dense", kind: normal},
	}
	// largeShapes are for the full tier, in class T1±.
	largeShapes = []shape{
		{m: 1000, k: 2000, n: 200, pattern: "fortieth"},
		{m: 512, k: 512, n: 512, pattern: "vec8"},
		{m: 3, k: 70001, n: 8, pattern: "dense"},
		{m: 5000, k: 300, n: 40, pattern: "skewed", beta: 0.5},
		{m: 530000, k: 5, n: 1, pattern: "skewed"}, // more panels than a side of a grid has workgroups
	}
	// emptyShapes have no rows, no columns, or nothing to sum.
	emptyShapes = []shape{
		{m: 5, k: 0, n: 3, pattern: "empty", beta: 2},
		{m: 0, k: 4, n: 3, pattern: "empty"},
		{m: 4, k: 4, n: 0, pattern: "dense"},
	}
)

var (
	// borderShapes have rows of all lengths at which kernels cut rows, in class T1±.
	borderShapes = []shape{
		{m: 20, k: 1100, n: 521, pattern: "borders", beta: 0.5},
		{m: 320, k: 1100, n: 5, pattern: "borders16"},
	}
	// scalarShapes have an alpha or beta that is not finite.
	scalarShapes = []shape{
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: alphaNaN},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: alphaInf, beta: 0.5},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: betaNaN, beta: 0.5},
		{m: 40, k: 60, n: 21, pattern: "eighth", kind: betaInf, beta: 0.5},
	}
)

// list is every case of a tier, in order, without those whose name the filter refuses.
func list(kernels []*spec.Format, tier Tier, keep func(id string) bool) []test {
	var w lister
	plain := targets(kernels)
	for _, t := range plain {
		w.direct(t)
	}
	for _, t := range plain {
		w.front(t)
		if tf32 := (target{kernel: t.kernel, v: t.v, prec: dtype.TF32}); t.prec == dtype.F32 &&
			!slices.Contains(plain, tf32) {
			w.front(tf32) // computed in f32 on every device
		}
	}
	for _, t := range plain {
		w.scalars(t)
		w.values(t)
		w.epilogues(t)
		w.right(t)
		w.filled(t)
	}
	for _, t := range listed(kernels, true) {
		w.quantised(t)
	}
	for _, t := range append(listed(kernels, false), target{kernel: kernels[0], prec: dtype.TF32}) {
		w.sampled(t, kernels[0])
	}
	w.sampledT3(kernels[0])
	w.doubles(kernels)
	w.reproducible(kernels)
	w.reproducibleEdges(kernels)
	w.reproducibleEpilogues(kernels)
	w.reproducibleValues(kernels)
	w.reproducibleRight(kernels)
	w.tests = slices.DeleteFunc(w.tests, func(t test) bool {
		return t.tier == Full && tier != Full || !keep(t.id())
	})
	return w.tests
}

// lister collects cases.
type lister struct {
	tests []test
	holes bool // kernels of dense matrices take patterns as they are, and fill them with zeros
}

func (w *lister) add(tier Tier, t target, class string, s shape, l layout) {
	r := recipe{
		class: class, typ: t.prec, quant: t.quant, m: s.m, k: s.k, n: s.n, pattern: s.pattern,
		alpha: s.alpha, beta: s.beta, epilogue: s.epilogue, kind: s.kind, seed: 1,
	}
	if r.alpha == 0 {
		r.alpha = 1
	}
	if t.kernel.Full && !w.holes && class != Reproducible { // which lowers any matrix, whatever the format
		r.pattern = "dense"
	}
	w.tests = append(w.tests, test{t, r, l, tier})
	if l.path == direct && tier == Quick {
		for seed := uint64(2); seed <= 3; seed++ {
			r.seed = seed
			w.tests = append(w.tests, test{t, r, l, Full})
		}
	}
}

// adder returns what adds cases of a target whose A and B are stored in the target's type.
func (w *lister) adder(t target) func(tier Tier, class string, shapes []shape, l layout) {
	return func(tier Tier, class string, shapes []shape, l layout) {
		l.a, l.b = t.prec.Storage(), t.prec.Storage()
		for _, s := range shapes {
			w.add(tier, t, class, s, l)
		}
	}
}

// direct adds the cases that a target's kernel is launched for by itself.
func (w *lister) direct(t target) {
	all := w.adder(t)
	plain := layout{c: dtype.F32}
	all(Quick, MixedSign, exactShapes, plain)
	all(Quick, SameSign, sameSignShapes, plain)
	all(Quick, MixedSign, paddedShapes, layout{c: dtype.F32, pad: true})
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16} {
		all(Quick, MixedSign, roundedShapes, layout{c: c})
		all(Quick, MixedSign, roundedShapes[:2], layout{c: c, pad: true})
		all(Quick, General, generalShapes[3:4], layout{c: c})
	}
	all(Quick, MixedSign, borderShapes, plain)
	all(Quick, NonFinite, nonFiniteShapes, plain)
	all(Quick, NonFinite, scalarShapes, plain)
	if t.prec != dtype.TF32 { // whose kernels may cut subnormal operands to nothing
		all(Quick, Subnormal, subnormalShapes, plain)
		all(Quick, General, lowShapes, plain)
	}
	all(Quick, General, generalShapes, plain)
	all(Full, MixedSign, largeShapes, plain)
}

// front adds the cases of a target that go through package spmm.
func (w *lister) front(t target) {
	in := t.prec.Storage()
	row := layout{path: host, a: in, b: in, c: dtype.F32}
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	for _, l := range orders(row) {
		w.add(Quick, t, MixedSign, s, l)
	}
	s = shape{m: 67, k: 129, n: 33, pattern: "eighth"}
	for _, l := range orders(layout{path: tensor, a: in, b: in, c: dtype.F32}) {
		w.add(Quick, t, MixedSign, s, l)
	}
	for _, e := range emptyShapes {
		w.add(Quick, t, MixedSign, e, row)
	}
	// Types that the kernel may not take or give.
	s = shape{m: 45, k: 129, n: 31, pattern: "ragged", kind: narrow, beta: 0.5}
	for i, l := range []layout{
		{a: in, b: in, c: dtype.F16, pad: true},
		{a: in, b: in, c: dtype.BF16, ccol: true},
		{a: dtype.F32, b: in, c: dtype.F16, bcol: true},
		{a: in, b: dtype.F32, c: dtype.F32},
		{a: dtype.F32, b: dtype.F32, c: dtype.BF16, bcol: true, ccol: true, pad: true},
	} {
		l.path = []string{host, tensor}[i%2]
		w.add(Quick, t, MixedSign, s, l)
	}
	s = shape{m: 29, k: 60, n: 34, pattern: "vec8", kind: over}
	w.add(Quick, t, MixedSign, s, layout{path: host, a: in, b: in, c: dtype.F16, ccol: true})
	for _, l := range orders(row)[2:] {
		w.add(Quick, t, NonFinite, nonFiniteShapes[0], l)
		w.add(Quick, t, General, generalShapes[3], l)
	}
}

// scalars adds cases about alpha and beta through package spmm: plans that have multiplied with others before, and ones
// that are not finite.
func (w *lister) scalars(t target) {
	in := t.prec.Storage()
	s := shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: in, c: dtype.F32, reuse: true})
	w.add(Quick, t, MixedSign, s, layout{path: host, a: in, b: in, c: dtype.F32, bcol: true, reuse: true})
	s.kind = narrow
	w.add(Quick, t, MixedSign, s, layout{path: tensor, a: in, b: in, c: dtype.F16, ccol: true, reuse: true})
	for i, s := range scalarShapes[1:] {
		w.add(Quick, t, NonFinite, s, layout{path: host, a: in, b: in, c: dtype.F32, ccol: i%2 == 0})
	}
}

// orders returns l with B and C in row- and column-major order, some of them padded.
func orders(l layout) []layout {
	var ls []layout
	for i := range 4 {
		l.bcol, l.ccol, l.pad = i&1 != 0, i&2 != 0, i == 0 || i == 3
		ls = append(ls, l)
	}
	return ls
}

// filled adds cases of sparse matrices that kernels of dense ones fill with zeros.
func (w *lister) filled(t target) {
	if !t.kernel.Full {
		return
	}
	w.holes = true
	defer func() { w.holes = false }()
	in := t.prec.Storage()
	plain := layout{a: in, b: in, c: dtype.F32}
	for _, l := range orders(layout{path: host, a: in, b: in, c: dtype.F32}) {
		w.add(Quick, t, MixedSign, shape{m: 67, k: 129, n: 33, pattern: "eighth", alpha: -2, beta: 0.5}, l)
		w.add(Quick, t, NonFinite, shape{m: 67, k: 129, n: 37, pattern: "eighth"}, l)
	}
	for _, s := range []shape{{m: 5, k: 3, n: 9, pattern: "empty"}, {m: 530, k: 1025, n: 40, pattern: "fortieth"},
		{m: 150, k: 400, n: 129, pattern: "ragged"}} {
		w.add(Quick, t, MixedSign, s, plain)
	}
	for _, s := range nonFiniteShapes[:3] {
		w.add(Quick, t, NonFinite, s, plain)
	}
	w.add(Quick, t, General, generalShapes[0], plain)
}
