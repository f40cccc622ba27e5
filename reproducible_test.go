// Reproducible mode through the front door, against the oracle.

package spmm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// eachDevice runs f on one device of each backend that has one.
func eachDevice(t *testing.T, f func(t *testing.T, dev *spmm.Device)) {
	t.Helper()
	infos, _ := spmm.Devices(ctx)
	for _, i := range infos {
		if i.Index != 0 {
			continue
		}
		t.Run(i.Backend, func(t *testing.T) {
			t.Attr("device", i.String())
			dev, err := spmm.Open(ctx, i.Backend)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			f(t, dev)
		})
	}
}

// real fills a matrix with numbers of some spread of exponents.
func real[T formats.Value](r *rand.Rand, v []T, spread int) {
	for i := range v {
		v[i] = value[T](float32(math.Ldexp(r.NormFloat64(), r.IntN(spread+1)-spread/2)))
	}
}

// exact returns alpha·A·B + beta·C as reproducible mode defines it, with an epilogue if there is one, in elements C,
// and its precision; p is as in spmm.Options.
func exact[T, B, C formats.Value](t *testing.T, p int, alpha float32, a *formats.CSR[T], b *formats.Dense[B],
	beta float32, c *formats.Dense[C], e ...oracle.Epilogue) (*formats.Dense[C], int, bool) {
	t.Helper()
	q := oracle.Problem{
		A: formats.Convert[float32](a), B: formats.ConvertDense[float32](formats.ConvertDense[T](b)),
		C:     formats.ConvertDense[float32](c),
		Alpha: float64(alpha), Beta: float64(beta),
	}
	if len(e) > 0 {
		q.Epilogue = e[0]
	}
	lossless := false
	if p == spmm.AutoP {
		p, lossless = oracle.Precision(q.A, q.B)
	}
	want, err := oracle.Reproducible(ctx, q, p)
	if err != nil {
		t.Fatal(err)
	}
	out := *c
	out.Data = append([]C(nil), c.Data...)
	for i := range c.Rows {
		for j := range c.Cols {
			out.Set(i, j, value[C](want.At(i, j)))
		}
	}
	return &out, p, lossless
}

// bits holds every bit of got against want, padding included; any NaN is a NaN.
func bits[C formats.Value](t *testing.T, got, want *formats.Dense[C]) {
	t.Helper()
	for i := range want.Data {
		g, w := float(got.Data[i]), float(want.Data[i])
		if math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf("element %d is %g, want %g", i, g, w)
		}
	}
}

func TestReproducible(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, p := range []int{0, 15, 23, 31, 47, spmm.AutoP} {
			t.Run(fmt.Sprint("P=", p), func(t *testing.T) {
				reproduce[half.F16, half.F16, float32](t, dev, p, false, false, 0)
				reproduce[half.BF16, half.BF16, float32](t, dev, p, false, true, 0.5)
				reproduce[float32, float32, float32](t, dev, p, true, false, -0.7)
				reproduce[half.F16, float32, half.F16](t, dev, p, true, true, 0.3)
				reproduce[half.F16, half.F16, half.BF16](t, dev, p, false, false, 1)
			})
		}
	})
}

// epilogues returns some epilogues for a C of m×n, as package spmm and as the oracle have them, with biases of elements
// T.
func epilogues[T formats.Value](t *testing.T, dev *spmm.Device, r *rand.Rand, m, n int) ([]spmm.Epilogue,
	[]oracle.Epilogue) {
	t.Helper()
	fill := func(rows, cols int) (spmm.Operand, []float32) {
		d := formats.NewDense[T](rows, cols)
		real(r, d.Data, 12)
		x := newTensor[T](t, dev, rows, cols, false)
		t.Cleanup(func() { x.Close() })
		must(t, x.Upload(ctx, d))
		return x, formats.ConvertDense[float32](d).Data
	}
	row, rowValues := fill(m, 1)
	col, colValues := fill(1, n)
	return []spmm.Epilogue{{}, {RowBias: row}, {ColBias: col, Activation: spmm.ReLU}, {Activation: spmm.ReLU},
			{RowBias: row, Activation: spmm.ReLU}, {ColBias: col}},
		[]oracle.Epilogue{{}, {RowBias: rowValues}, {ColBias: colValues, Activation: oracle.ReLU}, {Activation: oracle.ReLU},
			{RowBias: rowValues, Activation: oracle.ReLU}, {ColBias: colValues}}
}

// Rows, panels, shuffled panels, strips and residues give the same bits, and the plan says which it took.
func TestReproducibleFormats(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(6, 6))
		a, b := sparse[half.F16](r, 150, 300, 40), dense[half.F16](r, 300, 70, 0, false)
		real(r, a.Val, 8)
		real(r, b.Data, 8)
		es, right := epilogues[float32](t, dev, r, 150, 70)
		for _, p := range []int{15, 23, 31, 47, spmm.AutoP} {
			c := formats.NewDense[float32](150, 70)
			answer, _, _ := exact(t, p, 1, a, b, 0, c)
			finished, _, _ := exact(t, p, 1, a, b, 0, c, right[2])
			for format, want := range map[string]string{"": "", "csr": "csr", "cvse": "cvse", "hrpb": "cvse",
				"tiledcsr": "tiledcsr", "lanestream": "", "dense": "", "sparse24r": ""} {
				plan := prepare(t, dev, a, spmm.Options{Mode: spmm.Reproducible, P: p, Format: format, Cols: 70})
				i := plan.Info()
				rowsOnly := i.Format == "csr" && strings.HasPrefix(i.Why, "the device has no kernel for panels")
				misled := format == "csr" && i.Why != "rows were requested" || p == spmm.AutoP && strings.Contains(i.Why, "p = ")
				if want != "" && i.Format != want && !rowsOnly || i.Why == "" || misled {
					t.Errorf("P=%d, format %q: %s, because %s", p, format, i.Format, i.Why)
				}
				must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
				bits(t, c, answer)
				must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c, es[2])))
				bits(t, c, finished)
				plan.Close()
			}
		}
	})
}

// Where panels, mostly zeros, exceed a buffer at some p, AutoP takes rows; and nothing stays allocated.
func TestReproducibleLimit(t *testing.T) {
	infos, _ := spmm.Devices(ctx)
	for _, info := range infos {
		if info.Index != 0 {
			continue
		}
		t.Run(info.Backend, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, 8))
			a, b := sparse[float32](r, 600, 300, 40), dense[float32](r, 300, 24, 0, false)
			for i := range b.Data { // small integers, as A's entries are, to integers that need p = 23
				b.Data[i] *= float32(int(1) << r.IntN(16))
			}
			limit := 8*a.NNZ() + 8192 // enough for rows at any p
			dev, s := openSmallOf(t, info.Backend, limit)
			plan := prepare(t, dev, a, spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP, Format: "cvse"})
			c := formats.NewDense[float32](600, 24)
			answer, p, _ := exact(t, spmm.AutoP, 1, a, b, 0, c)
			must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
			bits(t, c, answer)
			if got, _ := plan.Reproduced(); got != p || p != 23 || plan.Info().Format != "csr" {
				t.Errorf("p = %d, want %d, 23; %s because %s", got, p, plan.Info().Format, plan.Info().Why)
			}
			if err := plan.Close(); err != nil || s.live != 0 {
				t.Errorf("%d buffers left, %v", s.live, err)
			}
		})
	}
}

func reproduce[T, B, C formats.Value](t *testing.T, dev *spmm.Device, p int, bCol, cCol bool, beta float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, uint64(p)))
	a := sparse[T](r, 70, 600, 5)
	real(r, a.Val, 6)
	bitsWanted := p
	if p == 0 {
		bitsWanted = 23
	}
	plan := prepare(t, dev, a, spmm.Options{Mode: spmm.Reproducible, P: p})
	defer plan.Close()
	if got, _ := plan.Reproduced(); got != 0 {
		t.Errorf("p is %d before the first multiplication", got)
	}
	for i, n := range []int{1, 37} {
		es, want := epilogues[B](t, dev, r, 70, n)
		for j, spread := range []int{0, 12, 60} { // of B: auto needs other precisions
			e, right := es[3*i+j], want[3*i+j]
			b, c := dense[B](r, 600, n, 3, bCol), dense[C](r, 70, n, 2, cCol)
			for i := range b.Data { // padding stays NaN
				if x := []B{b.Data[i]}; float(x[0]) == float(x[0]) {
					real(r, x, spread)
					b.Data[i] = x[0]
				}
			}
			answer, precision, lossless := exact(t, bitsWanted, 1.5, a, b, beta, c, right)
			must(t, second(spmm.Multiply(ctx, plan, 1.5, b, float64(beta), c, e)))
			bits(t, c, answer)
			if got, whole := plan.Reproduced(); got != precision || whole != lossless {
				t.Errorf("p = %d, correctly rounded %t; want %d, %t", got, whole, precision, lossless)
			}
		}
	}
}

// Tensors on the device, the same ones with other contents, and with auto another precision for these.
func TestReproducibleTensors(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(5, 6))
	a := sparse[half.F16](r, 30, 50, 3)
	plan := prepare(t, dev, a, spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP})
	defer plan.Close()
	real(r, a.Val, 3) // the plan has its own copy
	x, y := tensorsFor[half.F16, float32](t, plan, 9)
	a2 := sparse[half.F16](rand.New(rand.NewPCG(5, 6)), 30, 50, 3)
	seen := map[int]bool{}
	for _, spread := range []int{0, 30, 4, 0} {
		b, c := dense[half.F16](r, 50, 9, 0, false), formats.NewDense[float32](30, 9)
		if spread > 0 {
			real(r, b.Data, spread)
		}
		want, p, _ := exact(t, spmm.AutoP, 1, a2, b, 0, c)
		seen[p] = true
		must(t, x.Upload(ctx, b))
		must(t, second(plan.Repeat(ctx, 3, 1, x, 0, y)))
		must(t, y.Download(ctx, c))
		bits(t, c, want)
	}
	if v := plan.Info().Variant; v != "cpu_auto" {
		t.Errorf("variant %s", v)
	}
	if len(seen) < 2 {
		t.Errorf("only p = %v was needed", seen)
	}
}

// Rows and columns cut into blocks make no difference, and nothing stays allocated.
func TestReproducibleBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := sparse[float32](r, 700, 200, 3), dense[float32](r, 200, 100, 3, false)
	real(r, a.Val, 5)
	for i, p := range []int{15, 47, spmm.AutoP} {
		for j, binding := range []int64{1 << 30, 200_000, 60_000} {
			dev, s := openSmall(t, binding)
			c := dense[half.F16](r, 700, 100, 3, true)
			es, right := epilogues[half.BF16](t, dev, r, 700, 100)
			e, before := (3*i+j)%len(es), s.live
			want, _, _ := exact(t, p, 1, a, b, 2, c, right[e])
			plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Mode: spmm.Reproducible, P: p})
			if err != nil {
				t.Fatalf("p = %d, %d bytes: %v", p, binding, err)
			}
			if _, err := spmm.Multiply(ctx, plan, 1, b, 2, c, es[e]); err != nil {
				t.Fatalf("p = %d, %d bytes: %v", p, binding, err)
			}
			bits(t, c, want)
			if err := plan.Close(); err != nil {
				t.Error(err)
			}
			if s.live != before {
				t.Errorf("p = %d, %d bytes: %d buffers left", p, binding, s.live-before)
			}
		}
	}
}

func TestReproducibleOptions(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 1)), 5, 5, 2)
	for _, c := range []struct {
		o    spmm.Options
		want string // of the error
	}{
		{spmm.Options{Mode: spmm.Reproducible, P: 24}, "precision 24"},
		{spmm.Options{Mode: spmm.Reproducible, P: -2}, "precision -2"},
		{spmm.Options{P: 23}, "reproducible mode"},
		{spmm.Options{Mode: 7}, "Mode: 7"},
		{spmm.Options{Mode: spmm.Reproducible, Format: "nonsense"}, "nonsense"},
		{spmm.Options{Mode: spmm.Reproducible, Variant: "nonsense"}, "nonsense"},
		{spmm.Options{Mode: spmm.Reproducible, Precision: dtype.S8}, "s8"},
		{spmm.Options{Mode: spmm.Reproducible, Format: "cvse", Precision: dtype.TF32, Variant: "cpu_p23"}, ""},
	} {
		plan, err := spmm.Prepare(ctx, dev, a, c.o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
		if err == nil {
			if i := plan.Info(); i.Format != "csr" || i.Variant != "cpu_p23" || i.Precision != dtype.F32 {
				t.Errorf("%+v: %+v", c.o, i)
			}
			if b, err := plan.Attainable(ctx, 8, dtype.F32); err != nil || b.Time() <= 0 {
				t.Errorf("%+v, %v", b, err)
			}
			plan.Close()
			if _, err := spmm.Multiply(ctx, plan, 1, formats.NewDense[float32](5, 1), 0,
				formats.NewDense[float32](5, 1)); err == nil {
				t.Error("a closed plan multiplies")
			}
		}
	}
}
