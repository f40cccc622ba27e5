// Products on every device present, held against exact sums; shapes that split work; refusals.

package csr_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// rows is n rows of equal length.
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

func cases() []shadertest.Case {
	ps := []shadertest.Case{
		{Name: "one number", Pattern: shadertest.Spread(1, rows(1, 1)...), K: 1, N: 1},
		{Name: "no entries", Pattern: shadertest.Spread(3, rows(5, 0)...), K: 3, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: shadertest.Spread(3, rows(5, 0)...), K: 3, N: 9},
		{Name: "one row in pieces", Pattern: shadertest.Spread(3001, rows(1, 3001)...), K: 3001, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "one column of A", Pattern: shadertest.Spread(1, rows(300, 1)...), K: 1, N: 40},
		{Name: "short rows", Pattern: shadertest.Spread(50, rows(1000, 3)...), K: 50, N: 64, LDB: 72, LDC: 64, Alpha: 3},
		{Name: "padding", Pattern: shadertest.Spread(30, rows(70, 5)...), K: 30, N: 33, LDB: 64, LDC: 77, Alpha: 1, Beta: -1},
		{Name: "inexact", Pattern: shadertest.Spread(700, ragged(90, 700)...), K: 700, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
	ps = append(ps, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Spread(1500, ragged(60, 1500)...), K: 1500, N: 37})...)
	for _, n := range []int{9, 70, 200} { // as for huge matrices, and shared out as for huge devices
		q := shadertest.Case{Pattern: shadertest.Spread(2500, ragged(90, 2500)...), K: 2500, N: n, Alpha: 2, Beta: 1}
		folded, units := q, q
		folded.Name, folded.Fold = fmt.Sprintf("folded grid, %d columns", n), true
		units.Name, units.Units = fmt.Sprintf("many units, %d columns", n), 1<<20
		ps = append(ps, folded, units)
	}
	for _, n := range []int{1, 2, 4, 7, 8, 9, 31, 32, 65, 128, 257, 520} {
		ps = append(ps, shadertest.Case{Name: fmt.Sprintf("ragged, %d columns", n), Pattern: shadertest.Spread(1500, ragged(60, 1500)...), K: 1500, N: n})
	}
	return ps
}

// each runs f for each variant of each device, and type of C that the variant writes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, csr.Format.Program)
		want := []dtype.Type{dtype.F32, dtype.F16, dtype.BF16}
		if dev.Caps().F64 {
			want = append(want, dtype.F64)
		}
		for _, prec := range want {
			if !slices.ContainsFunc(vs, func(v *spec.Variant) bool { return v.In == prec }) {
				t.Errorf("no variant for %v", prec)
			}
		}
		for _, v := range vs {
			for _, out := range append([]dtype.Type{v.Sums()}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
	})
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range cases() {
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, csr.Format, v, out) })
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
		shadertest.Multiply(t, dev, csr.Format, v, a, backend.Bytes(b), nil, backend.Bytes(c),
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
	q := shadertest.Case{Pattern: shadertest.Spread(3000, ragged(200, 3000)...), K: 3000, N: 70, Real: true}
	first := map[string][]byte{}
	for _, procs := range []int{2, 1, 3} {
		old := runtime.GOMAXPROCS(procs)
		each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
			c := q.Run(t, dev, csr.Format, v, out)
			key := v.Name + " " + out.String()
			if f, ok := first[key]; ok && !bytes.Equal(c, f) {
				t.Errorf("%d workers give other bits", procs)
			}
			first[key] = c
		})
		runtime.GOMAXPROCS(old)
	}
}

func named(name string) func(*spec.Variant) bool {
	return func(v *spec.Variant) bool { return v.Name == name }
}

func TestEncode(t *testing.T) {
	v, teams := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, named("cuda_f32"))], csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, named("cuda90_f32"))]
	a := &formats.CSR[float32]{Rows: 2, Cols: 600, RowPtr: []int64{0, 0, 600}}
	for i := range int32(600) {
		a.ColIdx, a.Val = append(a.ColIdx, i), append(a.Val, 1)
	}
	e, err := csr.Format.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := e.Format, (spec.Split{Longest: 256, Pieces: 3, Slots: 3, Rows: 1, Average: 300, Items: 5}); got != want {
		t.Errorf("split is %+v, want %+v", got, want)
	}
	heavy := backend.View[uint32](e.Arrays[3].Data)[:9]
	if want := []uint32{0, 256, 256, 512, 512, 600, 1, 0, 3}; fmt.Sprint(heavy) != fmt.Sprint(want) {
		t.Errorf("heavy is %v, want %v", heavy, want)
	}
	if e.Stats.Fill != 1 || e.Stats.MACs != 600 || e.Stats.StoredBytes < 4*1203 {
		t.Errorf("stats are %+v", e.Stats)
	}

	if e, err = csr.Format.Encode(a, teams); err != nil {
		t.Fatal(err)
	}
	heavy = backend.View[uint32](e.Arrays[3].Data)[:15]
	if want := []uint32{0, 256, 1, 0, 256, 512, 1, 1, 512, 600, 1, 2, 1, 0, 3}; !slices.Equal(heavy, want) {
		t.Errorf("for teams heavy is %v, want %v", heavy, want)
	}
	one := &formats.CSR[float32]{Rows: 50, Cols: 600, RowPtr: make([]int64, 51), ColIdx: a.ColIdx[:40], Val: a.Val[:40]}
	for r := range 43 {
		one.RowPtr[8+r] = 40 // all in row 7
	}
	if e, err = csr.Format.Encode(one, teams); err != nil {
		t.Fatal(err)
	}
	if got, want := e.Format, (spec.Split{Longest: 32, Pieces: 1, Items: 50, Chunks: spec.Chunks{First: 1, Count: 1}}); got != want {
		t.Errorf("split is %+v, want %+v", got, want)
	}
	heavy = backend.View[uint32](e.Arrays[3].Data)[:4]
	if want := []uint32{0, 40, 7, spec.NoSlot}; !slices.Equal(heavy, want) {
		t.Errorf("a row of one piece: heavy is %v, want %v", heavy, want)
	}

	a.ColIdx[5] = 600
	if _, err := csr.Format.Encode(a, v); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
	if _, err := csr.Format.Encode(&formats.CSR[half.F16]{RowPtr: []int64{0}}, v); err == nil {
		t.Error("another element type is accepted")
	}
}

func TestLaunchRefuses(t *testing.T) {
	e, err := csr.Format.Encode(&formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 0, 0}}, csr.Format.Variants[0])
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
		{"wide", func(p *spec.Problem) { p.LDB = 1 << 30 }, true},
		{"out", func(p *spec.Problem) { p.Out = dtype.S8 }, true},
		{"binding", func(p *spec.Problem) { p.Caps.MaxBinding = 30 }, true},
	}
	for _, v := range csr.Format.Variants {
		if v.In != dtype.F32 {
			continue
		}
		if _, err := csr.Format.Launch(v, e, good); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for _, tt := range tests {
			p := good
			tt.change(&p)
			_, err := csr.Format.Launch(v, e, p)
			if tt.name == "binding" && v.Code != backend.CodeWGSL {
				continue // the others address whole buffers
			}
			if err == nil || errors.Is(err, backend.ErrUnsupported) != tt.unsupported {
				t.Errorf("%s, %s: %v", v.Name, tt.name, err)
			}
		}
	}
}

// TestStreams: from so many entries on a B of few columns is multiplied in chunks of A, and one whose rows lie side by side is taken then alone.
func TestStreams(t *testing.T) {
	const least, across = 1 << 22, 1 << 11
	packed := map[string]*spec.Packed{}
	for _, q := range []struct {
		packed  string // the variant
		typ     dtype.Type
		entries int
		n, ldb  int
		want    string // the variant that multiplies, "" if none does
	}{
		{"cuda90_f32", dtype.F32, least, 1, 8, "cuda90_stream_n1_f32"},
		{"cuda90_f32", dtype.F32, least, 1, 1, "cuda90_stream_n1_f32"},
		{"cuda90_f32", dtype.F32, least, 2, 2, "cuda90_stream_n2_f32"},
		{"cuda90_f32", dtype.F32, least, 3, 4, "cuda90_stream_n4_f32"},
		{"cuda90_f32", dtype.F32, least, 4, 8, "cuda90_stream_n4_f32"},
		{"cuda90_f32", dtype.F32, least, 5, 8, "cuda90_f32"},
		{"cuda90_f32", dtype.F32, least, 3, 3, ""},
		{"cuda90_f32", dtype.F32, least - 1, 1, 8, "cuda90_f32"},
		{"cuda90_f32", dtype.F32, least - 1, 1, 1, ""},
		{"cuda90_stream_n1_f32", dtype.F32, 1, 1, 1, "cuda90_stream_n1_f32"}, // it was asked for
		{"cuda90_f64", dtype.F64, least, 1, 1, "cuda90_stream_n1_f64"},
		{"cuda90_f64", dtype.F64, least - 1, 4, 8, "cuda90_f64"},
		{"cuda_f32", dtype.F32, least, 1, 8, "cuda_f32"},
		{"cuda_f32", dtype.F32, least, 1, 1, ""},
	} {
		t.Run(fmt.Sprintf("%s, %d entries, %d columns %d apart", q.packed, q.entries, q.n, q.ldb), func(t *testing.T) {
			v := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, func(v *spec.Variant) bool { return v.Name == q.packed })]
			rows := (q.entries + across - 1) / across
			key := fmt.Sprint(q.packed, q.entries)
			if packed[key] == nil {
				var err error
				if q.typ == dtype.F64 {
					packed[key], err = csr.Format.Encode(filled[float64](rows, across, q.entries), v)
				} else {
					packed[key], err = csr.Format.Encode(filled[float32](rows, across, q.entries), v)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			e := packed[key]
			caps := backend.Caps{Code: backend.CodePTX, Arch: v.Need.Arch, F64: true, Units: 132, SharedBytes: 1 << 20, MaxBinding: 1 << 40}
			p := spec.Problem{M: rows, K: across, N: q.n, LDB: q.ldb, LDC: q.n, Out: q.typ, Alpha: 1, Caps: caps}
			if got := csr.Format.Runs(v, e, p); q.want != "" && got.Name != q.want {
				t.Errorf("%s runs, want %s", got.Name, q.want)
			}
			l, err := csr.Format.Launch(v, e, p)
			if q.want == "" {
				if err == nil {
					t.Errorf("%s takes a B whose rows lie side by side", l.Passes[0].Variant.Name)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, pass := range l.Passes {
				if pass.Variant.Name != q.want {
					t.Errorf("%s is launched, want %s", pass.Variant.Name, q.want)
				}
			}
		})
	}
}

// filled is a matrix of so many entries in the first places of its rows, all zero.
func filled[T formats.Value](rows, cols, entries int) *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1), ColIdx: make([]int32, entries), Val: make([]T, entries)}
	for i := range a.ColIdx {
		a.ColIdx[i] = int32(i % cols)
	}
	for i := range rows {
		a.RowPtr[i+1] = int64(min(entries, (i+1)*cols))
	}
	return a
}
