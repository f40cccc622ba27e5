package oracle_test

import (
	"context"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// anyFloat draws finite float32 numbers of all exponents, subnormal ones and zeros too.
func anyFloat(t *rapid.T, name string) float32 {
	x := math.Float32frombits(rapid.Uint32().Draw(t, name))
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		return 1
	}
	return x
}

// Sums that one float64 holds, and those that it does not hold from some addition on, at every exponent.
func TestAccumulatorIsExact(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testAccumulator(t, 700, false) })
	t.Run("float64", func(t *testing.T) { testAccumulator(t, 4400, true) })
}

// testAccumulator adds products, of float64 numbers if wide; float32 holds some of these.
func testAccumulator(t *testing.T, prec uint, wide bool) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) float64 {
			if wide && rapid.Bool().Draw(t, name+" is wide") {
				return rapid.Float64().Filter(func(x float64) bool { return math.Abs(x) < 0x1p500 }).Draw(t, name)
			}
			return float64(anyFloat(t, name))
		}
		var a oracle.Accumulator
		want := new(big.Float).SetPrec(prec)
		near := rapid.IntRange(0, 40).Draw(t, "near") // small whole numbers that come first
		scale := math.Ldexp(1, rapid.IntRange(-149, 110).Draw(t, "scale"))
		for i := range rapid.IntRange(0, 40).Draw(t, "n") {
			x, y := draw("x"), draw("y")
			if i < near {
				x = scale * float64(rapid.IntRange(-1000, 1000).Draw(t, "whole x"))
				y = scale * float64(rapid.IntRange(-1000, 1000).Draw(t, "whole y"))
			}
			a.AddProduct(x, y)
			p := new(big.Float).SetPrec(prec).SetFloat64(x)
			want.Add(want, p.Mul(p, new(big.Float).SetPrec(prec).SetFloat64(y)))
			if rapid.Bool().Draw(t, "cancel") {
				a.AddProduct(-x, y)
				want.Sub(want, p)
			}
		}
		w32, _ := want.Float32()
		w64, _ := want.Float64()
		if got := a.Float32(); got != w32 {
			t.Fatalf("Float32 is %g, want %g", got, w32)
		}
		if got := a.Float64(); got != w64 {
			t.Fatalf("Float64 is %g, want %g", got, w64)
		}
	})
}

func TestCheck(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	// Row 0: 1 and 2 in columns 0 and 2; row 1 is empty.
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 2}, ColIdx: []int32{0, 2}, Val: []float32{1, 2}}
	dense := func(v ...float32) *formats.Dense[float32] {
		return &formats.Dense[float32]{Rows: len(v), Cols: 1, LD: 1, Data: v}
	}
	for _, c := range []struct {
		name        string
		b, old, got []float32
		alpha, beta float64
		bad         int64
	}{
		{"right", []float32{3, 9, 5}, nil, []float32{13, 0}, 1, 0, 0},
		{"one unit off is within the bound", []float32{3, 9, 5}, nil, []float32{math.Nextafter32(13, 14), 0}, 1, 0, 0},
		{"wrong", []float32{3, 9, 5}, nil, []float32{13.1, 0}, 1, 0, 1},
		{"an empty row must be zero", []float32{3, 9, 5}, nil, []float32{13, 1e-30}, 1, 0, 1},
		{"NaN is never right for a finite sum", []float32{3, 9, 5}, nil, []float32{nan, 0}, 1, 0, 1},
		{"a structural zero does not touch B", []float32{3, inf, 5}, nil, []float32{13, 0}, 1, 0, 0},
		{"an infinity where B has one", []float32{inf, 0, 5}, nil, []float32{inf, 0}, 1, 0, 0},
		{"an infinity of the wrong sign", []float32{inf, 0, 5}, nil, []float32{-inf, 0}, 1, 0, 1},
		{"opposite infinities", []float32{inf, 0, -inf}, nil, []float32{nan, 0}, 1, 0, 0},
		{"alpha and beta", []float32{3, 9, 5}, []float32{10, 4}, []float32{31, 2}, 2, 0.5, 0},
		{"alpha and beta, wrong", []float32{3, 9, 5}, []float32{10, 4}, []float32{31, 4}, 2, 0.5, 1},
		{"a step of the epilogue overflows", []float32{3e38, 9, -1e38}, []float32{-3e38, 4}, []float32{nan, 0}, 9, 9, 1},
		{"beta times an infinity", []float32{3, 9, 5}, []float32{inf, 4}, []float32{inf, 4}, 1, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := oracle.Problem{A: a, B: dense(c.b...), Alpha: c.alpha, Beta: c.beta}
			if c.old != nil {
				p.C = dense(c.old...)
			}
			r, err := oracle.Check(context.Background(), p, dense(c.got...), 0)
			if err != nil || r.Checked != 2 || r.Bad != c.bad || r.OK() != (c.bad == 0) || (r.First != nil) != (c.bad > 0) {
				t.Fatalf("%+v, %v; want %d bad", r, err, c.bad)
			}
		})
	}
}

// Outputs with an epilogue are held to the activation of the exact sum with the bias.
func TestCheckEpilogue(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	a := &formats.CSR[float32]{Rows: 2, Cols: 1, RowPtr: []int64{0, 1, 1}, ColIdx: []int32{0}, Val: []float32{2}}
	dense := func(rows int, v ...float32) *formats.Dense[float32] {
		n := len(v) / rows
		return &formats.Dense[float32]{Rows: rows, Cols: n, LD: n, Data: v}
	}
	b := dense(1, 3, -4, inf)
	for _, c := range []struct {
		name string
		e    oracle.Epilogue
		got  []float32 // rows of 2·b and of zeros, with the epilogue
		bad  int64
	}{
		{"row bias", oracle.Epilogue{RowBias: []float32{1, -5}}, []float32{7, -7, inf, -5, -5, -5}, 0},
		{"the bias of the other row", oracle.Epilogue{RowBias: []float32{-5, 1}}, []float32{7, -7, inf, -5, -5, -5}, 5},
		{"column bias", oracle.Epilogue{ColBias: []float32{1, 2, -inf}}, []float32{7, -6, nan, 1, 2, -inf}, 0},
		{"ReLU", oracle.Epilogue{ColBias: []float32{1, 2, -inf}, Activation: oracle.ReLU}, []float32{7, 0, nan, 1, 2, 0}, 0},
		{"no ReLU", oracle.Epilogue{Activation: oracle.ReLU}, []float32{6, -8, inf, 0, 0, 0}, 1},
		{"an infinity that ReLU takes away", oracle.Epilogue{RowBias: []float32{0, -inf}, Activation: oracle.ReLU},
			[]float32{6, 0, inf, 0, -inf, 1}, 2},
		{"GELU", oracle.Epilogue{RowBias: []float32{-5, 0.5}, Activation: oracle.GELU},
			[]float32{0.841192, 0, inf, 0.345714, 0.345714, 0.345714}, 0},
		{"SiLU", oracle.Epilogue{RowBias: []float32{-5, 0.5}, Activation: oracle.SiLU},
			[]float32{0.7310586, -2.938427e-05, inf, 0.31122968, 0.31122968, 0.31122968}, 0},
		{"SiLU for GELU", oracle.Epilogue{RowBias: []float32{-5, 0.5}, Activation: oracle.GELU},
			[]float32{0.7310586, -2.938427e-05, inf, 0.31122968, 0.31122968, 0.31122968}, 5},
		{"GELU, a thousandth off", oracle.Epilogue{Activation: oracle.GELU, RowBias: []float32{-5, 0}},
			[]float32{0.8413, 0, inf, 0, 0, 0}, 1},
	} {
		p := oracle.Problem{A: a, B: b, Alpha: 1, Epilogue: c.e}
		r, err := oracle.Check(context.Background(), p, dense(2, c.got...), 0)
		if err != nil || r.Checked != 6 || r.Bad != c.bad {
			t.Errorf("%s: %+v, %v, %v; want %d bad", c.name, r, r.First, err, c.bad)
		}
	}
	if _, err := oracle.Check(context.Background(),
		oracle.Problem{A: a, B: b, Epilogue: oracle.Epilogue{RowBias: make([]float32, 3)}}, dense(2, make([]float32, 6)...),
		0); err == nil {
		t.Error("a bias of three rows fits two")
	}
}

// A sample looks at every stretch of the matrix, and only at as many outputs as requested.
func TestCheckSample(t *testing.T) {
	const rows, n = 100, 70
	a := &formats.CSR[float32]{Rows: rows, Cols: 1, RowPtr: make([]int64, rows+1)}
	b, got := formats.NewDense[float32](1, n), formats.NewDense[float32](rows, n)
	for i := range rows / 2 { // the last half of C is wrong
		for j := range n {
			got.Set(rows/2+i, j, 1)
		}
	}
	r, err := oracle.Check(context.Background(), oracle.Problem{A: a, B: b, Alpha: 1}, got, 1000)
	if err != nil || r.Checked != 1000 || r.Bad != 500 || r.First.Row != rows/2 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Matrix units align products by their operands' exponents, and a subnormal operand has that of the least normal
// number.
func TestSubnormalOperands(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 2}, ColIdx: []int32{0, 1},
		Val: []float32{0x1p-24, 0x1p-24}}
	b := &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{1, 0x1p-10 + 0x1p-20}}
	exact := float32(0x1p-24 + 0x1p-34 + 0x1p-44)
	for _, c := range []struct {
		in  dtype.Type
		got float32
		ok  bool
	}{
		// 2⁻¹⁴ cut after 25 bits
		{dtype.F16, exact + 0x1p-39, true}, {dtype.F16, exact - 0x1p-39, true}, {dtype.F16, exact + 0x1p-33, false},
		{dtype.BF16, exact, true}, {dtype.BF16, exact + 0x1p-39, false}, {dtype.F32, exact + 0x1p-39, false},
	} {
		r, err := oracle.Check(t.Context(), oracle.Problem{A: a, B: b, Alpha: 1, Compute: c.in, Out: dtype.F32},
			&formats.Dense[float32]{Rows: 1, Cols: 1, LD: 1, Data: []float32{c.got}}, 0)
		if err != nil || r.OK() != c.ok {
			t.Errorf("%v, %g: %+v, %v, %v; want %v", c.in, c.got, r, r.First, err, c.ok)
		}
	}
}

func TestCheckShapes(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 0}}
	_, err := oracle.Check(context.Background(), oracle.Problem{A: a, B: formats.NewDense[float32](3, 1)},
		formats.NewDense[float32](1, 1), 0)
	if err == nil {
		t.Fatal("no error for a B with too many rows")
	}
}

func BenchmarkAddProduct(b *testing.B) {
	var a oracle.Accumulator
	x, y := 1.699999988079071, -2.9999999242136255e-05 // of float32
	for b.Loop() {
		a.AddProduct(x, y)
	}
}

// How far outputs are from the exact product is something else than whether they keep their bound.
func TestDistance(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 1, 0},
		Val: []float32{1, -3, 4}}
	b := &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{2, 1}}
	for name, tt := range map[string]struct {
		c               [2]float32
		worst, relative float64
		ok              bool
	}{
		"exact":     {[2]float32{-1, 8}, 0, 0, true},
		"far":       {[2]float32{1, 9}, 2, 2. / 5, false},
		"near":      {[2]float32{-1, 8.0000008}, 1e-6, 1e-6 / 8, true},
		"not there": {[2]float32{-1, float32(math.Inf(1))}, 0, 0, false},
	} {
		r, err := oracle.Check(t.Context(), oracle.Problem{A: a, B: b, Alpha: 1, Out: dtype.F32},
			&formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: tt.c[:]}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() != tt.ok || math.Abs(r.Worst-tt.worst) > 1e-6*tt.worst+3e-7 || math.Abs(r.Relative-tt.relative) > 1e-6 {
			t.Errorf("%s: %+v, want %v and %v", name, r, tt.worst, tt.relative)
		}
	}
}

// A row's products are the same all at once and one by one: exact in float64, beyond it, and not finite.
func TestRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		if rapid.Bool().Draw(t, "column-major") {
			p.B = p.B.Layout(true, 0)
		}
		for i := range p.A.Rows {
			for j, got := range oracle.Row(p.A, p.B, i) {
				want := oracle.At(p.A, p.B, i, j)
				x, y := got.Value(), want.Value()
				if x != y && (x == x || y == y) || got.Class != want.Class || got.Abs != want.Abs || got.Aligned != want.Aligned ||
					got.Entries != want.Entries {
					t.Fatalf("column %d of row %d: %g, %+v; want %g, %+v", j, i, x, got, y, want)
				}
			}
		}
	})
}
