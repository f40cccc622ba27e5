package oracle_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/rfx"
)

// elements draws numbers of one kind: any bits, any finite ones, or near each other.
func elements(t *rapid.T) func() float32 {
	switch rapid.SampledFrom([]string{"near", "finite", "any"}).Draw(t, "elements") {
	case "any":
		return func() float32 {
			x := rapid.SampledFrom([]uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 1, 0x7f7fffff}).Draw(t,
				"x")
			return math.Float32frombits(x)
		}
	case "finite":
		return func() float32 { return anyFloat(t, "x") }
	}
	e := rapid.IntRange(-100, 100).Draw(t, "exponent")
	return func() float32 { return float32(math.Ldexp(rapid.Float64Range(-1, 1).Draw(t, "x"), e)) }
}

// problem draws a small multiplication.
func problem(t *rapid.T) oracle.Problem {
	m, k, n := rapid.IntRange(0, 4).Draw(t, "m"), rapid.IntRange(0, 6).Draw(t, "k"), rapid.IntRange(0, 3).Draw(t, "n")
	a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: []int64{0}}
	of := elements(t)
	for range m {
		for j := range k {
			if rapid.Bool().Draw(t, "entry") {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, of())
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	p := oracle.Problem{A: a, B: formats.NewDense[float32](k, n), Alpha: 1}
	of = elements(t)
	for i := range p.B.Data {
		p.B.Data[i] = of()
	}
	if rapid.Bool().Draw(t, "beta") {
		p.Alpha, p.Beta, p.C = float64(anyFloat(t, "alpha")), float64(anyFloat(t, "beta")), formats.NewDense[float32](m, n)
		for i := range p.C.Data {
			p.C.Data[i] = anyFloat(t, "c")
		}
	}
	var bias *[]float32
	switch rapid.IntRange(0, 2).Draw(t, "bias") {
	case 1:
		p.Epilogue.RowBias, bias = make([]float32, m), &p.Epilogue.RowBias
	case 2:
		p.Epilogue.ColBias, bias = make([]float32, n), &p.Epilogue.ColBias
	}
	if bias != nil {
		of = elements(t)
		for i := range *bias {
			(*bias)[i] = of()
		}
	}
	if rapid.Bool().Draw(t, "relu") {
		p.Epilogue.Activation = oracle.ReLU
	}
	return p
}

func reproducible(t interface{ Fatal(...any) }, p oracle.Problem, precision int) *formats.Dense[float32] {
	c, err := oracle.Reproducible(context.Background(), p, precision)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Two ways that share no code agree to the last bit: this package, and rfx.Dot, rfx.Scale, rfx.Biased and rfx.ReLU.
func TestReproducibleIsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problem(t)
		rows, cols := rfx.Rows(p.A), rfx.Cols(p.B)
		prec, lossless := rfx.Auto(rows, cols)
		if gotP, got := oracle.Precision(p.A, p.B); gotP != int(prec) || got != lossless {
			t.Fatalf("Precision is %d, %t; want %d, %t", gotP, got, prec, lossless)
		}
		for _, prec := range rfx.All {
			got := reproducible(t, p, int(prec))
			for i := range p.A.Rows {
				var a, b []float32
				lo, hi := p.A.RowPtr[i], p.A.RowPtr[i+1]
				for j := range p.B.Cols {
					a, b = p.A.Val[lo:hi], b[:0]
					for _, k := range p.A.ColIdx[lo:hi] {
						b = append(b, p.B.At(int(k), j))
					}
					want := rfx.Dot(prec, rows[i], cols[j], a, b)
					old := float32(0)
					if p.Beta != 0 {
						old = p.C.At(i, j)
					}
					want = rfx.Scale(float32(p.Alpha), want, float32(p.Beta), old)
					if p.Epilogue.RowBias != nil {
						want = rfx.Biased(want, p.Epilogue.RowBias[i])
					}
					if p.Epilogue.ColBias != nil {
						want = rfx.Biased(want, p.Epilogue.ColBias[j])
					}
					if p.Epilogue.Activation == oracle.ReLU {
						want = rfx.ReLU(want)
					}
					if x := got.At(i, j); math.Float32bits(x) != math.Float32bits(want) {
						t.Fatalf("p=%d: C[%d,%d] is %g (%x), want %g (%x)", prec, i, j, x, math.Float32bits(x), want,
							math.Float32bits(want))
					}
				}
			}
		}
	})
}

// Long rows, where sums are cut into 64-bit parts, and sums near every limit: against package big.
func TestReproducibleLongRows(t *testing.T) {
	const k, n = 70000, 3
	a := &formats.CSR[float32]{Rows: 1, Cols: k, RowPtr: []int64{0, k}, ColIdx: make([]int32, k), Val: make([]float32, k)}
	b := formats.NewDense[float32](k, n)
	for i := range k {
		a.ColIdx[i], a.Val[i] = int32(i), 2039.0/1024 // q is the largest there is
		for j := range n {
			b.Set(i, j, []float32{2039.0 / 1024, -2039.0 / 1024, float32(i%7) * 0x1.fffffep-3}[j])
		}
	}
	for _, precision := range []int{15, 23, 31, 47} {
		c := reproducible(t, oracle.Problem{A: a, B: b, Alpha: 1}, precision)
		for j := range n {
			sum := new(big.Float).SetPrec(1000)
			for i := range k {
				l, y := precision-1, b.At(i, j)
				q := math.RoundToEven(math.Ldexp(float64(y), l))
				x := new(big.Float).SetPrec(1000).SetFloat64(math.Ldexp(q, -l))
				sum.Add(sum, x.Mul(x, big.NewFloat(2039.0/1024)))
			}
			if want, _ := sum.Float32(); c.At(0, j) != want {
				t.Errorf("p=%d: column %d is %g, want %g", precision, j, c.At(0, j), want)
			}
		}
	}
}

// More columns than are done at a time, and a C that is added to.
func TestReproducibleManyColumns(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=37,cols=50,density=0.3,seed=4")
	if err != nil {
		t.Fatal(err)
	}
	b := gen.Dense(50, 300, 5, gen.Values{})
	whole := reproducible(t, oracle.Problem{A: a, B: b, C: gen.Dense(37, 300, 6, gen.Values{}), Alpha: 2, Beta: -3}, 47)
	for _, at := range [][2]int{{0, 0}, {36, 299}, {20, 127}, {20, 128}} {
		i, j := at[0], at[1]
		d := oracle.At(a, b, i, j)
		r := float64(d.Sum.Float32()) // p = 47 loses nothing here
		want := float32(2*r - 3*float64(gen.Dense(37, 300, 6, gen.Values{}).At(i, j)))
		if whole.At(i, j) != want {
			t.Errorf("C[%d,%d] is %g, want %g", i, j, whole.At(i, j), want)
		}
	}
}

func TestReproducibleRefuses(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 0}}
	b := formats.NewDense[float32](2, 1)
	for name, f := range map[string]func() error{
		"precision": func() error {
			_, err := oracle.Reproducible(context.Background(), oracle.Problem{A: a, B: b}, 24)
			return err
		},
		"shape": func() error {
			_, err := oracle.Reproducible(context.Background(), oracle.Problem{A: a, B: formats.NewDense[float32](3, 1)}, 23)
			return err
		},
		"no C": func() error {
			_, err := oracle.Reproducible(context.Background(), oracle.Problem{A: a, B: b, Beta: 1}, 23)
			return err
		},
		"bias": func() error {
			e := oracle.Epilogue{ColBias: make([]float32, 2)}
			_, err := oracle.Reproducible(context.Background(), oracle.Problem{A: a, B: b, Epilogue: e}, 23)
			return err
		},
		"two biases": func() error {
			e := oracle.Epilogue{RowBias: make([]float32, 1), ColBias: make([]float32, 1)}
			_, err := oracle.Reproducible(context.Background(), oracle.Problem{A: a, B: b, Epilogue: e}, 23)
			return err
		},
		"GELU": func() error {
			_, err := oracle.Reproducible(context.Background(),
				oracle.Problem{A: a, B: b, Epilogue: oracle.Epilogue{Activation: oracle.GELU}}, 23)
			return err
		},
		"cancelled": func() error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := oracle.Reproducible(ctx, oracle.Problem{A: a, B: b}, 23)
			return err
		},
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkReproducible(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=2048,cols=2048,density=0.1,seed=4")
	if err != nil {
		b.Fatal(err)
	}
	p := oracle.Problem{A: a, B: gen.Dense(2048, 128, 5, gen.Values{}), Alpha: 1}
	for _, precision := range []int{15, 23, 31, 47} {
		b.Run(fmt.Sprint("p=", precision), func(b *testing.B) {
			for b.Loop() {
				reproducible(b, p, precision)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*a.NNZ()*128), "ns/product")
		})
	}
}
