package sparse24r_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/sparse24r"
	"github.com/spmmrun/spmm/shaders/spec"
)

// scattered returns columns of rows in which each place is taken with that probability.
func scattered(rows, k int, density float64) [][]int32 {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(k)))
	cols := make([][]int32, rows)
	for i := range cols {
		for c := range k {
			if r.Float64() < density {
				cols[i] = append(cols[i], int32(c))
			}
		}
	}
	return cols
}

func cases() []shadertest.Case {
	cs := []shadertest.Case{
		{Name: "no entries", Pattern: make([][]int32, 5), K: 30, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 30, N: 9},
		{Name: "one number", Pattern: [][]int32{{2}}, K: 40, N: 1},
		{Name: "K=1", Pattern: shadertest.Spread(1, 1, 0, 1, 1), K: 1, N: 9},
		{Name: "one dense row", Pattern: shadertest.Spread(99, 0, 0, 99, 0), K: 99, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "dense", Pattern: shadertest.Spread(70, 70, 70, 70, 70, 70, 70), K: 70, N: 33},
		{Name: "inexact", Pattern: scattered(70, 300, 0.4), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
		// Several tiles for each cluster, of each height.
		{Name: "tall tiles", Pattern: scattered(1100, 300, 0.2), K: 300, N: 600, Units: 4},
		{Name: "tiles", Pattern: scattered(300, 500, 0.1), K: 500, N: 400, LDC: 403, Beta: 1, Units: 4},
		{Name: "small tiles", Pattern: scattered(140, 900, 0.1), K: 900, N: 100, Units: 4},
		{Name: "a tile for each cluster", Pattern: scattered(150, 900, 0.1), K: 900, N: 140, Units: 132},
	}
	for _, n := range []int{1, 2, 3, 5, 8, 9, 31, 33, 64, 65, 129, 300} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("%d columns", n), Pattern: scattered(37, 200, 0.3), K: 200, N: n, LDB: (n + 15) &^ 7, LDC: n + n%3})
	}
	for _, k := range []int{3, 5, 63, 64, 65, 128, 257, 1030} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("K=%d", k), Pattern: scattered(20, k, 0.5), K: k, N: 24})
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: scattered(35, 300, 0.3), K: 300, N: 77}, shadertest.Case{Pattern: scattered(35, 300, 0.3), K: 300, N: 3})...)
	return append(cs, shadertest.Case{Name: "many rows", Pattern: scattered(601, 40, 0.4), K: 40, N: 20})
}

// each runs f for each variant of each device, and type of C that the variant writes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	if shadertest.CompileOnly() {
		t.Log("this device runs nothing; the tests of shaders load the code")
		return
	}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		for _, v := range shadertest.Variants(dev, sparse24r.Format.Program) {
			for _, out := range append([]dtype.Type{dtype.F32}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
	})
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for i, q := range cases() {
			if out != dtype.F32 && i%4 != 1 {
				continue // writing C: a share of all that is the same for all
			}
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, sparse24r.Format, v, out) })
		}
	})
}

// TestFold: grids that are folded along z.
func TestFold(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.Maps == 0 { // clusters' grids cannot be bent
			shadertest.Case{Pattern: scattered(601, 40, 0.4), K: 40, N: 20, Fold: true}.Run(t, dev, sparse24r.Format, v, out)
		}
	})
}

// TestReproducible: two runs give the same bits.
func TestReproducible(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		q := shadertest.Case{Pattern: scattered(100, 500, 0.3), K: 500, N: 70, Real: true}
		q.RunTwice(t, dev, sparse24r.Format, v, out)
	})
}

// TestNonFinite: what a row does not store does not touch B, whatever B holds there; what it stores does, zeros
// included, in both parts.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		switch v.In.Storage() {
		case dtype.F16:
			nonFinite[half.F16](t, dev, v, out)
		case dtype.BF16:
			nonFinite[half.BF16](t, dev, v, out)
		default:
			nonFinite[float32](t, dev, v, out)
		}
	})
}

func nonFinite[T formats.Value](t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const n = 37
	// Of B the rows 3, 7, 11 and 15 are special in every third column; three entries stand before them in their groups, or none do.
	special := map[int]float32{3: inf, 7: nan, 11: inf, 15: -inf}
	rows := []struct {
		cols []int32
		last float32 // value of the last entry; those before are 1
		want float32 // in special columns; in the others it is the sum of values
	}{
		{[]int32{0, 1, 2}, 1, 3}, // beside an infinity
		{[]int32{0, 1, 3}, 2, inf},
		{[]int32{0, 1, 2, 3}, -2, -inf},
		{[]int32{0, 1, 2, 3}, 0, nan}, // a stored zero is an entry
		{[]int32{3}, 0, nan},
		{[]int32{4, 5, 6}, 1, 3},
		{[]int32{4, 5, 7}, 1, nan},
		{[]int32{3, 8, 9, 11}, 1, inf},
		{[]int32{3, 12, 13, 15}, 1, nan},
		{nil, 0, 0},
	}
	const k, ld = 16, (n + 7) &^ 7
	b := make([]T, k*ld)
	for i := range k {
		for j := range ld {
			x := float32(1)
			if y, ok := special[i]; ok && j%3 == 0 {
				x = y
			}
			b[i*ld+j] = shadertest.From[T](x)
		}
	}
	a := &formats.CSR[T]{Rows: len(rows), Cols: k, RowPtr: []int64{0}}
	for _, r := range rows {
		for i, c := range r.cols {
			x := float32(1)
			if i == len(r.cols)-1 {
				x = r.last
			}
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, shadertest.From[T](x))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	c := make([]byte, len(rows)*n*out.Size())
	shadertest.Multiply(t, dev, sparse24r.Format, v, a, backend.Bytes(b), nil, c,
		spec.Problem{M: len(rows), K: k, N: n, LDB: ld, LDC: n, Out: out, Alpha: 1})
	for i, r := range rows {
		for j := range n {
			want := float32(max(0, len(r.cols)-1)) + r.last
			if j%3 == 0 {
				want = r.want
			}
			if got := element(c, out, i*n+j); got != want && (got == got || want == want) {
				t.Fatalf("C[%d,%d] is %v, want %v", i, j, got, want)
			}
		}
	}
}

// element returns element i of a matrix of type t.
func element(c []byte, t dtype.Type, i int) float32 {
	switch t {
	case dtype.F16:
		return backend.View[half.F16](c)[i].Float32()
	case dtype.BF16:
		return backend.View[half.BF16](c)[i].Float32()
	}
	return backend.View[float32](c)[i]
}

// TestStats: what auto ranks by; and a matrix that is encoded already is packed as one that is not.
func TestStats(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 100, Cols: 300, RowPtr: []int64{0}}
	for _, cols := range scattered(a.Rows, a.Cols, 0.3) {
		for _, c := range cols {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, 1)
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	for _, v := range sparse24r.Format.Variants {
		x := formats.ConvertTo(a, v.In)
		e, err := sparse24r.Format.Encode(x, v)
		if err != nil {
			t.Fatal(err)
		}
		m, err := format.Format.Encode(x, nil)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := sparse24r.Format.Adopt(m, v)
		if err != nil {
			t.Fatal(err)
		}
		var stored int64
		for i, x := range e.Arrays {
			stored += int64(len(x.Data))
			if !bytes.Equal(x.Data, adopted.Arrays[i].Data) {
				t.Errorf("%s: array %s differs where the matrix was encoded before", v.Name, x.Name)
			}
		}
		if s := e.Stats; s.StoredBytes != stored || e.NNZ != a.NNZ() || s.MACs < a.NNZ() || s.Fill <= 0 || s.Fill > 1 || s.Gathers <= 0 || e.Items <= 0 {
			t.Errorf("%s: %+v for %d entries in %d bytes, %d items", v.Name, s, a.NNZ(), stored, e.Items)
		}
	}
}

// BenchmarkMultiply is 4096×4096 with scattered entries in f16, on every device and by each variant.
func BenchmarkMultiply(b *testing.B) {
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, zeros := range []float64{0.5, 0.8, 0.85, 0.9, 0.95, 0.98} {
			a := sync.OnceValue(func() *formats.CSR[half.F16] {
				a := &formats.CSR[half.F16]{Rows: 4096, Cols: 4096, RowPtr: []int64{0}}
				for _, cols := range scattered(a.Rows, a.Cols, 1-zeros) {
					for _, c := range cols {
						a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, half.F16From(1))
					}
					a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
				}
				return a
			})
			for _, v := range sparse24r.Format.Variants {
				if v.In != dtype.F16 || !v.Met(dev.Caps()) {
					continue
				}
				for _, n := range []int{8, 64, 128, 256, 512, 1024, 2048, 4096} {
					b.Run(fmt.Sprintf("zeros=%v/%s/n=%d", zeros, v.Name, n), func(b *testing.B) { shadertest.Bench(b, dev, sparse24r.Format, v, a(), n) })
				}
			}
		}
	})
}
