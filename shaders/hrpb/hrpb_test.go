package hrpb_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// scattered is a pattern in which rows, alike in groups of alike, have each column with probability density.
func scattered(rows, k, alike int, density float64) [][]int32 {
	p := make([][]int32, rows)
	for i := range p {
		r := rand.New(rand.NewPCG(uint64(i/alike), uint64(alike)))
		for j := range k {
			if r.Float64() < density {
				p[i] = append(p[i], int32(j))
			}
		}
	}
	return p
}

// ragged is a pattern of mostly short rows, empty panels and one full row.
func ragged(rows, k int) [][]int32 {
	p := scattered(rows, k, 1, 3/float64(k))
	for i := rows / 3; i < rows/3+40 && i < rows; i++ {
		p[i] = nil
	}
	p[rows/2] = shadertest.Spread(k, k)[0]
	return p
}

// dealt is a pattern whose rows are alike kinds apart, so that another order of rows is packed.
func dealt(rows, kinds, k int, density float64) [][]int32 {
	of, p := scattered(kinds, k, 1, density), make([][]int32, rows)
	for i := range p {
		p[i] = of[i%kinds]
	}
	return p
}

// hubs is a pattern whose first and last but one panels have rows so long that they are split on any device.
func hubs() (p [][]int32, k int) {
	k = 6000
	p = scattered(16*50-3, k, 1, 2/float64(k))
	p[3] = shadertest.Spread(k, 3000)[0]
	p[16*48+2] = shadertest.Spread(k, 1701)[0]
	p[16*48+9] = shadertest.Spread(k, 900)[0]
	return p, k
}

func cases() []shadertest.Case {
	cs := []shadertest.Case{
		{Name: "one number", Pattern: shadertest.Spread(1, 1), K: 1, N: 1},
		{Name: "no entries", Pattern: make([][]int32, 5), K: 3, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 3, N: 9},
		{Name: "K=1", Pattern: scattered(37, 1, 1, 0.7), K: 1, N: 40, Alpha: 2},
		{Name: "one dense row", Pattern: shadertest.Spread(999, 0, 0, 999, 0), K: 999, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "full bricks", Pattern: scattered(64, 200, 16, 0.3), K: 200, N: 128},
		{Name: "dense", Pattern: scattered(35, 50, 1, 1), K: 50, N: 70},
		{Name: "scattered", Pattern: scattered(40, 90, 1, 0.1), K: 90, N: 72, Alpha: 3},
		{Name: "padding", Pattern: scattered(29, 60, 8, 0.3), K: 60, N: 33, LDB: 64, LDC: 77, Beta: -1},
		{Name: "rows of C apart by whole quads", Pattern: scattered(29, 60, 8, 0.3), K: 60, N: 34, LDC: 40, Beta: 2},
		{Name: "several tiles of columns", Pattern: scattered(21, 50, 8, 0.5), K: 50, N: 531, Beta: 1},
		{Name: "inexact", Pattern: scattered(50, 300, 4, 0.2), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
	for _, n := range []int{1, 2, 7, 8, 31, 64, 65, 129} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("ragged, %d columns", n), Pattern: ragged(150, 400), K: 400, N: n})
	}
	p, k := hubs()
	cs = append(cs, shadertest.Case{Name: "split panels", Pattern: p, K: k, N: 5, Alpha: 2, Beta: -1},
		shadertest.Case{Name: "split panels, inexact", Pattern: p, K: k, N: 12, Real: true})
	// Panels of every length around the stages.
	p = nil
	for n := range 70 {
		p = append(p, make([][]int32, 16)...)
		p[16*n+n%16] = shadertest.Spread(80, n)[0]
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Spread(1500, append(make([]int, 20), 1500, 1, 700, 3)...), K: 1500, N: 77})...)
	cs = append(cs,
		shadertest.Case{Name: "another order", Pattern: dealt(203, 11, 150, 0.1), K: 150, N: 40, Alpha: 2, Beta: -1},
		shadertest.Case{Name: "another order, whole tiles", Pattern: dealt(256, 16, 300, 0.2), K: 300, N: 256},
		shadertest.Case{Name: "another order, teams and split panels", Pattern: dealt(90, 5, 3000, 0.3), K: 3000, N: 136, Real: true})
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: dealt(75, 4, 200, 0.2), K: 200, N: 44})...)
	return append(cs, shadertest.Case{Name: "every length", Pattern: p, K: 80, N: 20})
}

// each runs f for each variant of each device, and type of C that the variant writes. Where the
// device is the software driver with cooperative matrices, it runs other vendors' tiles too, which
// the driver does not list but computes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	if shadertest.CompileOnly() {
		t.Log("this device runs nothing; TestLoad is for it")
		return
	}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, hrpb.Format.Program)
		if c := dev.Caps(); len(c.Matrix) > 0 && dev.Info().Kind == "cpu" {
			vs = append(vs, hrpb.CoopVariants(c.SubgroupMin)...)
		}
		for _, v := range slices.Clone(vs) {
			if v.Code == backend.CodeGo {
				vs = append(vs, hrpb.Ordered(v))
			}
		}
		seen := map[string]bool{}
		for _, v := range vs {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			for _, out := range append([]dtype.Type{v.Sums()}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
		want := []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}
		switch dev.Caps().Code {
		case backend.CodePTX:
			want = append(want, dtype.TF32, dtype.F64)
		case backend.CodeGo:
			want = append(want, dtype.F64)
		}
		for _, prec := range want {
			if !has(vs, prec) {
				t.Errorf("no variant for %v", prec)
			}
		}
	})
}

func has(vs []*spec.Variant, prec dtype.Type) bool {
	for _, v := range vs {
		if v.In == prec {
			return true
		}
	}
	return false
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range cases() {
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, hrpb.Format, v, out) })
		}
	})
}

// TestSplit makes sure that the cases above have panels that are split.
func TestSplit(t *testing.T) {
	p, k := hubs()
	a := &formats.CSR[float32]{Rows: len(p), Cols: k, RowPtr: []int64{0}}
	for _, cols := range p {
		a.ColIdx = append(a.ColIdx, cols...)
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	a.Val = make([]float32, len(a.ColIdx))
	for _, v := range hrpb.Format.Variants {
		if v.In.Storage() != dtype.F32 {
			continue
		}
		e, err := hrpb.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		l, err := hrpb.Format.Launch(v, e, spec.Problem{M: a.Rows, K: a.Cols, N: 8, LDB: 8, LDC: 8, Out: dtype.F32, Alpha: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Passes) < 2 || l.Workspace < 10*16*8*4 {
			t.Errorf("%s: no second phase, or not for 10 slots (%d bytes)", v.Name, l.Workspace)
		}
	}
}

// TestOrder makes sure that the cases above have rows in another order.
func TestOrder(t *testing.T) {
	for _, q := range cases() {
		if !strings.HasPrefix(q.Name, "another order") {
			continue
		}
		a := &formats.CSR[float32]{Rows: len(q.Pattern), Cols: q.K, RowPtr: []int64{0}}
		for _, cols := range q.Pattern {
			a.ColIdx = append(a.ColIdx, cols...)
			a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
		}
		a.Val = make([]float32, len(a.ColIdx))
		for _, v := range hrpb.Format.Variants {
			if v.In.Storage() != dtype.F32 || v.Code == backend.CodeGo {
				continue
			}
			e, err := hrpb.Format.Encode(a, v)
			if err != nil {
				t.Fatal(err)
			}
			if len(e.Format.(*format.Matrix[float32]).RowIdx) != a.Rows {
				t.Errorf("%s, %s: rows are in their order", q.Name, v.Name)
			}
		}
	}
}

// TestRange multiplies f32 data of many magnitudes in tf32: rows of A and columns of B from 2^-45 to 2^45, elements of
// a row or column from its largest down to 2^-32 of it. It holds them to the bound in kernel_coop.comp, which
// is what is left of f32's range where tf32 is made of f16; CUDA's matrix units need less of it.
func TestRange(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.In != dtype.TF32 || out != dtype.F32 {
			return
		}
		const m, k, n = 40, 300, 72
		r := rand.New(rand.NewPCG(3, 4))
		number := func(e int) float32 {
			if r.IntN(4) == 0 {
				e -= r.IntN(33)
			}
			return float32(math.Ldexp(1+r.Float64(), e)) * float32(1-2*r.IntN(2))
		}
		a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
		for _, cols := range scattered(m, k, 3, 0.2) {
			e := r.IntN(91) - 45
			for _, c := range cols {
				a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, number(e))
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		b, bmax := make([]float32, k*n), make([]float64, n)
		for j := range n {
			e := r.IntN(91) - 45
			for i := range k {
				b[i*n+j] = number(e)
				bmax[j] = max(bmax[j], math.Abs(float64(b[i*n+j])))
			}
		}
		c := make([]byte, 4*m*n)
		shadertest.Multiply(t, dev, hrpb.Format, v, a, backend.Bytes(b), nil, c,
			spec.Problem{M: m, K: k, N: n, LDB: n, LDC: n, Out: out, Alpha: 1})
		worst := 0.
		for i := range m {
			lo, hi := a.RowPtr[i], a.RowPtr[i+1]
			amax := 0.
			for _, x := range a.Val[lo:hi] {
				amax = max(amax, math.Abs(float64(x)))
			}
			for j := range n {
				var want, sum, small float64
				for p := lo; p < hi; p++ {
					x, y := float64(a.Val[p]), float64(b[int(a.ColIdx[p])*n+j])
					want += x * y
					sum += math.Abs(x * y)
					small += amax*math.Abs(y) + bmax[j]*math.Abs(x)
				}
				bound := (0x1p-10+0x1p-22+float64(hi-lo)*0x1p-22)*sum + 0x1p-28*small
				got := float64(backend.View[float32](c)[i*n+j])
				if !(math.Abs(got-want) <= bound) {
					t.Fatalf("C[%d,%d] is %v, want %v ± %v", i, j, got, want, bound)
				}
				worst = max(worst, math.Abs(got-want)/bound)
			}
		}
		t.Logf("the largest error is %.2f of the bound", worst)
		if worst == 0 {
			t.Error("no error at all: this was not tf32")
		}
	})
}

// TestAllBits multiplies f32 data of all magnitudes, whose last bits may be smaller than what a matrix unit's operands can
// hold, and holds the outputs to the bound for f32 (docs/bound.md).
func TestAllBits(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.In != dtype.F32 || out != dtype.F32 {
			return
		}
		const m, k, n = 70, 300, 72
		r := rand.New(rand.NewPCG(5, 6))
		number := func(e int) float32 {
			return float32(math.Ldexp(1+r.Float64(), e+r.IntN(3))) * float32(1-2*r.IntN(2))
		}
		a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
		for i, cols := range scattered(m, k, 1, 0.1) {
			e := -126 + 2*(i%70) // a panel has a few magnitudes
			for _, c := range cols[:min(len(cols), 1+i)] {
				a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, number(e))
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		b := make([]float32, k*n)
		for i := range b {
			b[i] = number(-126 + 3*(i%n))
		}
		c := make([]byte, 4*m*n)
		shadertest.Multiply(t, dev, hrpb.Format, v, a, backend.Bytes(b), nil, c,
			spec.Problem{M: m, K: k, N: n, LDB: n, LDC: n, Out: out, Alpha: 1})
		worst := 0.
		for i := range m {
			lo, hi := a.RowPtr[i], a.RowPtr[i+1]
			for j := range n {
				var want, sum float64
				for p := lo; p < hi; p++ {
					x := float64(a.Val[p]) * float64(b[int(a.ColIdx[p])*n+j])
					want += x
					sum += math.Abs(x)
				}
				bound := 3*float64(hi-lo+1)*0x1p-23*sum + float64(hi-lo)*0x1p-126
				got := float64(backend.View[float32](c)[i*n+j])
				if sum > 0x1p127 { // may overflow
					continue
				}
				if !(math.Abs(got-want) <= bound) {
					t.Fatalf("C[%d,%d] is %v, want %v ± %v", i, j, got, want, bound)
				}
				if bound > 0 {
					worst = max(worst, math.Abs(got-want)/bound)
				}
			}
		}
		t.Logf("the largest error is %.2f of the bound", worst)
	})
}

// TestReproducible: two runs give the same bits.
func TestReproducible(t *testing.T) {
	p, k := hubs()
	cs := []shadertest.Case{
		{Name: "panels", Pattern: scattered(100, 500, 2, 0.1), K: 500, N: 70, Real: true},
		{Name: "split panels", Pattern: p, K: k, N: 3, Real: true},
	}
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range cs {
			q.RunTwice(t, dev, hrpb.Format, v, out)
		}
	})
}

// TestNonFinite: what a row does not store does not touch B, whatever B holds there; what it stores
// does, zeros included. The rows are in one panel, and in one that is split.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		switch v.In.Storage() {
		case dtype.F16:
			nonFinite[half.F16](t, dev, v, out)
		case dtype.BF16:
			nonFinite[half.BF16](t, dev, v, out)
		case dtype.F64:
			nonFinite[float64](t, dev, v, out)
		default:
			nonFinite[float32](t, dev, v, out)
		}
	})
}

func nonFinite[T formats.Value](t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0: 1, 1: inf, 2: -inf, 3: nan, 4: 2} // B's rows, in the columns that are special
	rows := []struct {
		cols []int32
		vals []float32
		want float32 // in special columns; the others are the sum of values
	}{
		{[]int32{0, 4}, []float32{3, -1}, 1},
		{[]int32{0, 1}, []float32{3, 2}, inf},
		{[]int32{0, 1}, []float32{3, -2}, -inf},
		{[]int32{1, 2}, []float32{1, 1}, nan},
		{[]int32{1, 2}, []float32{1, -1}, inf},
		{[]int32{0, 1}, []float32{3, 0}, nan}, // a stored zero is an entry
		{[]int32{2, 4}, []float32{2, -5}, -inf},
		{[]int32{3}, []float32{1}, nan},
		{nil, nil, 0},
		{[]int32{4}, []float32{1}, 2},
	}
	const n, ld, wide = 37, 40, 2000
	for _, k := range []int{len(special), wide} {
		b := make([]T, k*ld)
		for i := range b {
			b[i] = shadertest.From[T](1)
			if row, j := i/ld, i%ld; j >= n {
				b[i] = shadertest.From[T](nan)
			} else if j%3 == 0 && row < len(special) {
				b[i] = shadertest.From[T](special[row])
			}
		}
		a := &formats.CSR[T]{Rows: len(rows), Cols: k, RowPtr: []int64{0}}
		for _, r := range rows {
			a.ColIdx = append(a.ColIdx, r.cols...)
			for _, x := range r.vals {
				a.Val = append(a.Val, shadertest.From[T](x))
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		if k == wide { // a row that makes the panel heavy, and others that make it heavier than most
			a.Rows = 16 * 60
			for i := len(rows); i < a.Rows; i++ {
				for c := len(special); i == len(rows) && c < k; c++ {
					a.ColIdx, a.Val = append(a.ColIdx, int32(c)), append(a.Val, shadertest.From[T](0))
				}
				a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
			}
		}
		c := make([]byte, a.Rows*n*out.Size())
		shadertest.Multiply(t, dev, hrpb.Format, v, a, backend.Bytes(b), nil, c,
			spec.Problem{M: a.Rows, K: k, N: n, LDB: ld, LDC: n, Out: out, Alpha: 1})
		for i, r := range rows {
			var sum float32
			for _, x := range r.vals {
				sum += x
			}
			for j := range n {
				want := sum
				if j%3 == 0 {
					want = r.want
				}
				if got := element(c, out, i*n+j); got != want && (got == got || want == want) {
					t.Fatalf("%d columns: C[%d,%d] is %v, want %v", k, i, j, got, want)
				}
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
	case dtype.F64:
		return float32(backend.View[float64](c)[i])
	}
	return backend.View[float32](c)[i]
}

// TestLoad: every device loads what its capabilities say it runs. On the driver that only compiles
// (AMD's) that is all that can be tested, and there all tiles are compiled in both wave sizes.
func TestLoad(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, hrpb.Format.Program)
		if shadertest.CompileOnly() {
			if !has(vs, dtype.TF32) || vs[0].Sub != 32 {
				t.Errorf("the variant for 16×16×16 and waves of 32 is not the first for this device")
			}
			vs = append(vs, append(hrpb.CoopVariants(32), hrpb.CoopVariants(64)...)...)
		}
		for _, v := range vs {
			bin, err := hrpb.Format.Binary(v)
			if err != nil {
				t.Fatal(err)
			}
			k, err := dev.Load(bin)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
				continue
			}
			k.Close()
		}
	})
}
