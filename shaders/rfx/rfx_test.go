package rfx_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// problem is a multiplication in float32, whatever type it is done in.
type problem struct {
	name        string
	a           *formats.CSR[float32]
	b           *formats.Dense[float32]
	ldb, ldc    int // 0: the least
	alpha, beta float32
	fold        bool // bend the grids round, as for huge matrices
	units       int
	longest     int    // rows with more entries, panels with more vectors, are divided into segments; 0: as Encode decides
	of          string // the kind of the variants that the problem is for; "": all
	epilogue    spec.Epilogue
	bias        []float32 // of the epilogue, 1 << BiasShift elements for each row or column
}

// with returns the problem with an epilogue, the elements of whose bias are drawn from v, or NaN where they must not be
// read.
func (q problem) with(e spec.Epilogue, v values) problem {
	r := rand.New(rand.NewPCG(5, 5))
	q.name, q.epilogue = fmt.Sprintf("%s, %v", q.name, e), e
	for i := range map[spec.Bias]int{spec.RowBias: q.a.Rows, spec.ColBias: q.b.Cols}[e.Bias] << e.BiasShift {
		x := float32(math.NaN())
		if i%(1<<e.BiasShift) == 0 {
			x = v(r)
		}
		q.bias = append(q.bias, x)
	}
	return q
}

// oracle is the epilogue as package oracle has it.
func (q problem) oracle() oracle.Epilogue {
	var e oracle.Epilogue
	if q.epilogue.Activation == spec.ReLU {
		e.Activation = oracle.ReLU
	}
	var bias []float32
	for i := 0; i < len(q.bias); i += 1 << q.epilogue.BiasShift {
		bias = append(bias, q.bias[i])
	}
	switch q.epilogue.Bias {
	case spec.RowBias:
		e.RowBias = bias
	case spec.ColBias:
		e.ColBias = bias
	}
	return e
}

// values draws float32 bits: of A, and of B.
type values func(r *rand.Rand) float32

func normal(r *rand.Rand) float32 { return float32(r.NormFloat64()) }

// wide has exponents that no p keeps all of.
func wide(r *rand.Rand) float32 {
	return float32(math.Ldexp(r.Float64()*2-1, r.IntN(60)-30))
}

// largest draws numbers whose integers are as large as can be, of both signs.
func largest(r *rand.Rand) float32 { return float32(2039.0 / 1024 * float64(1-2*r.IntN(2))) }

// same is all of one sign, so that sums grow longest.
func same(*rand.Rand) float32 { return 2039.0 / 1024 }

// lowHalves has integers with the largest lower halves at p = 31, and digits at 47: −2¹⁵, and −2²³.
func lowHalves(r *rand.Rand) float32 {
	if r.IntN(2) == 0 {
		return 2039.0/1024 - 0x1p-15
	}
	return 2039.0/1024 - 0x1p-23
}

func anyFinite(r *rand.Rand) float32 {
	for {
		if x := math.Float32frombits(r.Uint32()); rfx.IsFinite(x) {
			return x
		}
	}
}

// tiny products underflow, or nearly do.
func tiny(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, -75)) }

// huge sums overflow, or nearly do.
func huge(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, 63)) }

func subnormal(r *rand.Rand) float32 { return math.Float32frombits(r.Uint32() & 0x807fffff) }

// specials are rare enough to leave most outputs finite, of a row of few entries.
func specials(r *rand.Rand) float32 {
	switch r.IntN(40) {
	case 0:
		return math.Float32frombits([]uint32{0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001}[r.IntN(4)])
	case 1, 2, 3:
		return math.Float32frombits([]uint32{0, 0x80000000}[r.IntN(2)])
	case 4:
		return 1e-30 // quantised to zero, but no zero
	}
	return normal(r)
}

// matrix has rows of the given lengths, spread over k columns.
func matrix(r *rand.Rand, k int, v values, lens ...int) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: len(lens), Cols: k, RowPtr: []int64{0}}
	for _, n := range lens {
		for t := range n {
			a.ColIdx, a.Val = append(a.ColIdx, int32(t*k/n)), append(a.Val, v(r))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func dense(r *rand.Rand, k, n int, v values) *formats.Dense[float32] {
	b := formats.NewDense[float32](k, n)
	for i := range b.Data {
		b.Data[i] = v(r)
	}
	return b
}

func ragged(r *rand.Rand, rows, k int) []int {
	l := make([]int, rows)
	for i := range l {
		l[i] = r.IntN(min(k, 7) + 1)
		if i%17 == 3 {
			l[i] = r.IntN(k + 1)
		}
	}
	l[rows/2] = k
	return l
}

// problems returns all. If large is false, those that take a software driver seconds are smaller, or for those variants
// alone that have the limit at hand. They reach the same bounds: rows in three segments, panels of equal rows, the last
// of several tiles, and sums in 32 bits.
func problems(large bool) []problem {
	r := rand.New(rand.NewPCG(8, 3))
	deep, limited := 2500, ""
	if !large {
		deep, limited = 600, "digits"
	}
	make := func(name string, k, n int, av, bv values, lens ...int) problem {
		return problem{name: name, a: matrix(r, k, av, lens...), b: dense(r, k, n, bv), alpha: 1}
	}
	ps := []problem{
		make("one number", 1, 1, normal, normal, 1),
		make("no entries", 3, 9, normal, normal, 0, 0, 0),
		make("no columns of A", 0, 5, normal, normal, 0, 0),
		make("zeros", 9, 5, func(*rand.Rand) float32 { return 0 }, normal, 9, 3, 0),
	}
	for _, n := range []int{1, 2, 3, 4, 7, 8, 9, 31, 33, 65, 130, 257} {
		ps = append(ps, make(fmt.Sprintf("normal, %d columns", n), 300, n, normal, normal, ragged(r, 60, 300)...))
	}
	for _, c := range []struct {
		name string
		a, b values
	}{
		{"wide exponents", wide, wide}, {"all of f32", anyFinite, anyFinite}, {"tiny", tiny, tiny}, {"huge", huge, huge},
		{"subnormal", subnormal, huge}, {"largest digits", largest, largest}, {"specials", specials, specials},
		{"specials of A", specials, normal}, {"specials of B", normal, specials},
	} {
		ps = append(ps, make(c.name, 70, 37, c.a, c.b, ragged(r, 40, 70)...))
	}
	scaled := make("alpha and beta", 90, 37, specials, normal, ragged(r, 40, 90)...)
	scaled.alpha, scaled.beta, scaled.ldb, scaled.ldc = -0.3, 1.7, 56, 41
	negated := make("alpha alone", 90, 37, tiny, normal, ragged(r, 40, 90)...)
	negated.alpha = -1e-20
	added := make("beta alone", 90, 37, normal, normal, ragged(r, 40, 90)...)
	added.beta, added.ldc = 0x1p-140, 50
	folded := make("folded grid", deep, 70, normal, wide, ragged(r, 90, deep)...)
	folded.fold = true
	units := make("many units", deep, 70, normal, wide, ragged(r, 90, deep)...)
	units.units, units.beta = 1<<20, 1
	segments := make("rows in segments, with specials", 3000, 9, func(r *rand.Rand) float32 {
		if r.IntN(2000) == 0 {
			return specials(r)
		}
		return normal(r)
	}, specials, 3000, 0, 2999, 5)
	// Sums grow as far as they can in a row that is just not cut, and beyond in one that is.
	long := make("long rows", 40000, 3, same, same, 1<<15, 40000, 1<<15, 1<<15, 1<<15, 33000)
	longMixed := make("long rows of both signs", 33000, 2, largest, largest, 1<<15, 33000, 1<<15)
	long.longest, longMixed.longest = kernel.MaxLongest, kernel.MaxLongest
	one := make("one multiprocessor", deep, 9, specials, normal, ragged(r, 330, deep)...)
	one.units = 1
	if !large { // panels are still in segments
		folded.longest, units.longest, one.longest = 256, 256, 256
	}
	ps = append(ps, one)
	for name, v := range map[string]values{"longest strips of the largest numbers": same,
		"longest strips of low halves": lowHalves} { // sums of a strip's digits stay in 32 bits
		q := make(name, kernel.MostStripColumns, 3, v, same, slices.Repeat([]int{kernel.MostStripColumns}, 18)...)
		q.of = limited
		ps = append(ps, q)
	}
	ps = append(ps, panelProblems(deep, make)...)
	return append(append(ps, scaled, negated, added, folded, units, segments, long, longMixed),
		epilogues(ps, scaled, segments)...)
}

// panelProblems have runs of rows with the same columns, and rows as long as exact sums in float64 allow and longer,
// with the largest integers. Those of many columns have rows of at most deep entries.
func panelProblems(deep int, make func(name string, k, n int, av, bv values, lens ...int) problem) []problem {
	lens := slices.Concat(slices.Repeat([]int{128}, 8), slices.Repeat([]int{129}, 9), []int{127, 1023, 1024, 1025, 2500},
		slices.Repeat([]int{5}, 11), slices.Repeat([]int{300}, 16), slices.Repeat([]int{0}, 8))
	var ps []problem
	for _, n := range []int{1, 8, 37} {
		ps = append(ps, make(fmt.Sprintf("equal rows, %d columns", n), 2500, n, normal, normal, lens...))
	}
	short := slices.Clone(lens)
	for i := range short {
		short[i] = min(short[i], deep)
	}
	for _, n := range []int{130, 257} {
		ps = append(ps, make(fmt.Sprintf("equal rows, %d columns", n), deep, n, normal, normal, short...))
	}
	for name, v := range map[string]values{"sums at their limits": same, "sums of low halves at their limits": lowHalves,
		"sums of both signs at their limits": largest} {
		ps = append(ps, make(name, 2500, 19, v, same, lens...))
	}
	for p, large := range map[rfx.P]float32{rfx.P23: 2039.0 / 1024, rfx.P31: 2039.0/1024 - 0x1p-15,
		rfx.P47: 2039.0/1024 - 0x1p-23} {
		ps = append(ps, cancelling(p, large))
	}
	rare := func(r *rand.Rand) float32 {
		if r.IntN(300) == 0 {
			return specials(r)
		}
		return normal(r)
	}
	scaled := make("equal rows, alpha and beta", 2500, 21, rare, rare, lens...)
	scaled.alpha, scaled.beta, scaled.ldc = 0.7, -1.3, 24
	return append(ps, make("equal rows, specials", 2500, 21, rare, rare, lens...), scaled,
		make("equal rows, bias", 2500, 21, rare, rare, lens...).with(spec.Epilogue{Bias: spec.RowBias,
			Activation: spec.ReLU}, normal))
}

// epilogues are problems with epilogues: sums and biases of like size, so that sums cancel and change sign; sums that
// overflow, that are subnormal, and that are not finite, as biases are.
func epilogues(ps []problem, scaled, segments problem) []problem {
	named := func(name string) problem {
		return ps[slices.IndexFunc(ps, func(q problem) bool { return q.name == name })]
	}
	row, col := spec.Epilogue{Bias: spec.RowBias}, spec.Epilogue{Bias: spec.ColBias}
	relu := func(e spec.Epilogue) spec.Epilogue {
		e.Activation = spec.ReLU
		return e
	}
	apart := func(e spec.Epilogue) spec.Epilogue {
		e.BiasShift = 3
		return e
	}
	return []problem{
		named("normal, 3 columns").with(relu(spec.Epilogue{}), nil),
		named("normal, 33 columns").with(row, normal),
		named("normal, 31 columns").with(relu(apart(col)), wide),
		named("huge").with(relu(row), func(r *rand.Rand) float32 { return float32(math.Ldexp(r.Float64()*2-1, 128)) }),
		named("tiny").with(col, subnormal),
		named("tiny").with(relu(row), subnormal),
		named("specials").with(relu(col), specials),
		named("zeros").with(apart(row), specials),
		scaled.with(relu(row), specials),
		scaled.with(col, wide),
		segments.with(relu(col), normal),
	}
}

// cancelling has rows of products that are as large as they can be at p, of one sign and then of the other, and the
// least product of all in between: it alone is left, unless the sum before it was rounded.
func cancelling(p rfx.P, large float32) problem {
	const half, n = 150, 130
	least := float32(math.Ldexp(1, 1-int(p)))
	a, b := 0, 0
	row := func(*rand.Rand) float32 {
		a++
		switch at := (a - 1) % (2*half + 1); {
		case at < half:
			return large
		case at > half:
			return -large
		}
		return least
	}
	column := func(*rand.Rand) float32 {
		b++
		if (b-1)/n == half {
			return least
		}
		return large
	}
	return problem{name: fmt.Sprintf("large products that cancel at p = %d", p), alpha: 1,
		a: matrix(nil, 2*half+1, row, slices.Repeat([]int{2*half + 1}, 19)...), b: dense(nil, 2*half+1, n, column)}
}

func TestMultiply(t *testing.T) {
	ps := map[bool][]problem{} // drawn once, as answers are kept by their names
	answers := map[bool]map[string]*formats.Dense[float32]{false: {}, true: {}}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		if shadertest.CompileOnly() {
			return
		}
		large := shadertest.LargeSizes(dev)
		if ps[large] == nil {
			ps[large] = problems(large)
		}
		want := answers[large]
		if !large {
			t.Run("large sizes", func(t *testing.T) { t.Skip("SPMM_SIZES=all multiplies them on a software driver of Vulkan") })
		}
		for _, q := range ps[large] {
			t.Run(q.name, func(t *testing.T) {
				for _, p := range rfx.All {
					run[float32](t, dev, q, p, want)
					if q.longest == 0 && q.epilogue.None() { // which see what is computed in f32
						run[half.F16](t, dev, q, p, want)
						run[half.BF16](t, dev, q, p, want)
					}
				}
			})
		}
	})
}

// run multiplies with every variant for p that the device runs.
func run[T formats.Value](t *testing.T, dev backend.Device, q problem, p rfx.P,
	want map[string]*formats.Dense[float32]) {
	t.Helper()
	for _, v := range shadertest.Variants(dev, kernel.Format.Program) {
		if v.Const("BITS") != uint32(p) || q.of != "" && q.of != v.Kind.Name {
			continue
		}
		if v.Const("DIRECT") > 0 && formats.TypeOf[T]() != dtype.F32 {
			continue
		}
		// Sums of products of bytes do not see what these were made from, and software drivers take long for them.
		if v.Need.Dot4 && formats.TypeOf[T]() != dtype.F32 && (q.a.Cols > 300 || q.b.Cols > 40) {
			continue
		}
		if (v.Const("RING")+v.Const("STAGE") > 0 || v.Kind.Name == "digits") && q.a.Cols > kernel.MostStripColumns {
			_, err := kernel.Format.Encode(q.a, v)
			shadertest.Refused(t, v.Name, err, true)
			continue
		}
		if v.Kind.Name == "stationary" {
			if err := kernel.FitsStationary(v, q.a.Cols, formats.TypeOf[T]()); err != nil {
				_, got := kernel.Format.Encode(formats.Convert[T](q.a), v)
				shadertest.Refused(t, v.Name, got, true)
				continue
			}
		}
		runVariant[T](t, dev, q, v, want)
	}
}

// runVariant multiplies on the device in elements T, and holds every bit of C and of its padding against the
// oracle, whose answers are kept in want.
func runVariant[T formats.Value](t *testing.T, dev backend.Device, q problem, v *spec.Variant,
	want map[string]*formats.Dense[float32]) {
	t.Helper()
	p := rfx.P(v.Const("BITS"))
	m, k, n := q.a.Rows, q.a.Cols, q.b.Cols
	ldb, ldc := max(q.ldb, (n+7)&^7), max(q.ldc, n)
	a := formats.Convert[T](q.a)
	nan := float32(math.NaN())
	b := &formats.Dense[T]{Rows: k, Cols: n, LD: ldb, Data: make([]T, k*ldb)}
	row := make([]float32, ldb)
	for i := range k {
		for j := range row {
			row[j] = nan
			if j < n {
				row[j] = q.b.At(i, j)
			}
		}
		formats.ConvertSlice(b.Data[i*ldb:], row)
	}
	before := &formats.Dense[float32]{Rows: m, Cols: n, LD: ldc, Data: make([]float32, m*ldc)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range before.Data {
		before.Data[i] = nan
		if q.beta != 0 && i%ldc < n {
			before.Data[i] = specials(r)
		}
	}
	key := fmt.Sprint(q.name, p, formats.TypeOf[T]())
	if want[key] == nil {
		exact, err := oracle.Reproducible(context.Background(), oracle.Problem{
			A: formats.Convert[float32](a), B: widen(b), C: before, Alpha: float64(q.alpha), Beta: float64(q.beta),
			Epilogue: q.oracle(),
		}, int(p))
		if err != nil {
			t.Fatal(err)
		}
		want[key] = exact
	}
	c := &formats.Dense[float32]{Rows: m, Cols: n, LD: ldc, Data: slices.Clone(before.Data)}
	multiply(t, dev, q, v, a, b, c)
	for i, x := range c.Data {
		w := nan
		if i%ldc < n {
			w = want[key].At(i/ldc, i%ldc)
		}
		if math.Float32bits(x) != math.Float32bits(w) {
			t.Fatalf("%s %v: C[%d,%d] is %g (%x), want %g (%x)", v.Name, formats.TypeOf[T](), i/ldc, i%ldc, x,
				math.Float32bits(x), w, math.Float32bits(w))
		}
	}
}

func widen[T formats.Value](b *formats.Dense[T]) *formats.Dense[float32] {
	w := formats.NewDense[float32](b.Rows, b.Cols)
	for i := range b.Rows {
		formats.ConvertSlice(w.Data[i*b.Cols:][:b.Cols], b.Data[i*b.LD:][:b.Cols])
	}
	return w
}

// multiply runs both kernels, this one in variant v.
func multiply[T formats.Value](t *testing.T, dev backend.Device, q problem, v *spec.Variant, a *formats.CSR[T],
	b *formats.Dense[T], c *formats.Dense[float32]) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	l := kernel.Layout(v, b.Rows, b.Cols)
	qv, err := quantise.Variant(dev.Caps())
	must(err)
	ql, err := quantise.Launch(qv, l, formats.TypeOf[T](), b.LD)
	must(err)
	ints := make([]byte, l.Bytes())
	shadertest.Run(t, dev, quantise.Program, ql, backend.Bytes(b.Data), ints)

	e, err := kernel.Format.Encode(a, v)
	must(err)
	if q.longest > 0 {
		e, err = kernel.PackWith(a, v, q.longest)
		must(err)
	}
	caps := dev.Caps()
	if q.units > 0 {
		caps.Units = q.units
	}
	ml, err := kernel.Format.Launch(v, e, spec.Problem{
		M: a.Rows, K: a.Cols, N: b.Cols, LDB: b.LD, LDC: c.LD, Out: dtype.F32, Alpha: float64(q.alpha), Beta: float64(q.beta),
		Epilogue: q.epilogue, Caps: caps,
	})
	must(err)
	if q.fold {
		folded := spec.Launch{Passes: ml.Passes}
		if v.Before != nil && v.Code == backend.CodePTX { // its grid is of clusters, in a line
			folded.Passes = ml.Passes[1:]
		}
		shadertest.Fold(kernel.Format.Program, &folded)
	}
	var args [][]byte
	for _, x := range e.Arrays {
		args = append(args, x.Data)
	}
	bias := backend.Bytes(q.bias)
	if len(bias) == 0 {
		bias = make([]byte, 16)
	}
	shadertest.Run(t, dev, kernel.Format.Program, ml, append(args, backend.Bytes(b.Data), ints, bias,
		backend.Bytes(c.Data))...)
}

// However many workers there are.
func TestWorkers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(4, 4))
	q := problem{name: "workers", a: matrix(r, 700, normal, ragged(r, 300, 700)...), b: dense(r, 700, 30, normal),
		alpha: 1}
	want := map[string]*formats.Dense[float32]{}
	for _, procs := range []int{1, 3} {
		runtime.GOMAXPROCS(procs)
		shadertest.Each(t, func(t *testing.T, dev backend.Device) {
			if !shadertest.CompileOnly() {
				run[half.F16](t, dev, q, rfx.P23, want)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	a := matrix(r, 600, normal, 0, 600, 1)
	for _, v := range kernel.Format.Variants {
		p, typ, second := rfx.P(v.Const("BITS")), dtype.F32, rfx.Rows(a)[1]
		stationary := v.Kind.Name == "stationary"
		e, err := kernel.Format.Encode(a, v)
		if stationary && p >= rfx.P31 {
			shadertest.Refused(t, v.Name+" with a B of f32", err, true)
			x := formats.Convert[half.F16](a)
			typ, second = dtype.F16, rfx.Rows(x)[1]
			e, err = kernel.Format.Encode(x, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := e.Format.(kernel.Split)
		want, macs, bytes := kernel.Split{P: p, Type: dtype.F32, Columns: 20, Split: spec.Split{Longest: 256, Segments: 3,
			Slots: 3, Rows: 1}}, int64(601), 601*(4+p.Size())
		if v.Code == backend.CodeGo { // which cuts no row of so few
			want.Columns, want.Split = 8, spec.Split{Longest: 1 << 13}
		}
		if rows := int(v.Const("V")); rows > 0 { // one panel of 608 vectors
			want = kernel.Split{P: p, Type: dtype.F32, V: rows, Split: spec.Split{Longest: 1024}, Items: 1,
				Columns: uint32(621+rows+3) &^ 3}
			macs, bytes = int64(608*rows), 608*(4+rows*p.Bytes())
		}
		if stationary { // no panel is in segments
			want.Type, want.Longest = typ, 0
		}
		if v.Const("TEAMS") > 0 { // segments have four words
			want.Columns = 24
		}
		if v.Const("RING") > 0 { // ten blocks of 64 columns: a lane has 16 of each, and 8 of the last one
			want = kernel.Split{P: p, Type: dtype.F32, Columns: 16,
				Strips: kernel.Strips{Blocks: 2, Segments: 5, Largest: uint32(128 * 2 * (1 + 4*p.Bytes()))}}
			macs, bytes = 16*600, 128*(10+38*p.Bytes())
			if p == rfx.P47 { // segments of two blocks are too large
				want.Columns, want.Strips = 20, kernel.Strips{Blocks: 1, Segments: 10, Largest: 128 * (1 + 24)}
			}
		}
		if v.Const("STAGE") > 0 { // ten blocks, each followed by one for the last two of every four entries
			want = kernel.Split{P: p, Type: dtype.F32, Columns: 16,
				Pairs: kernel.Strips{Blocks: 8, Segments: 3, Largest: uint32(16+8*192+129*((2*p.Bytes()+3)&^3)+15) &^ 15}}
			macs, bytes = 20*16*32, 3*16+20*192+301*((2*p.Bytes()+3)&^3)
		}
		if few := v.Kind.Name == "digits"; few || v.Before != nil { // residues of 600 columns, or digits
			n, _ := rfx.ModuliFor(600, p)
			words := 8 + (n+1)/2*4 + 4 + (n+1)*p.Limbs() + 1 + 2*n
			digits := few || p == rfx.P15
			if digits {
				n, words = p.Bytes(), 8
			}
			want = kernel.Split{P: p, Type: dtype.F32, Planes: n, Digits: few, Table: 8, Columns: uint32(words+3) &^ 3}
			if !digits {
				want.Weights = uint32(words - 2*n)
			}
			macs, bytes = 256*640, 256*640*n-32
			if v.Const("SPARSE") > 0 { // 300 of the 601 entries have two others of their four columns before them
				want.Remainder = uint32(words)
				want.Columns = uint32(words+4+3)&^3 + 4*300
				macs, bytes = 256*640/2+300, 256*640/2*n+256*640/8+16*300-32
			}
		}
		if m != want {
			t.Errorf("%s: %+v, want %+v", v.Name, m, want)
		}
		if int(e.Stats.StoredBytes) < bytes+8*4 || e.Stats.MACs != macs {
			t.Errorf("%s: %+v", v.Name, e.Stats)
		}
		rows := backend.View[uint32](e.Arrays[0].Data)
		if rows[0] != 0 || rows[2] != 0 || rows[4] != 600 || rows[6] != 601 || rfx.Range(rows[3]) != second {
			t.Errorf("%s: rows are %v", v.Name, rows)
		}
		if m.Columns%4 != 0 || !slices.Equal(backend.View[int32](backend.Bytes(rows))[m.Columns:][:601], a.ColIdx) {
			t.Errorf("%s: the entries' columns are not at word %d of rows", v.Name, m.Columns)
		}
	}
	v := kernel.Format.Variants[0]
	a.ColIdx[5] = 600
	if _, err := kernel.Format.Encode(a, v); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
}

// Ranges of rows are marked where the next row has the same columns, on the CPU alone.
func TestMarks(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 5, Cols: 3, RowPtr: []int64{0, 2, 4, 6, 7, 8},
		ColIdx: []int32{0, 1, 0, 1, 0, 2, 1, 1}, Val: []float32{1, 2, 3, 4, 5, 6, 7, 8}}
	for _, v := range kernel.Format.Variants {
		if v.Const("V") > 0 || v.Const("RING") > 0 || v.Before != nil { // no rows
			continue
		}
		e, err := kernel.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rfx.Rows(a) {
			if (i == 0 || i == 3) && v.Code == backend.CodeGo {
				r |= rfx.Mark
			}
			if got := rfx.Range(backend.View[uint32](e.Arrays[0].Data)[2*i+1]); got != r {
				t.Errorf("%s: row %d has range %#x, want %#x", v.Name, i, uint32(got), uint32(r))
			}
		}
	}
}

// Every variant tells where kernel requantise finds an entry's integer. Rows, B in fixed point or not, are in the order
// of the entries.
func TestSlots(t *testing.T) {
	a := matrix(rand.New(rand.NewPCG(4, 5)), 60, normal, 0, 60, 1)
	for _, v := range kernel.Format.Variants {
		slots, err := kernel.Slots(a, v)
		switch entries := int(a.NNZ()); {
		case err != nil:
			t.Errorf("%s: %v", v.Name, err)
		case v.Const("V") > 0: // each entry's number plus 1 once, and zeros
			numbers := slices.Sorted(slices.Values(slots))
			numbers = numbers[max(0, len(numbers)-entries):]
			if len(numbers) != entries || numbers[0] != 1 || len(slices.Compact(numbers)) != entries {
				t.Errorf("%s: the places are not of %d entries: %v", v.Name, entries, slots)
			}
		case v.Const("RING") > 0 || v.Const("STAGE") > 0:
			if len(slots) < entries {
				t.Errorf("%s: %d places of %d entries", v.Name, len(slots), entries)
			}
		case slices.Contains([]string{"rows", "direct", "residues", "digits"}, v.Kind.Name) && slots != nil:
			t.Errorf("%s: %d places, want the order of the entries", v.Name, len(slots))
		}
	}
}

func TestLaunchRefuses(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 2, Cols: 3, RowPtr: []int64{0, 0, 0}}
	good := spec.Problem{M: 2, K: 3, N: 5, LDB: 8, LDC: 5, Out: dtype.F32}
	for i, v := range kernel.Format.Variants {
		e, err := kernel.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		if v.Const("DIRECT") > 0 {
			_, err := kernel.Format.Launch(v, e, good)
			shadertest.Refused(t, v.Name+" with a B of f16", err, true)
			if e, err = kernel.Format.Encode(formats.Convert[float32](a), v); err != nil {
				t.Fatal(err)
			}
		}
		shadertest.Refuses(t, kernel.Format, v, e,
			shadertest.Refusal{Name: "f16", Change: func(p *spec.Problem) { p.Out = dtype.F16 }, Unsupported: true},
			shadertest.Refusal{Name: "gelu", Change: func(p *spec.Problem) { p.Epilogue.Activation = spec.GELU },
				Unsupported: true},
			shadertest.Refusal{Name: "silu", Change: func(p *spec.Problem) { p.Epilogue.Activation = spec.SiLU },
				Unsupported: true},
			shadertest.Refusal{Name: "B", Change: func(p *spec.Problem) { p.Caps.MaxBinding = 90 }, Unsupported: true,
				Code: backend.CodeWGSL})
		for _, other := range kernel.Format.Variants[i:] {
			if other.Const("BITS") == v.Const("BITS") && other.Const("V") == v.Const("V") &&
				(other.Before == nil) == (v.Before == nil) && other.Const("SPARSE") == v.Const("SPARSE") &&
				(other.Kind.Name == "digits") == (v.Kind.Name == "digits") {
				continue
			}
			if _, err := kernel.Format.Launch(other, e, good); err == nil {
				t.Errorf("%s takes a matrix encoded for %s", other.Name, v.Name)
			}
		}
		if v.Kind.Name == "stationary" {
			j := slices.IndexFunc(kernel.Format.Variants, func(x *spec.Variant) bool {
				return x.Kind.Name == "panels" && x.Code == backend.CodePTX && x.Const("BITS") == v.Const("BITS")
			})
			if j < 0 {
				continue // at p = 47
			}
			panels := kernel.Format.Variants[j]
			if _, err := kernel.Format.Launch(panels, e, good); err == nil {
				t.Errorf("%s takes a matrix encoded for %s", panels.Name, v.Name)
			}
		}
	}
	for _, p := range []rfx.P{0, 24} {
		if _, err := kernel.Variant(backend.Caps{Code: backend.CodeGo}, p, kernel.Rows); err == nil {
			t.Errorf("there is a variant for p = %d", p)
		}
	}
	_, err := kernel.Variant(backend.Caps{Code: backend.CodePTX, Arch: 70}, 23, kernel.Rows)
	shadertest.Refused(t, "on an old GPU", err, true)
}

// Invocations share a tile's rows of B and its columns evenly, whatever the subgroup.
func TestCoopTable(t *testing.T) {
	for _, v := range kernel.Format.Forms() {
		if v.Const("DOTS") > 0 {
			chunks, local := v.Const("STEP")/16, v.Const("LOCAL")
			if v.Const("ROWS")*chunks%local != 0 || v.Const("COLS")*chunks%local != 0 ||
				v.Const("ROWS")*v.Const("COLS") != 64*local || v.Local[0] != local {
				t.Errorf("%s: a tile of %d×%d by %d invocations", v.Name, v.Const("ROWS"), v.Const("COLS"), local)
			}
			continue
		}
		if v.Unit.Source == "residues.comp" {
			step, across := v.Const("STEP"), v.Const("SUBS_ACROSS")
			down, local := v.Const("SUBS")/across, v.Const("LOCAL")
			if v.Const("ROWS")*step/16%local != 0 || v.Const("COLS")*step/16%local != 0 || step%v.Const("TK") != 0 ||
				v.Const("ROWS")%(down*v.Const("TM")) != 0 || v.Const("COLS")%(across*v.Const("TN")) != 0 ||
				v.Local[0] != v.Sub*v.Const("SUBS") {
				t.Errorf("%s: a tile of %d×%d by %d invocations", v.Name, v.Const("ROWS"), v.Const("COLS"), local)
			}
			continue
		}
		if !v.Matrix || v.Kind.Name == "digits" {
			continue
		}
		cols, width := v.Const("COLS"), v.Const("TN")
		if v.Const("SWAP") == 1 {
			width = v.Const("TM")
		}
		if cols == 0 || cols%v.Const("LOCAL") != 0 || cols%(v.Const("SUBS")*width) != 0 ||
			v.Local[0] != v.Sub*v.Const("SUBS") {
			t.Errorf("%s: %d columns by %d invocations", v.Name, cols, v.Local[0])
		}
	}
}

// The tiles of all vendors' matrix units, on a driver that computes any.
func TestCoopShapes(t *testing.T) {
	want := map[string]*formats.Dense[float32]{}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		c := dev.Caps()
		if c.Code != backend.CodeSPIRV || !slices.ContainsFunc(kernel.Format.Variants,
			func(v *spec.Variant) bool { return v.Matrix && v.Met(c) }) {
			t.Skip("no matrix units of 8-bit integers")
		}
		if c.SubgroupMax >= 16 {
			t.Skip("the driver computes the tiles that it lists")
		}
		if !shadertest.ForeignShapes() {
			t.Skip("SPMM_SHAPES=all runs other vendors' tiles")
		}
		for _, v := range slices.Concat(kernel.Coops(rfx.P15, c.SubgroupMin), kernel.CoopResidues(rfx.P31, c.SubgroupMin),
			kernel.Fews(rfx.P23, c.SubgroupMin)) {
			t.Run(v.Name, func(t *testing.T) {
				for _, q := range problems(true) {
					if slices.Contains([]string{"normal, 33 columns", "specials of B"}, q.name) {
						runVariant[half.F16](t, dev, q, v, want)
					}
				}
			})
		}
	})
}

// BenchmarkMultiply is a pruned 2048×2048 matrix of f16 times 1 and 128 columns, on every device; that of kernel csr is
// the baseline.
func BenchmarkMultiply(b *testing.B) {
	const size = 2048
	a := formats.Convert[half.F16](matrix(rand.New(rand.NewPCG(1, 2)), size, normal,
		slices.Repeat([]int{205}, size)...))
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, p := range rfx.All {
			for _, n := range []int{1, 128} {
				b.Run(fmt.Sprintf("%s/p=%d/n=%d", dev.Info().Backend, p, n),
					func(b *testing.B) { benchmark(b, dev, a, p, n) })
			}
		}
	})
}

func benchmark(b *testing.B, dev backend.Device, a *formats.CSR[half.F16], p rfx.P, n int) {
	ctx := b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	alloc := func(data []byte) backend.Buffer {
		x, err := dev.Alloc(int64(len(data)))
		must(err)
		b.Cleanup(func() { x.Close() })
		must(x.Write(ctx, 0, data))
		return x
	}
	v, err := kernel.Variant(dev.Caps(), p, kernel.Rows)
	must(err)
	e, err := kernel.Format.Encode(a, v)
	must(err)
	ldb := (n + 7) &^ 7
	l, err := kernel.Format.Launch(v, e, spec.Problem{
		M: a.Rows, K: a.Cols, N: n, LDB: ldb, LDC: n, Out: dtype.F32, Alpha: 1, Caps: dev.Caps(),
	})
	must(err)
	layout := kernel.Layout(v, a.Cols, n)
	qv, err := quantise.Variant(dev.Caps())
	must(err)
	ql, err := quantise.Launch(qv, layout, dtype.F16, ldb)
	must(err)
	x, q := alloc(make([]byte, 2*a.Cols*ldb)), alloc(make([]byte, layout.Bytes()))
	var args []backend.Buffer
	for _, y := range e.Arrays {
		args = append(args, alloc(y.Data))
	}
	args = append(args, x, q, alloc(make([]byte, 16)), alloc(make([]byte, 4*a.Rows*n)),
		alloc(make([]byte, max(spec.NoWorkspace, l.Workspace))))
	launches := shadertest.Launches(b, dev, quantise.Program, ql, x, q)
	launches = append(launches, shadertest.Launches(b, dev, kernel.Format.Program, l, args...)...)
	for b.Loop() {
		_, err := dev.Run(ctx, launches...)
		must(err)
	}
	b.ReportMetric(2*float64(a.NNZ())*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

// A matrix whose B exceeds shared memory is refused.
func TestFitsStationary(t *testing.T) {
	most := map[rfx.P]int{rfx.P15: 7228, rfx.P23: 4818, rfx.P31: 7220, rfx.P47: 7228}
	for _, v := range kernel.Format.Variants {
		if v.Kind.Name != "stationary" {
			continue
		}
		k := most[kernel.PrecisionOf(v)]
		if err := kernel.FitsStationary(v, k, dtype.F16); err != nil {
			t.Error(err)
		}
		shadertest.Refused(t, v.Name, kernel.FitsStationary(v, k+1, dtype.BF16), true)
		bytes := uint32(k*kernelBytes(v)+127)&^127 + 64*v.Const("WARPS") // as stationary.cu lays it out
		if bytes > v.Shared {
			t.Errorf("%s: %d rows of B take %d bytes of %d", v.Name, k, bytes, v.Shared)
		}
		delete(most, kernel.PrecisionOf(v))
	}
	if len(most) > 0 {
		t.Errorf("there are no variants for %v", most)
	}
}

// A matrix is refused if sums of residues for its columns could exceed 31 bits.
func TestMostColumns(t *testing.T) {
	const k = 1 << 16
	a := &formats.CSR[half.F16]{Rows: 1, Cols: k, RowPtr: []int64{0, 1}, ColIdx: []int32{k - 1}, Val: []half.F16{1}}
	refused := map[rfx.P]bool{}
	for _, v := range kernel.Format.Variants {
		if v.Kind.Name != "residues" && v.Kind.Name != "residues24" {
			continue
		}
		_, err := kernel.Format.Encode(a, v)
		shadertest.Refused(t, v.Name, err, true)
		refused[kernel.PrecisionOf(v)] = true
	}
	if len(refused) != len(rfx.All) {
		t.Errorf("residues are at %v alone", refused)
	}
}

// kernelBytes returns the bytes of a row of B in shared memory.
func kernelBytes(v *spec.Variant) int {
	if kernel.PrecisionOf(v) == rfx.P23 {
		return 48
	}
	return 32
}
