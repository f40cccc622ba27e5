// Products on every device present, held against exact sums; shapes that split work; refusals.

package csr_test

import (
	"bytes"
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

var suite = shadertest.Suite{
	Format: csr.Format,
	Types:  shadertest.FloatsAndF64,
	Cases: func(v *spec.Variant, _ dtype.Type) []shadertest.Case {
		return shadertest.InOrders(v, cases())
	},
	Specials: shadertest.Always(shadertest.NonFinite(), longSpecial()),
}

func TestFormat(t *testing.T) { suite.Run(t) }

// longSpecial is a product by a B with NaN in a row that no entry touches, and infinities in one that a long row
// touches.
func longSpecial() shadertest.Specials {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	q := shadertest.Specials{Name: "a long row", B: make([]float32, 300), N: 40}
	q.B[1], q.B[2], q.B[3] = nan, inf, -1
	whole := shadertest.Special{Want: -inf}
	for i := range int32(300) {
		if i != 1 {
			whole.Cols, whole.Vals = append(whole.Cols, i), append(whole.Vals, -1)
		}
	}
	q.A = []shadertest.Special{
		{Cols: []int32{2, 3}, Vals: []float32{2, 5}, Want: inf},
		{Cols: []int32{0, 3}, Vals: []float32{1, -3}, Want: 3}, {}, whole,
	}
	return q
}

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

// many entries in each of n rows, but none in some.
func many(n, k int) []int {
	r := rand.New(rand.NewPCG(3, uint64(n)))
	l := make([]int, n)
	for i := range l {
		if i%11 != 5 {
			l[i] = 40 + r.IntN(k/4)
		}
	}
	return l
}

func cases() []shadertest.Case {
	ps := []shadertest.Case{
		{Name: "one number", Pattern: shadertest.Spread(1, rows(1, 1)...), K: 1, N: 1},
		{Name: "no entries", Pattern: shadertest.Spread(3, rows(5, 0)...), K: 3, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: shadertest.Spread(3, rows(5, 0)...), K: 3, N: 9},
		{Name: "one row in segments", Pattern: shadertest.Spread(3001, rows(1, 3001)...), K: 3001, N: 17, Alpha: -2,
			Beta: 0.5},
		{Name: "one column of A", Pattern: shadertest.Spread(1, rows(300, 1)...), K: 1, N: 40},
		{Name: "short rows", Pattern: shadertest.Spread(50, rows(1000, 3)...), K: 50, N: 64, LDB: 72, LDC: 64, Alpha: 3},
		{Name: "padding", Pattern: shadertest.Spread(30, rows(70, 5)...), K: 30, N: 33, LDB: 64, LDC: 77, Alpha: 1, Beta: -1},
		{Name: "inexact", Pattern: shadertest.Spread(700, ragged(90, 700)...), K: 700, N: 50, Alpha: 0.3, Beta: 1.7,
			Real: true},
	}
	ps = append(ps, shadertest.Columns(shadertest.Case{Name: "rows of many entries",
		Pattern: shadertest.Spread(700, many(90, 700)...), K: 700}, 1, 2, 3, 4, 5, 8, 9)...)
	ps = append(ps, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Spread(300, many(60, 300)...), K: 300,
		N: 3})...)
	ps = append(ps, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Spread(1500, ragged(60, 1500)...), K: 1500,
		N: 37})...)
	for _, n := range []int{9, 70, 200} { // as for huge matrices, and shared out as for huge devices
		q := shadertest.Case{Pattern: shadertest.Spread(2500, ragged(90, 2500)...), K: 2500, N: n, Alpha: 2, Beta: 1}
		folded, units := q, q
		folded.Name, folded.Fold = fmt.Sprintf("folded grid, %d columns", n), true
		units.Name, units.Units = fmt.Sprintf("many units, %d columns", n), 1<<20
		ps = append(ps, folded, units)
	}
	ps = append(ps, shadertest.Columns(shadertest.Case{Name: "ragged",
		Pattern: shadertest.Spread(1500, ragged(60, 1500)...), K: 1500},
		1, 2, 4, 7, 8, 9, 31, 32, 65, 128, 257, 520)...)
	return ps
}

// The same bits every time, however many workers there are.
func TestReproducible(t *testing.T) {
	q := shadertest.Case{Pattern: shadertest.Spread(3000, ragged(200, 3000)...), K: 3000, N: 70, Real: true}
	first := map[string][]byte{}
	for _, procs := range []int{2, 1, 3} {
		old := runtime.GOMAXPROCS(procs)
		suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
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
	if got, want := e.Format, (spec.Split{Longest: 256, Segments: 3, Slots: 3, Rows: 1, Average: 300,
		Items: 5}); got != want {
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
	mixed := &formats.CSR[float32]{Rows: 50, Cols: 600, RowPtr: make([]int64, 51), ColIdx: slices.Concat(a.ColIdx[:8],
		a.ColIdx[:40], a.ColIdx[:100]), Val: a.Val[:148]}
	for i := range mixed.RowPtr { // 8 entries in row 3, 40 in row 7, and 100 in row 9
		switch {
		case i > 9:
			mixed.RowPtr[i] = 148
		case i > 7:
			mixed.RowPtr[i] = 48
		case i > 3:
			mixed.RowPtr[i] = 8
		}
	}
	if e, err = csr.Format.Encode(mixed, teams); err != nil {
		t.Fatal(err)
	}
	if got, want := e.Format, (spec.Split{Longest: 8, Segments: 1, Middle: 1, Average: 2, Items: 50,
		Chunks: spec.Chunks{First: 2, Count: 1}}); got != want {
		t.Errorf("split is %+v, want %+v", got, want)
	}
	heavy = backend.View[uint32](e.Arrays[3].Data)[:8]
	if want := []uint32{48, 148, 9, spec.NoSlot, 8, 48, 7, spec.NoSlot}; !slices.Equal(heavy, want) {
		t.Errorf("a row of one segment and a row for a warp: heavy is %v, want %v", heavy, want)
	}

	a.ColIdx[5] = 600
	if _, err := csr.Format.Encode(a, v); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
	if _, err := csr.Format.Encode(&formats.CSR[half.F16]{RowPtr: []int64{0}}, v); err == nil {
		t.Error("another element type is accepted")
	}
}

// TestStreams: from a number of entries on a B of few columns is multiplied in chunks of A, and one whose rows lie side
// by side is taken then alone.
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
			v := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, func(v *spec.Variant) bool {
				return v.Name == q.packed
			})]
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
			caps := backend.Caps{Code: backend.CodePTX, Arch: v.Need.Arch, F64: true, Units: 132, SharedBytes: 1 << 20,
				MaxBinding: 1 << 40}
			p := spec.Problem{M: rows, K: across, N: q.n, LDB: q.ldb, LDC: q.n, Out: q.typ, Alpha: 1, Caps: caps}
			if got := csr.Format.Runs(v, e, p); q.want != "" && got.Name != q.want {
				t.Errorf("%s runs, want %s", got.Name, q.want)
			}
			l, err := csr.Format.LaunchSuited(v, e, p)
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

// filled is a matrix of n entries in the first places of its rows, all zero.
func filled[T formats.Value](rows, cols, entries int) *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1), ColIdx: make([]int32, entries),
		Val: make([]T, entries)}
	for i := range a.ColIdx {
		a.ColIdx[i] = int32(i % cols)
	}
	for i := range rows {
		a.RowPtr[i+1] = int64(min(entries, (i+1)*cols))
	}
	return a
}

// TestMany: products with more warps than the device runs at once take the variant that runs more of them; f64, few
// columns and smaller products do not. Many columns take the variant of wide rows, unless rows are few.
func TestMany(t *testing.T) {
	a := formats.NewDense[float32](5000, 1)
	for i := range a.Data {
		a.Data[i] = 1
	}
	for _, c := range []struct {
		variant  string
		n, units int
		want     string
	}{
		{"cuda90_f32", 64, 4, "cuda90_many_f32"},
		{"cuda90_f32", 64, 132, "cuda90_f32"},
		{"cuda90_f32", 8, 4, "cuda90_f32"},
		{"cuda90_f32", 128, 132, "cuda90_wide_f32"},
		{"cuda90_f32", 128, 1000, "cuda90_f32"},
		{"cuda90_f16", 256, 4, "cuda90_many_f16"},
		{"cuda90_f64", 64, 1, "cuda90_f64"},
		{"cuda_f32", 128, 1, "cuda_f32"},
	} {
		v := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, named(c.variant))]
		e, err := csr.Format.Encode(formats.ConvertTo(a.Sparse(), v.In), v)
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Problem{M: 5000, K: 1, N: c.n, LDB: c.n, LDC: c.n, Out: dtype.F32, Caps: backend.Caps{Units: c.units}}
		if got := csr.Format.Suited(v, e, p); got.Name != c.want {
			t.Errorf("%s, %d columns, %d multiprocessors: %s, want %s", c.variant, c.n, c.units, got.Name, c.want)
		}
	}
}

// TestVectors: rows of many entries in 16-bit types take the kernels for vectors, unless B does not fit or rows are
// unequal; and so do some of the rows if the whole matrix does.
func TestVectors(t *testing.T) {
	equal := spec.Extent{Rows: 64, Cols: 3000, NNZ: 64 * 40, Longest: 40}
	long, wide := equal, equal
	long.Longest, wide.Cols = 1000, 1<<16
	for _, q := range []struct {
		packed           string // the variant
		k, entries, n    int    // of each row
		whole            *spec.Extent
		want, wantColumn string // the variants that multiply for row-major B and C, and for column-major ones if they can
	}{
		{"cuda90_f16", 3000, 40, 1, nil, "cuda90_vector_f16_n1", "cuda90_vector_f16_n1"},
		{"cuda90_f16", 3000, 40, 2, nil, "cuda90_vector_f16_n2", "cuda90_vector_f16_n2"},
		{"cuda90_f16", 3000, 40, 3, nil, "cuda90_vector_f16_n4", "cuda90_vector_f16_n4"},
		{"cuda90_f16", 3000, 40, 5, nil, "cuda90_f16", ""},
		{"cuda90_f16", 3000, 20, 1, nil, "cuda90_f16", ""},
		{"cuda90_f16", 150, 40, 1, nil, "cuda90_f16", ""},
		{"cuda90_f16", 32767, 40, 1, nil, "cuda90_vector_f16_n1", "cuda90_vector_f16_n1"},
		{"cuda90_f16", 32768, 40, 1, nil, "cuda90_f16", ""},
		{"cuda90_bf16", 3000, 40, 1, nil, "cuda90_vector_bf16_n1", "cuda90_vector_bf16_n1"},
		{"cuda90_f32", 3000, 40, 1, nil, "cuda90_f32", ""},
		{"cuda_f16", 3000, 40, 1, nil, "cuda_f16", ""},
		{"cuda90_f16", 3000, 40, 1, &equal, "cuda90_vector_f16_n1", "cuda90_vector_f16_n1"},
		{"cuda90_f16", 3000, 40, 1, &long, "cuda90_f16", ""},
		{"cuda90_f16", 3000, 40, 1, &wide, "cuda90_f16", ""},
	} {
		v := csr.Format.Variants[slices.IndexFunc(csr.Format.Variants, named(q.packed))]
		a := filled[half.F16](8, q.entries, 8*q.entries)
		a.Cols = q.k
		rows := formats.ConvertTo(a, v.In)
		e, err := csr.Format.Encode(rows, v)
		if q.whole != nil {
			e, err = csr.Format.EncodeShare(rows, v, *q.whole)
		}
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Problem{M: 8, K: q.k, N: q.n, LDB: 8, LDC: q.n, Out: v.Sums(), Alpha: 1, Caps: backend.Caps{Units: 132}}
		name := fmt.Sprintf("%s, %d×%d by %d columns, %d entries a row, within %+v", q.packed, 8, q.k, q.n, q.entries,
			q.whole)
		if got := csr.Format.Runs(v, e, p); got.Name != q.want {
			t.Errorf("%s: %s, want %s", name, got.Name, q.want)
		}
		p.BCol, p.CCol, p.LDB, p.LDC = true, true, (q.k+7)&^7, 8
		l, err := csr.Format.LaunchSuited(v, e, p)
		switch {
		case q.wantColumn == "":
			shadertest.Refused(t, name+", column-major", err, true)
		case err != nil || l.Passes[0].Variant.Name != q.wantColumn:
			t.Errorf("%s, column-major: %v, error %v, want %s", name, l.Passes, err, q.wantColumn)
		}
	}
}
