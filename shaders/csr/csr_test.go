package csr_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// problem is a case, in float64; build turns it into what a variant takes.
type problem struct {
	name        string
	lens        []int // entries of each row
	k, n        int
	ldb, ldc    int // 0: the least
	alpha, beta float32
	real        bool // values that do not sum exactly
}

func rows(n, entries int) []int {
	l := make([]int, n)
	for i := range l {
		l[i] = entries
	}
	return l
}

// ragged rows: many short and empty ones, some long, one with all k columns.
func ragged(n, k int) []int {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	l := make([]int, n)
	for i := range l {
		l[i] = r.IntN(7)
		if i%17 == 3 {
			l[i] = r.IntN(k)
		}
	}
	l[n/2] = k
	return l
}

func problems() []problem {
	ps := []problem{
		{name: "one number", lens: rows(1, 1), k: 1, n: 1},
		{name: "no entries", lens: rows(5, 0), k: 3, n: 9, beta: 2},
		{name: "no entries, C forgotten", lens: rows(5, 0), k: 3, n: 9},
		{name: "one row in pieces", lens: rows(1, 3001), k: 3001, n: 17, alpha: -2, beta: 0.5},
		{name: "one column of A", lens: rows(300, 1), k: 1, n: 40},
		{name: "short rows", lens: rows(1000, 3), k: 50, n: 64, ldb: 72, ldc: 64, alpha: 3},
		{name: "padding", lens: rows(70, 5), k: 30, n: 33, ldb: 64, ldc: 77, alpha: 1, beta: -1},
		{name: "inexact", lens: ragged(90, 700), k: 700, n: 50, alpha: 0.3, beta: 1.7, real: true},
	}
	for _, n := range []int{1, 2, 4, 7, 8, 9, 31, 32, 65, 128, 257, 520} {
		ps = append(ps, problem{name: fmt.Sprintf("ragged, %d columns", n), lens: ragged(60, 1500), k: 1500, n: n})
	}
	return ps
}

// built is a problem in the element type T.
type built struct {
	a    formats.Sparse
	b, c []byte
	p    spec.Problem
	want []float64 // of C, row after row; NaN where nothing may be written
	sum  []float64 // Σ|a·b|+|c| of each output, for the bound
}

func build[T formats.Value](q problem, out dtype.Type) *built {
	r := rand.New(rand.NewPCG(7, 9))
	number := func() float32 {
		if q.real {
			return r.Float32()*2 - 1
		}
		return float32(r.IntN(9) - 4)
	}
	if q.alpha == 0 {
		q.alpha = 1
	}
	q.ldb, q.ldc = max(q.ldb, (q.n+7)&^7), max(q.ldc, q.n)
	m := len(q.lens)
	a := &formats.CSR[T]{Rows: m, Cols: q.k, RowPtr: make([]int64, 1, m+1)}
	b := make([]T, q.k*q.ldb)
	for i := range b {
		b[i] = from[T](float32(math.NaN()))
		if i%q.ldb < q.n {
			b[i] = from[T](number())
		}
	}
	x := &built{
		want: make([]float64, m*q.ldc), sum: make([]float64, m*q.ldc),
		p: spec.Problem{M: m, K: q.k, N: q.n, LDB: q.ldb, LDC: q.ldc, Out: out, Alpha: q.alpha, Beta: q.beta},
	}
	c := make([]float32, m*q.ldc)
	for i := range c {
		c[i], x.want[i] = float32(math.NaN()), math.NaN()
		if i%q.ldc >= q.n {
			continue
		}
		x.want[i] = 0
		if q.beta != 0 {
			c[i] = float32(r.IntN(9) - 4)
			x.want[i] = float64(q.beta) * float64(c[i])
			x.sum[i] = math.Abs(x.want[i])
		}
	}
	for i, n := range q.lens {
		for t := range n { // n columns spread over the row
			col, v := t*q.k/n, from[T](number())
			a.ColIdx, a.Val = append(a.ColIdx, int32(col)), append(a.Val, v)
			for j := range q.n {
				y := float64(q.alpha) * to(v) * to(b[col*q.ldb+j])
				x.want[i*q.ldc+j] += y
				x.sum[i*q.ldc+j] += math.Abs(y)
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	x.a, x.b = a, backend.Bytes(b)
	switch out {
	case dtype.F16:
		x.c = backend.Bytes(convert[half.F16](c))
	case dtype.BF16:
		x.c = backend.Bytes(convert[half.BF16](c))
	default:
		x.c = backend.Bytes(c)
	}
	return x
}

func buildFor(t dtype.Type, q problem, out dtype.Type) *built {
	switch t {
	case dtype.F16:
		return build[half.F16](q, out)
	case dtype.BF16:
		return build[half.BF16](q, out)
	}
	return build[float32](q, out)
}

// check holds C against what is wanted: the same bits where sums are exact, else a bound that grows
// with the length of the sum.
func (x *built) check(t *testing.T, q problem) {
	t.Helper()
	for i, want := range x.want {
		got, bound := x.at(i)
		if q.real {
			bound = bound*math.Abs(want) + 3e-7*float64(q.k)*x.sum[i]
		} else {
			bound, want = 0, x.round(want)
		}
		if want != want && got == got || want == want && !(math.Abs(got-want) <= bound) && got != want {
			t.Fatalf("C[%d,%d] is %v, want %v ± %v", i/x.p.LDC, i%x.p.LDC, got, want, bound)
		}
	}
}

// at returns an element of C and the relative error of its type.
func (x *built) at(i int) (float64, float64) {
	switch x.p.Out {
	case dtype.F16:
		return to(backend.View[half.F16](x.c)[i]), 0x1p-11
	case dtype.BF16:
		return to(backend.View[half.BF16](x.c)[i]), 0x1p-8
	}
	return to(backend.View[float32](x.c)[i]), 0x1p-24
}

// round returns the element of C's type nearest to y.
func (x *built) round(y float64) float64 {
	switch x.p.Out {
	case dtype.F16:
		return to(half.F16From(float32(y)))
	case dtype.BF16:
		return to(half.BF16From(float32(y)))
	}
	return float64(float32(y))
}

func convert[T formats.Value](s []float32) []T {
	d := make([]T, len(s))
	for i, v := range s {
		d[i] = from[T](v)
	}
	return d
}

func from[T formats.Value](x float32) T {
	var t T
	switch p := any(&t).(type) {
	case *half.F16:
		*p = half.F16From(x)
	case *half.BF16:
		*p = half.BF16From(x)
	case *float32:
		*p = x
	}
	return t
}

func to[T formats.Value](t T) float64 {
	switch v := any(t).(type) {
	case half.F16:
		return float64(v.Float32())
	case half.BF16:
		return float64(v.Float32())
	}
	return float64(any(t).(float32))
}

// each runs f for each variant of each device, and type of C that the variant writes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, csr.Kernel)
		if len(vs) != 3 {
			t.Errorf("%d variants, want one for each of three types", len(vs))
		}
		for _, v := range vs {
			for _, out := range append([]dtype.Type{dtype.F32}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
	})
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range problems() {
			t.Run(q.name, func(t *testing.T) {
				x := buildFor(v.In, q, out)
				shadertest.Multiply(t, dev, csr.Kernel, v, x.a, x.b, x.c, x.p)
				x.check(t, q)
			})
		}
	})
}

// A row of B that no entry touches may hold anything; one that is touched passes on what it holds.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.In != dtype.F32 || out != dtype.F32 {
			return
		}
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		const n, k = 40, 300
		b := make([]float32, k*n)
		for j := range n {
			b[1*n+j] = nan // touched by no row
			b[2*n+j] = inf
			b[3*n+j] = -1
		}
		a := &formats.CSR[float32]{
			Rows: 4, Cols: k, RowPtr: []int64{0, 2, 4, 4, 4 + 299},
			ColIdx: []int32{2, 3, 0, 3}, Val: []float32{2, 5, 1, -3},
		}
		for i := range int32(k) {
			if i != 1 {
				a.ColIdx, a.Val = append(a.ColIdx, i), append(a.Val, -1)
			}
		}
		c := make([]float32, 4*n)
		shadertest.Multiply(t, dev, csr.Kernel, v, a, backend.Bytes(b), backend.Bytes(c),
			spec.Problem{M: 4, K: k, N: n, LDB: n, LDC: n, Alpha: 1})
		for i, got := range c {
			if want := []float32{inf, 3, 0, -inf}[i/n]; got != want {
				t.Fatalf("C[%d,%d] is %v, want %v", i/n, i%n, got, want)
			}
		}
	})
}

// The same bits every time, however many workers there are.
func TestReproducible(t *testing.T) {
	q := problem{lens: ragged(200, 3000), k: 3000, n: 70, real: true}
	run := func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) []byte {
		x := buildFor(v.In, q, out)
		shadertest.Multiply(t, dev, csr.Kernel, v, x.a, x.b, x.c, x.p)
		return x.c
	}
	first := map[string][]byte{}
	for _, procs := range []int{2, 1, 3} {
		old := runtime.GOMAXPROCS(procs)
		each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
			c := run(t, dev, v, out)
			if f, ok := first[t.Name()]; ok && !bytes.Equal(c, f) {
				t.Errorf("%d workers give other bits", procs)
			}
			first[strings.Split(t.Name(), "#")[0]] = c
		})
		runtime.GOMAXPROCS(old)
	}
}

func TestEncode(t *testing.T) {
	v := csr.Kernel.Variants[0]
	a := &formats.CSR[float32]{Rows: 2, Cols: 600, RowPtr: []int64{0, 0, 600}}
	for i := range int32(600) {
		a.ColIdx, a.Val = append(a.ColIdx, i), append(a.Val, 1)
	}
	e, err := csr.Kernel.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Format, (csr.Split{Longest: 256, Pieces: 3, Rows: 1}); got != want {
		t.Errorf("split is %+v, want %+v", got, want)
	}
	heavy := backend.View[uint32](e.Arrays[3].Data)[:9]
	if want := []uint32{0, 256, 256, 512, 512, 600, 1, 0, 3}; fmt.Sprint(heavy) != fmt.Sprint(want) {
		t.Errorf("heavy is %v, want %v", heavy, want)
	}
	if e.Stats.Fill != 1 || e.Stats.MACs != 600 || e.Stats.StoredBytes < 4*1203 {
		t.Errorf("stats are %+v", e.Stats)
	}

	a.ColIdx[5] = 600
	if _, err := csr.Kernel.Encode(a, v); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
	if _, err := csr.Kernel.Encode(&formats.CSR[half.F16]{RowPtr: []int64{0}}, v); err == nil {
		t.Error("another element type is accepted")
	}
}

func TestLaunchRefuses(t *testing.T) {
	e, err := csr.Kernel.Encode(&formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 0, 0}}, csr.Kernel.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	good := spec.Problem{M: 2, K: 3, N: 5, LDB: 8, LDC: 5, Out: dtype.F32, Caps: backend.Caps{MaxBinding: 1 << 20}}
	tests := []struct {
		name        string
		change      func(*spec.Problem)
		unsupported bool // on some codes
	}{
		{"rows", func(p *spec.Problem) { p.M = 3 }, false},
		{"inner", func(p *spec.Problem) { p.K = 2 }, false},
		{"ldb", func(p *spec.Problem) { p.LDB = 9 }, false},
		{"narrow ldb", func(p *spec.Problem) { p.LDB = 0 }, false},
		{"narrow ldc", func(p *spec.Problem) { p.LDC = 4 }, false},
		{"negative", func(p *spec.Problem) { p.N = -1 }, false},
		{"wide", func(p *spec.Problem) { p.LDB = 1 << 40 }, true},
		{"out", func(p *spec.Problem) { p.Out = dtype.S8 }, true},
		{"binding", func(p *spec.Problem) { p.Caps.MaxBinding = 30 }, true},
	}
	for _, v := range csr.Kernel.Variants {
		if v.In != dtype.F32 {
			continue
		}
		if _, err := csr.Kernel.Launch(v, e, good); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for _, tt := range tests {
			p := good
			tt.change(&p)
			_, err := csr.Kernel.Launch(v, e, p)
			if tt.name == "binding" && v.Code != backend.CodeWGSL {
				continue // the others address whole buffers
			}
			if err == nil || errors.Is(err, backend.ErrUnsupported) != tt.unsupported {
				t.Errorf("%s, %s: %v", v.Name, tt.name, err)
			}
		}
	}
}
