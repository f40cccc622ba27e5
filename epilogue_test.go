// A bias and an activation, applied where a product is stored.

package spmm_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// bias is a bias on a device, of a row if it has one column, and what it holds.
type bias struct {
	operand spmm.Operand
	rows    bool
	values  []float32
}

// newBias draws a bias of small integers: of a row or of a column of C.
func newBias[T formats.Value](t *testing.T, dev *spmm.Device, r *rand.Rand, rows bool, n int, colMajor bool) bias {
	t.Helper()
	d := dense[T](r, 1, n, 3, colMajor)
	if rows {
		d = dense[T](r, n, 1, 3, colMajor)
	}
	x := newTensor[T](t, dev, d.Rows, d.Cols, !colMajor)
	t.Cleanup(func() { x.Close() })
	must(t, x.Upload(ctx, d))
	b := bias{operand: x, rows: rows}
	for i := range n {
		if rows {
			b.values = append(b.values, float(d.At(i, 0)))
		} else {
			b.values = append(b.values, float(d.At(0, i)))
		}
	}
	return b
}

// epilogue is the bias, if there is one, with an activation.
func (b bias) epilogue(a spmm.Activation) spmm.Epilogue {
	e := spmm.Epilogue{Activation: a}
	switch {
	case b.operand == nil:
	case b.rows:
		e.RowBias = b.operand
	default:
		e.ColBias = b.operand
	}
	return e
}

// activated is an activation by definition.
func activated(a spmm.Activation, x float64) float64 {
	switch a {
	case spmm.ReLU:
		return max(x, 0)
	case spmm.GELU:
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	case spmm.SiLU:
		return x / (1 + math.Exp(-x))
	}
	return x
}

// epilogueCase multiplies, in memory and on the device, and holds each element against the definition.
func epilogueCase[T, B, C formats.Value](t *testing.T, dev *spmm.Device, o spmm.Options, r *rand.Rand) {
	t.Helper()
	m, k, n := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(40)
	a := sparse[T](r, m, k, 3)
	b, c := dense[B](r, k, n, r.IntN(3), r.IntN(2) == 0), dense[C](r, m, n, r.IntN(3), r.IntN(2) == 0)
	alpha, beta := []float32{1, -2}[r.IntN(2)], []float32{0, 0, 3}[r.IntN(3)]
	rows, colMajor := r.IntN(2) == 0, r.IntN(2) == 0
	length := n
	if rows {
		length = m
	}
	var x bias
	switch r.IntN(4) {
	case 0:
		x = newBias[half.F16](t, dev, r, rows, length, colMajor)
	case 1, 2:
		x = newBias[float32](t, dev, r, rows, length, colMajor)
	}
	e := x.epilogue(spmm.Activation(r.IntN(4)))
	plan, err := spmm.Prepare(ctx, dev, a, o)
	if errors.Is(err, spmm.ErrUnsupported) {
		return // a format need not have a kernel everywhere
	}
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	checkEpilogue(t, plan, a, float64(alpha), b, float64(beta), c, x, e)
}

// checkEpilogue multiplies with a plan for a.
func checkEpilogue[T, B, C formats.Value](t *testing.T, plan *spmm.Plan, a *formats.CSR[T], alpha float64,
	b *formats.Dense[B], beta float64, c *formats.Dense[C], x bias, e spmm.Epilogue) {
	t.Helper()
	wide := formats.NewDense[float32](c.Rows, c.Cols)
	for i := range c.Rows {
		for j := range c.Cols {
			wide.Set(i, j, float(c.At(i, j)))
		}
	}
	want := expected(float32(alpha), a, b, float32(beta), wide)
	must(t, second(spmm.Multiply(ctx, plan, alpha, b, beta, c, e)))
	for i := range c.Rows {
		for j := range c.Cols {
			y := float64(want.At(i, j))
			if x.operand != nil && x.rows {
				y += float64(x.values[i])
			} else if x.operand != nil {
				y += float64(x.values[j])
			}
			w := activated(e.Activation, y)
			got, near := float(c.At(i, j)), float(value[C](float32(w)))
			bound := 0.0
			if e.Activation > spmm.ReLU {
				bound = 0x1p-20*math.Abs(y) + 2*math.Abs(float64(near)-w) // of the arithmetic, and of rounding to C
			}
			if d := math.Abs(float64(got - near)); !(d <= bound) {
				t.Fatalf("C[%d,%d] = %v(%v) is %v, want %v ± %v", i, j, e.Activation, y, got, near, bound)
			}
		}
	}
	for i := range len(c.Data) { // padding
		if line := i % c.LD; (c.ColMajor && line >= c.Rows || !c.ColMajor && line >= c.Cols) &&
			float(c.Data[i]) == float(c.Data[i]) {
			t.Fatalf("padding at %d is %v", i, float(c.Data[i]))
		}
	}
}

// Every format on every device present, in all types and orders.
func TestEpilogue(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, format := range spmm.Formats() {
			o := spmm.Options{Format: format}
			t.Run(format, func(t *testing.T) {
				r := rand.New(rand.NewPCG(11, 12))
				for range 12 {
					epilogueCase[float32, float32, float32](t, dev, o, r)
					epilogueCase[half.F16, half.F16, float32](t, dev, o, r)
					epilogueCase[half.F16, half.F16, half.F16](t, dev, o, r)
					epilogueCase[half.BF16, half.BF16, half.BF16](t, dev, o, r)
				}
			})
		}
	})
}

// Where C is cut into row ranges and blocks of columns, each has its part of the bias.
func TestEpilogueOfBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	as := inEachFormat(r, 700, 200)
	b := dense[float32](r, 200, 100, 3, false)
	for format, a := range as {
		for _, rows := range []bool{false, true} {
			for _, colMajor := range []bool{false, true} {
				dev, _ := openSmall(t, 30_000)
				plan := prepare(t, dev, a, spmm.Options{Format: format})
				x := newBias[half.F16](t, dev, r, rows, map[bool]int{true: 700, false: 100}[rows], rows)
				c := dense[half.F16](r, 700, 100, 3, colMajor)
				checkEpilogue(t, plan, a, 1, b, 2, c, x, x.epilogue(spmm.ReLU))
			}
		}
	}
}

// Epilogues of one plan after each other, with the same operands: none is taken for another.
func TestEpilogueReuse(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(15, 16))
		a, b := sparse[float32](r, 30, 30, 3), dense[float32](r, 30, 30, 0, false)
		plan := prepare(t, dev, a, spmm.Options{Format: "csr"})
		defer plan.Close()
		biases := []bias{{}}
		for range 2 {
			biases = append(biases, newBias[float32](t, dev, r, true, 30, true), newBias[float32](t, dev, r, false, 30, true))
		}
		for range 2 {
			for _, x := range biases {
				for act := spmm.Activation(0); act <= spmm.SiLU; act++ {
					checkEpilogue(t, plan, a, 1, b, 0, dense[float32](r, 30, 30, 0, false), x, x.epilogue(act))
				}
			}
		}
	})
}

// What an activation makes of numbers that are not finite, and of zeros, is the same on every device.
func TestEpilogueSpecial(t *testing.T) {
	inf, nan, negative := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	b := formats.NewDense[float32](1, 8)
	b.Data = []float32{inf, -inf, nan, negative, 3e38, -3e38, 1e-40, -1e-40}
	want := map[spmm.Activation][]float32{
		0:         b.Data,
		spmm.ReLU: {inf, 0, nan, 0, 3e38, 0, 1e-40, 0},
		spmm.GELU: {inf, 0, nan, 0, 3e38, 0, 0, 0},
		spmm.SiLU: {inf, 0, nan, 0, 3e38, 0, 0, 0},
	}
	a := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0}, Val: []float32{1}}
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, format := range []string{"csr", "hrpb"} {
			plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: format})
			if format == "hrpb" && errors.Is(err, spmm.ErrUnsupported) {
				continue // CUDA has it in TF32 only
			}
			if err != nil {
				t.Fatal(err)
			}
			defer plan.Close()
			for _, colMajor := range []bool{false, true} {
				c := dense[float32](rand.New(rand.NewPCG(1, 1)), 1, 8, 0, colMajor)
				for act, want := range want {
					must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c, spmm.Epilogue{Activation: act})))
					for j, w := range want {
						// Subnormal numbers may be flushed to zero.
						if got := c.At(0, j); !(got == w || got != got && w != w || math.Abs(float64(got-w)) < 0x1p-126) {
							t.Errorf("%s: %v(%v) is %v, want %v", format, act, b.Data[j], got, w)
						}
					}
				}
			}
		}
	})
}

func TestEpilogueRefusals(t *testing.T) {
	dev, other := openCPU(t), openCPU(t)
	r := rand.New(rand.NewPCG(1, 2))
	plan := prepare(t, dev, sparse[float32](r, 20, 30, 4), spmm.Options{})
	tensor := func(dev *spmm.Device, rows, cols int) *spmm.Tensor[float32] {
		x := newTensor[float32](t, dev, rows, cols, false)
		return x
	}
	b, c, one := tensor(dev, 30, 1), tensor(dev, 20, 1), tensor(dev, 1, 1)
	closed := tensor(dev, 20, 1)
	closed.Close()
	var none *spmm.Tensor[float32]
	for _, test := range []struct {
		name string
		e    []spmm.Epilogue
		want string
	}{
		{"two", make([]spmm.Epilogue, 2), "at most one"},
		{"both biases", []spmm.Epilogue{{RowBias: closed, ColBias: one}}, "a row bias and a column bias"},
		{"unknown activation", []spmm.Epilogue{{Activation: 9}}, "activation 9"},
		{"rows", []spmm.Epilogue{{RowBias: one}}, "the row bias is 1×1; want 20×1"},
		{"columns", []spmm.Epilogue{{ColBias: tensor(dev, 1, 2)}}, "the column bias is 1×2; want 1×1"},
		{"C", []spmm.Epilogue{{RowBias: c}}, "two matrices"},
		{"another device", []spmm.Epilogue{{RowBias: tensor(other, 20, 1)}}, "on the plan's device"},
		{"closed", []spmm.Epilogue{{RowBias: closed}}, "after Close"},
	} {
		if _, err := plan.Run(ctx, 1, b, 0, c, test.e...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := plan.Run(ctx, 1, b, 0, c, spmm.Epilogue{RowBias: none}); err != nil {
		t.Errorf("a bias that is no tensor: %v", err)
	}
}

func TestParseActivation(t *testing.T) {
	for a := spmm.Activation(0); a <= spmm.SiLU; a++ {
		if got, err := spmm.ParseActivation(a.String()); got != a || err != nil {
			t.Errorf("%v is read as %v, %v", a, got, err)
		}
	}
	if _, err := spmm.ParseActivation("tanh"); err == nil || !strings.Contains(err.Error(), "gelu") {
		t.Errorf("tanh: %v", err)
	}
	if got := fmt.Sprint(spmm.Activation(0), spmm.GELU); got != "none gelu" {
		t.Errorf("names are %q", got)
	}
}

// Reading a bias takes its time: of one column it is as much as writing C.
func TestAttainableWithBias(t *testing.T) {
	dev := openCPU(t)
	plan := prepare(t, dev, &formats.CSR[float32]{Rows: 1 << 20, Cols: 4, RowPtr: make([]int64, 1<<20+1)},
		spmm.Options{Format: "csr"})
	defer plan.Close()
	x := newTensor[float32](t, dev, 1<<20, 1, true)
	defer x.Close()
	without, err := plan.Attainable(ctx, 1, dtype.F32)
	if err != nil {
		t.Fatal(err)
	}
	with, err := plan.Attainable(ctx, 1, dtype.F32, spmm.Epilogue{RowBias: x})
	if err != nil || with.Memory <= without.Memory || with.Compute != without.Compute {
		t.Errorf("with a bias %+v, %v; without %+v", with, err, without)
	}
	if _, err := plan.Attainable(ctx, 1, dtype.F32, spmm.Epilogue{}, spmm.Epilogue{}); err == nil {
		t.Error("two epilogues")
	}
	if _, err := plan.Observe(ctx, 1, dtype.F32, 0, spmm.Epilogue{}, spmm.Epilogue{}); err == nil {
		t.Error("two epilogues are observed")
	}
}

// What an epilogue costs: a pruned matrix times 512 columns, without and with. The metric us is the device's time, or
// the host's where it tells none.
func BenchmarkEpilogue(b *testing.B) {
	infos, _ := spmm.Devices(ctx)
	a := sparse[half.F16](rand.New(rand.NewPCG(1, 2)), 4096, 4096, 10)
	for _, info := range infos {
		if info.Index != 0 {
			continue
		}
		dev, err := spmm.Open(ctx, info.Backend)
		if err != nil {
			b.Fatal(err)
		}
		defer dev.Close()
		for _, format := range spmm.Formats() {
			benchmarkEpilogues(b, dev, a, format)
		}
	}
}

func benchmarkEpilogues(b *testing.B, dev *spmm.Device, a *formats.CSR[half.F16], format string) {
	const n, times = 512, 20
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: format})
	if errors.Is(err, spmm.ErrUnsupported) {
		return // nm takes matrices of a pattern only
	}
	if err != nil {
		b.Fatal(err)
	}
	defer plan.Close()
	x, y := tensorsFor[half.F16, float32](b, plan, n)
	row := newTensor[float32](b, dev, a.Rows, 1, false)
	col := newTensor[float32](b, dev, 1, n, false)
	for _, t := range []interface{ Close() error }{x, y, row, col} {
		defer t.Close()
	}
	upload := errors.Join(
		x.Upload(ctx, formats.NewDense[half.F16](a.Cols, n)), row.Upload(ctx, formats.NewDense[float32](a.Rows, 1)),
		col.Upload(ctx, formats.NewDense[float32](1, n)))
	if upload != nil {
		b.Fatal(upload)
	}
	for _, c := range []struct {
		name string
		e    spmm.Epilogue
	}{
		{"none", spmm.Epilogue{}},
		{"row bias, relu", spmm.Epilogue{RowBias: row, Activation: spmm.ReLU}},
		{"column bias, gelu", spmm.Epilogue{ColBias: col, Activation: spmm.GELU}},
	} {
		b.Run(dev.Info().Backend+"/"+format+"/"+c.name, func(b *testing.B) {
			var us float64
			for b.Loop() {
				t, err := plan.Repeat(ctx, times, 1, x, 0, y, c.e)
				if err != nil {
					b.Fatal(err)
				}
				us += float64(t.Best().Nanoseconds()) / 1e3 / times
			}
			b.ReportMetric(us/float64(b.N), "us")
		})
	}
}
