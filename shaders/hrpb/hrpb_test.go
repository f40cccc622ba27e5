// Products on every device present, held against exact sums; how exact those of f32 are; what is split and reordered.

package hrpb_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	format "github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: hrpb.Format,
	Types: func(caps backend.Caps) []dtype.Type {
		switch caps.Code {
		case backend.CodePTX:
			return append(shadertest.Floats(caps), dtype.TF32, dtype.F64)
		case backend.CodeGo:
			return append(shadertest.Floats(caps), dtype.F64)
		}
		return shadertest.Floats(caps)
	},
	Others: hrpb.CoopVariants,
	Also: func(v *spec.Variant) *spec.Variant {
		if v.Code != backend.CodeGo {
			return nil
		}
		return hrpb.Ordered(v)
	},
	Preferred: func(vs []*spec.Variant) bool {
		return vs[0].Sub == 32 && slices.ContainsFunc(vs, func(v *spec.Variant) bool { return v.In == dtype.TF32 })
	},
	Cases: func(*spec.Variant, dtype.Type) []shadertest.Case { return cases() },
	Twice: func(*spec.Variant) []shadertest.Case {
		p, k := hubs()
		return []shadertest.Case{
			{Name: "panels", Pattern: shadertest.Alike(100, 500, 2, 0.1), K: 500, N: 70, Real: true},
			{Name: "split panels", Pattern: p, K: k, N: 3, Real: true},
		}
	},
	Specials: shadertest.Always(shadertest.NonFinite(), split()),
}

func TestFormat(t *testing.T) { suite.Run(t) }

// split is the product by infinities and NaN with a row more that makes its panel so heavy that it is split, and empty
// rows that make it heavier than most.
func split() shadertest.Specials {
	const k = 2000
	q := shadertest.NonFinite()
	var heavy shadertest.Special
	for i := len(q.B); i < k; i++ {
		q.B = append(q.B, 1)
		heavy.Cols, heavy.Vals = append(heavy.Cols, int32(i)), append(heavy.Vals, 0)
	}
	q.Name, q.A, q.Rows = "a split panel", append(q.A, heavy), 16*60
	return q
}

// dealt is a pattern whose rows are alike kinds apart, so that another order of rows is packed.
func dealt(rows, kinds, k int, density float64) [][]int32 {
	of, p := shadertest.Alike(kinds, k, 1, density), make([][]int32, rows)
	for i := range p {
		p[i] = of[i%kinds]
	}
	return p
}

// hubs is a pattern whose first and last but one panels have rows so long that they are split on any device.
func hubs() (p [][]int32, k int) {
	k = 6000
	p = shadertest.Alike(16*50-3, k, 1, 2/float64(k))
	p[3] = shadertest.Spread(k, 3000)[0]
	p[16*48+2] = shadertest.Spread(k, 1701)[0]
	p[16*48+9] = shadertest.Spread(k, 900)[0]
	return p, k
}

func cases() []shadertest.Case {
	ragged := shadertest.Ragged(shadertest.Alike(150, 400, 1, 3./400), 400)
	hubs, k := hubs()
	cs := append(shadertest.Basics(shadertest.Alike), []shadertest.Case{
		{Name: "full bricks", Pattern: shadertest.Alike(64, 200, 16, 0.3), K: 200, N: 128},
		{Name: "dense", Pattern: shadertest.Alike(35, 50, 1, 1), K: 50, N: 70},
		{Name: "several tiles of columns", Pattern: shadertest.Alike(21, 50, 8, 0.5), K: 50, N: 531, Beta: 1},
		{Name: "split panels", Pattern: hubs, K: k, N: 5, Alpha: 2, Beta: -1},
		{Name: "split panels, inexact", Pattern: hubs, K: k, N: 12, Real: true},
		{Name: "every length", Pattern: shadertest.EveryLength(), K: 80, N: 20},
		{Name: "another order", Pattern: dealt(203, 11, 150, 0.1), K: 150, N: 40, Alpha: 2, Beta: -1},
		{Name: "another order, whole tiles", Pattern: dealt(256, 16, 300, 0.2), K: 300, N: 256},
		{Name: "another order, teams and split panels", Pattern: dealt(90, 5, 3000, 0.3), K: 3000, N: 136, Real: true},
	}...)
	cs = append(cs, shadertest.Columns(shadertest.Case{Name: "ragged", Pattern: ragged, K: 400}, 1, 2, 7, 8, 31, 64,
		65, 129)...)
	return append(cs, shadertest.Epilogues(
		shadertest.Case{Pattern: shadertest.Spread(1500, append(make([]int, 20), 1500, 1, 700, 3)...), K: 1500, N: 77},
		shadertest.Case{Name: "dealt", Pattern: dealt(75, 4, 200, 0.2), K: 200, N: 44})...)
}

// TestSplit makes sure that the cases above have panels that are split.
func TestSplit(t *testing.T) {
	p, k := hubs()
	suite.Packed(t, shadertest.Ones[float32](p, k), func(v *spec.Variant, e *spec.Packed) {
		l, err := hrpb.Format.LaunchSuited(v, e, spec.Problem{M: e.Rows, K: e.Cols, N: 8, LDB: 8, LDC: 8, Out: v.Sums(),
			Alpha: 1})
		if err != nil {
			t.Fatal(err)
		}
		if v.In.Storage() == dtype.F32 && (len(l.Passes) < 2 || l.Workspace < 10*16*8*4) {
			t.Errorf("%s: no second phase, or not for 10 slots (%d bytes)", v.Name, l.Workspace)
		}
	})
}

// TestOrder makes sure that the cases above have rows in another order.
func TestOrder(t *testing.T) {
	for _, q := range cases() {
		if !strings.HasPrefix(q.Name, "another order") {
			continue
		}
		suite.Packed(t, shadertest.Ones[float32](q.Pattern, q.K), func(v *spec.Variant, e *spec.Packed) {
			m, ok := e.Format.(*format.Matrix[float32])
			if ok && v.Code != backend.CodeGo && len(m.RowIdx) != e.Rows {
				t.Errorf("%s, %s: rows are in their order", q.Name, v.Name)
			}
		})
	}
}

// eachOf runs f for each variant for elements of a type, with C in f32.
func eachOf(t *testing.T, in dtype.Type, f func(t *testing.T, dev backend.Device, v *spec.Variant)) {
	suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.In == in && out == dtype.F32 {
			f(t, dev, v)
		}
	})
}

// TestRange multiplies f32 data of many magnitudes in tf32: rows of A and columns of B from 2^-45 to 2^45, elements of
// a row or column from its largest down to 2^-32 of it. It holds them to the bound in kernel_coop.comp, which
// is all that is left of f32's range where tf32 is made of f16; CUDA's matrix units need less of it.
func TestRange(t *testing.T) {
	eachOf(t, dtype.TF32, func(t *testing.T, dev backend.Device, v *spec.Variant) {
		const m, k, n = 40, 300, 72
		r := rand.New(rand.NewPCG(3, 4))
		number := func(e int) float32 {
			if r.IntN(4) == 0 {
				e -= r.IntN(33)
			}
			return float32(math.Ldexp(1+r.Float64(), e)) * float32(1-2*r.IntN(2))
		}
		a := shadertest.Ones[float32](shadertest.Alike(m, k, 3, 0.2), k)
		amax := make([]float64, m)
		for i := range m {
			e := r.IntN(91) - 45
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				a.Val[p] = number(e)
				amax[i] = max(amax[i], math.Abs(float64(a.Val[p])))
			}
		}
		b, bmax := make([]float32, k*n), make([]float64, n)
		for j := range n {
			e := r.IntN(91) - 45
			for i := range k {
				b[i*n+j] = number(e)
				bmax[j] = max(bmax[j], math.Abs(float64(b[i*n+j])))
			}
		}
		worst := holds(t, dev, v, a, b, func(i, j int, sum float64) float64 {
			small, entries := 0., float64(a.RowPtr[i+1]-a.RowPtr[i])
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				small += amax[i]*math.Abs(float64(b[int(a.ColIdx[p])*n+j])) + bmax[j]*math.Abs(float64(a.Val[p]))
			}
			return (0x1p-10+0x1p-22+entries*0x1p-22)*sum + 0x1p-28*small
		})
		if worst == 0 {
			t.Error("no error at all: this was not tf32")
		}
	})
}

// TestAllBits multiplies f32 data of all magnitudes, whose last bits may be smaller than what a matrix unit's operands
// can hold, and holds the outputs to the bound for f32 (docs/bound.md).
func TestAllBits(t *testing.T) {
	eachOf(t, dtype.F32, func(t *testing.T, dev backend.Device, v *spec.Variant) {
		const m, k, n = 70, 300, 72
		r := rand.New(rand.NewPCG(5, 6))
		number := func(e int) float32 {
			return float32(math.Ldexp(1+r.Float64(), e+r.IntN(3))) * float32(1-2*r.IntN(2))
		}
		pattern := shadertest.Alike(m, k, 1, 0.1)
		for i, cols := range pattern {
			pattern[i] = cols[:min(len(cols), 1+i)]
		}
		a := shadertest.Ones[float32](pattern, k)
		for i := range m {
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				a.Val[p] = number(-126 + 2*(i%70)) // a panel has a few magnitudes
			}
		}
		b := make([]float32, k*n)
		for i := range b {
			b[i] = number(-126 + 3*(i%n))
		}
		holds(t, dev, v, a, b, func(i, j int, sum float64) float64 {
			entries := float64(a.RowPtr[i+1] - a.RowPtr[i])
			if sum > 0x1p127 { // may overflow
				return math.Inf(1)
			}
			return 3*(entries+1)*0x1p-23*sum + entries*0x1p-126
		})
	})
}

// holds multiplies and holds each output to a bound, which may depend on its place and on the sum of its products'
// sizes: where it is infinite, any output will do. It returns the largest error in parts of the bound.
func holds(t *testing.T, dev backend.Device, v *spec.Variant, a *formats.CSR[float32], b []float32,
	bound func(i, j int, sum float64) float64) float64 {
	t.Helper()
	n := len(b) / a.Cols
	c := make([]float32, a.Rows*n)
	shadertest.Multiply(t, dev, hrpb.Format, v, a, backend.Bytes(b), nil, backend.Bytes(c),
		spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: n, LDC: n, Out: dtype.F32, Alpha: 1})
	worst := 0.
	for i, got := range c {
		var want, sum float64
		for p := a.RowPtr[i/n]; p < a.RowPtr[i/n+1]; p++ {
			x := float64(a.Val[p]) * float64(b[int(a.ColIdx[p])*n+i%n])
			want += x
			sum += math.Abs(x)
		}
		most := bound(i/n, i%n, sum)
		if math.IsInf(most, 1) {
			continue
		}
		off := math.Abs(float64(got) - want)
		if !(off <= most) {
			t.Fatalf("C[%d,%d] is %v, want %v ± %v", i/n, i%n, got, want, most)
		}
		if most > 0 {
			worst = max(worst, off/most)
		}
	}
	t.Logf("the largest error is %.2f of the bound", worst)
	return worst
}
