// Multiplications through the front door, compared with a plain loop. Values are small integers, so
// that every order of summation gives the same bits.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/internal/cache/cachetest"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { cachetest.Main(m.Run) }

var ctx = context.Background()

func openCPU(t testing.TB) *spmm.Device {
	t.Helper()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func value[T formats.Value](x float32) T {
	var v T
	switch p := any(&v).(type) {
	case *half.F16:
		*p = half.F16From(x)
	case *half.BF16:
		*p = half.BF16From(x)
	case *float32:
		*p = x
	}
	return v
}

func float[T formats.Value](v T) float32 {
	switch x := any(v).(type) {
	case half.F16:
		return x.Float32()
	case half.BF16:
		return x.Float32()
	}
	return any(v).(float32)
}

// sparse returns a matrix in which about one position in every `every` is stored, row 0 and every fifth
// row empty, and one row full.
func sparse[T formats.Value](r *rand.Rand, rows, cols, every int) *formats.CSR[T] {
	a := &formats.CSR[T]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		for j := range cols {
			if i == rows/2+1 || i%5 != 0 && r.IntN(every) == 0 {
				a.ColIdx = append(a.ColIdx, int32(j))
				a.Val = append(a.Val, value[T](float32(r.IntN(9)-4)))
			}
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	return a
}

// dense returns a matrix of small integers whose padding is NaN.
func dense[T formats.Value](r *rand.Rand, rows, cols, pad int, colMajor bool) *formats.Dense[T] {
	lines, width := rows, cols
	if colMajor {
		lines, width = cols, rows
	}
	d := &formats.Dense[T]{Rows: rows, Cols: cols, LD: width + pad, ColMajor: colMajor, Data: make([]T, lines*(width+pad))}
	for i := range d.Data {
		d.Data[i] = value[T](float32(math.NaN()))
	}
	for i := range rows {
		for j := range cols {
			d.Set(i, j, value[T](float32(r.IntN(9)-4)))
		}
	}
	return d
}

// expected is alpha·A·B + beta·C by definition.
func expected[T, B, C formats.Value](alpha float32, a *formats.CSR[T], b *formats.Dense[B], beta float32,
	c *formats.Dense[C]) *formats.Dense[C] {
	out := *c
	out.Data = append([]C(nil), c.Data...)
	for i := range a.Rows {
		for j := range b.Cols {
			var s float32
			for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
				s += float(a.Val[p]) * float(b.At(int(a.ColIdx[p]), j))
			}
			s *= alpha
			if beta != 0 {
				s += beta * float(c.At(i, j))
			}
			out.Set(i, j, value[C](s))
		}
	}
	return &out
}

// same compares all memory, padding included; NaN equals NaN.
func same[T formats.Value](t tester, got, want *formats.Dense[T]) {
	t.Helper()
	must(t, differ(got, want))
}

func differ[T formats.Value](got, want *formats.Dense[T]) error {
	for i := range want.Data {
		g, w := float(got.Data[i]), float(want.Data[i])
		if g != w && (g == g || w == w) {
			return fmt.Errorf("element %d of the memory is %v, want %v (%d×%d, LD %d, column-major %v)", i, g, w, want.Rows, want.Cols, want.LD, want.ColMajor)
		}
	}
	return nil
}

// multiplyCase draws a problem and checks Multiply and Run on it.
func multiplyCase[T, B, C formats.Value](t *rapid.T, dev *spmm.Device, o spmm.Options) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	m, k, n := rapid.IntRange(0, 70).Draw(t, "m"), rapid.IntRange(0, 70).Draw(t, "k"), rapid.IntRange(0, 40).Draw(t, "n")
	pad := rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "pad")
	every := rapid.SampledFrom([]int{1, 3, 20, 1000}).Draw(t, "every")
	a := sparse[T](r, m, k, every)
	if o.Format == "dense" {
		a = formats.Convert[T](dense[T](r, m, k, 0, false).Sparse())
	}
	b := dense[B](r, k, n, pad, rapid.Bool().Draw(t, "bColMajor"))
	c := dense[C](r, m, n, pad, rapid.Bool().Draw(t, "cColMajor"))
	alpha := rapid.SampledFrom([]float32{1, -2}).Draw(t, "alpha")
	beta := rapid.SampledFrom([]float32{0, 1, 3}).Draw(t, "beta")
	want := expected(alpha, a, b, beta, c)

	plan, err := spmm.Prepare(ctx, dev, a, o)
	if errors.Is(err, spmm.ErrUnsupported) && o.Format != "csr" && o.Format != "auto" && dev.Info().Backend != "cpu" {
		return // a format need not have a kernel everywhere
	}
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	x := newTensor[B](t, dev, k, n, b.ColMajor)
	defer x.Close()
	y := newTensor[C](t, dev, m, n, c.ColMajor)
	defer y.Close()
	kept := *c
	kept.Data = append([]C(nil), c.Data...)
	must(t, errors.Join(x.Upload(ctx, b), y.Upload(ctx, c)))
	must(t, second(spmm.Multiply(ctx, plan, float64(alpha), b, float64(beta), c)))
	same(t, c, want)
	must(t, second(plan.Run(ctx, float64(alpha), x, float64(beta), y)))
	must(t, y.Download(ctx, &kept))
	same(t, &kept, want)
}

// Every format on every device present.
func TestMultiply(t *testing.T) {
	infos, absent := spmm.Devices(ctx)
	t.Log("not here:", absent)
	for _, info := range infos {
		dev, err := spmm.Open(ctx, fmt.Sprintf("%s:%d", info.Backend, info.Index))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dev.Close() })
		multiplyOn(t, dev)
	}
}

func multiplyOn(t *testing.T, dev *spmm.Device) {
	for _, format := range append(spmm.Formats(), "auto") {
		o := spmm.Options{Format: format}
		t.Run(dev.Info().Backend+" "+format, func(t *testing.T) {
			t.Attr("device", dev.Info().String())
			rapid.Check(t, func(t *rapid.T) { multiplyCase[float32, float32, float32](t, dev, o) })
			rapid.Check(t, func(t *rapid.T) { multiplyCase[half.F16, half.F16, float32](t, dev, o) })
			rapid.Check(t, func(t *rapid.T) { multiplyCase[half.BF16, half.BF16, half.BF16](t, dev, o) })
			rapid.Check(t, func(t *rapid.T) { multiplyCase[half.F16, half.F16, half.F16](t, dev, o) })
			rapid.Check(t, func(t *rapid.T) { multiplyCase[float32, half.F16, half.BF16](t, dev, o) })
		})
	}
}

// Each precision computes with A and B rounded to it.
func TestPrecision(t *testing.T) {
	dev := openCPU(t)
	x := float32(1 + 1.0/4096) // an f32 that neither 16-bit type holds
	a := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0}, Val: []float32{x}}
	b, c := formats.NewDense[float32](1, 1), formats.NewDense[float32](1, 1)
	b.Set(0, 0, x)
	for _, test := range []struct {
		precision, computed dtype.Type
		want                float32
	}{
		{dtype.Invalid, dtype.F32, x * x},
		{dtype.F32, dtype.F32, x * x},
		{dtype.TF32, dtype.F32, x * x},
		{dtype.F16, dtype.F16, 1},
		{dtype.BF16, dtype.BF16, 1},
	} {
		plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Precision: test.precision})
		if err != nil {
			t.Fatalf("%v: %v", test.precision, err)
		}
		must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
		if got := plan.Info().Precision; got != test.computed || c.Data[0] != test.want {
			t.Errorf("precision %v: %v computed as %v, want %v as %v", test.precision, c.Data[0], got, test.want, test.computed)
		}
		plan.Close()
	}
}

// The result of one multiplication is B of the next, without leaving the device.
func TestChain(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(1, 2))
	a := sparse[half.F16](r, 33, 33, 4)
	x := dense[half.F16](r, 33, 10, 0, false)
	plan := prepare(t, dev, a, spmm.Options{})
	bt, ct := tensorsFor[half.F16, half.F16](t, plan, 10)
	must(t, bt.Upload(ctx, x))
	got := formats.NewDense[half.F16](33, 10)
	want := expected(0.125, a, expected(1, a, x, 0, got), 0, got)
	must(t, second(plan.Run(ctx, 1, bt, 0, ct)))
	must(t, second(plan.Run(ctx, 0.125, ct, 0, bt)))
	must(t, bt.Download(ctx, got))
	same(t, got, want)
}

func TestRefusals(t *testing.T) {
	dev, other := openCPU(t), openCPU(t)
	r := rand.New(rand.NewPCG(1, 2))
	a := sparse[float32](r, 20, 30, 4)
	plan := prepare(t, dev, a, spmm.Options{})
	d := formats.NewDense[float32]
	tensor := func(dev *spmm.Device, rows, cols int) *spmm.Tensor[float32] {
		x := newTensor[float32](t, dev, rows, cols, false)
		return x
	}
	square := prepare(t, dev, sparse[float32](r, 5, 5, 2), spmm.Options{})
	multiply := func(b, c *formats.Dense[float32]) error {
		_, err := spmm.Multiply(ctx, plan, 1, b, 0, c)
		return err
	}
	closed, s := tensor(dev, 30, 4), tensor(dev, 5, 5)
	closed.Close()
	for _, test := range []struct {
		name string
		err  error
		says string
	}{
		{"rows of B", multiply(d(29, 4), d(20, 4)), "A is 20×30, B is 29×4, C is 20×4"},
		{"columns of C", multiply(d(30, 4), d(20, 5)), "B is 30×4, C is 20×5"},
		{"short B", multiply(&formats.Dense[float32]{Rows: 30, Cols: 4, LD: 4, Data: make([]float32, 100)}, d(20, 4)), "matrix B"},
		{"narrow C", multiply(d(30, 4), &formats.Dense[float32]{Rows: 20, Cols: 4, LD: 3, Data: make([]float32, 100)}), "matrix C"},
		{"B is C", second(square.Run(ctx, 1, s, 0, s)), "two matrices"},
		{"another device", second(plan.Run(ctx, 1, tensor(other, 30, 4), 0, tensor(dev, 20, 4))), "one device"},
		{"closed tensor", second(plan.Run(ctx, 1, closed, 0, tensor(dev, 20, 4))), "after Close"},
		{"tensor shapes", second(plan.Run(ctx, 1, tensor(dev, 20, 4), 0, tensor(dev, 20, 4))), "want B 30×n and C 20×n"},
		{"upload nothing", s.Upload(ctx, nil), "to upload is missing"},
		{"download nowhere", s.Download(ctx, nil), "to download into is missing"},
		{"upload", s.Upload(ctx, d(5, 4)), "the tensor is 5×5, the matrix 5×4"},
		{"invalid A", second(spmm.Prepare(ctx, dev, &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{7}, Val: []float32{1}}, spmm.Options{})), "matrix A"},
		{"no A", second(spmm.Prepare(ctx, dev, nil, spmm.Options{})), "matrix A is missing"},
		{"nil A", second(spmm.Prepare(ctx, dev, (*formats.CSR[float32])(nil), spmm.Options{})), "matrix A is missing"},
		{"nil B", multiply(nil, d(20, 4)), "matrix B is missing"},
		{"nil C", multiply(d(30, 4), nil), "matrix C is missing"},
		{"format", second(spmm.Prepare(ctx, dev, a, spmm.Options{Format: "dia"})), `unknown format "dia" (auto, `},
		{"precision", second(spmm.Prepare(ctx, dev, a, spmm.Options{Precision: dtype.S8})), "Options.Precision: s8"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.says) || strings.Contains(test.err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", test.name, test.err, test.says)
		}
	}
	if _, err := spmm.Prepare(ctx, dev, a, spmm.Options{Variant: "none"}); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("unknown variant: %v, want ErrUnsupported", err)
	}
	plan.Close()
	if err := multiply(d(30, 4), d(20, 4)); err == nil || !strings.Contains(err.Error(), "after Close") {
		t.Errorf("closed plan: %v", err)
	}
}

func TestCancel(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 2)), 20, 30, 4)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := spmm.Prepare(cancelled, dev, a, spmm.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare: %v", err)
	}
	plan := prepare(t, dev, a, spmm.Options{})
	b, c := formats.NewDense[float32](30, 4), formats.NewDense[float32](20, 4)
	if _, err := spmm.Multiply(cancelled, plan, 1, b, 0, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Multiply: %v", err)
	}
	if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
		t.Errorf("Multiply after a cancelled one: %v", err)
	}
}

// small is a device that binds little, and counts what is allocated on it.
type small struct {
	backend.Device
	binding int64
	live    int // buffers
	// allocated counts those that were closed, too.
	allocated int
}

func (s *small) Caps() backend.Caps {
	c := s.Device.Caps()
	c.MaxBinding = s.binding
	return c
}

type counted struct {
	backend.Buffer
	s      *small
	closed bool
}

func (s *small) Alloc(n int64) (backend.Buffer, error) {
	if n > s.binding {
		return nil, errors.New("a larger buffer than the device binds")
	}
	b, err := s.Device.Alloc(n)
	if err != nil {
		return nil, err
	}
	s.live++
	s.allocated++
	return &counted{Buffer: b, s: s}, nil
}

func (b *counted) Close() error {
	if !b.closed {
		b.closed = true
		b.s.live--
	}
	return b.Buffer.Close()
}

func (s *small) Run(ctx context.Context, ls ...backend.Launch) (backend.Timing, error) {
	for i, l := range ls {
		args := make([]backend.Buffer, len(l.Args))
		for j, a := range l.Args {
			args[j] = a.(*counted).Buffer
		}
		ls[i].Args = args
		defer func() { ls[i].Args = l.Args }()
	}
	return s.Device.Run(ctx, ls...)
}

// Start and Record go through Run.
func (s *small) Start(ctx context.Context, ls ...backend.Launch) (backend.Pending, error) {
	t, err := s.Run(ctx, ls...)
	return backend.Done(t), err
}

func (s *small) Record(ls ...backend.Launch) (backend.Recording, error) {
	return backend.Replay(s, ls), nil
}

func openSmall(t *testing.T, binding int64) (*spmm.Device, *small) {
	t.Helper()
	return openSmallOf(t, "cpu", binding)
}

// openSmallOf is openSmall for a device of a backend.
func openSmallOf(t *testing.T, name string, binding int64) (*spmm.Device, *small) {
	t.Helper()
	d, err := spmm.OpenBackend(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	s := &small{Device: d, binding: binding}
	dev := spmm.NewDevice(s)
	t.Cleanup(func() { dev.Close() })
	return dev, s
}

// inEachFormat goes through the formats, each with a matrix that it holds.
func inEachFormat(r *rand.Rand, rows, cols int) iter.Seq2[string, *formats.CSR[float32]] {
	a := sparse[float32](r, rows, cols, 3)
	return func(yield func(string, *formats.CSR[float32]) bool) {
		for _, format := range spmm.Formats() {
			if format == "dense" {
				a = formats.Convert[float32](dense[float32](r, rows, cols, 0, false).Sparse())
			}
			if !yield(format, a) {
				return
			}
		}
	}
}

// What exceeds a binding is cut into row ranges and blocks of columns, or refused by name; and
// nothing stays allocated.
func TestBindingLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	as := inEachFormat(r, 700, 200)
	b := dense[float32](r, 200, 100, 3, false)
	for format, a := range as {
		for _, binding := range []int64{1 << 30, 100_000, 30_000} {
			for _, colMajor := range []bool{false, true} {
				dev, s := openSmall(t, binding)
				c := dense[half.F16](r, 700, 100, 3, colMajor)
				want := expected(1, a, b, 2, c)
				plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: format})
				if err != nil {
					t.Fatalf("%s, %d bytes: %v", format, binding, err)
				}
				if _, err := spmm.Multiply(ctx, plan, 1, b, 2, c); err != nil {
					t.Fatalf("%s, %d bytes: %v", format, binding, err)
				}
				same(t, c, want)
				if info := plan.Info(); info.NNZ != a.NNZ() || info.Stats.Slots < info.NNZ {
					t.Errorf("%s, %d bytes: %+v for %d entries", format, binding, info, a.NNZ())
				}
				if err := plan.Close(); err != nil {
					t.Error(err)
				}
				if s.live != 0 {
					t.Errorf("%s, %d bytes: %d buffers left", format, binding, s.live)
				}
			}
		}
		dev, s := openSmall(t, 3000)
		_, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: format})
		if !errors.Is(err, spmm.ErrUnsupported) || !strings.Contains(err.Error(), "at most 3000") {
			t.Errorf("%s, 3000 bytes: %v, want ErrUnsupported naming the limit", format, err)
		}
		if s.live != 0 {
			t.Errorf("%s: a refused matrix left %d buffers", format, s.live)
		}
	}
}

// A matrix of a pattern is cut in that pattern, though some of its rows by themselves fill too little of any;
// and where a format cannot be cut that far, auto takes another.
func TestBindingLimitOfPatterns(t *testing.T) {
	a := matrix(t, "gen:nm,rows=2048,cols=512,n=2,m=16,v=64,values=ones")
	for i := 1536; i < a.Rows; i++ { // the last quarter keeps two vectors
		a.RowPtr[i+1] = a.RowPtr[i] + 2
	}
	a.ColIdx, a.Val = a.ColIdx[:a.RowPtr[a.Rows]], a.Val[:a.RowPtr[a.Rows]]
	b := dense[float32](rand.New(rand.NewPCG(3, 4)), a.Cols, 8, 0, false)
	c := formats.NewDense[float32](a.Rows, b.Cols)
	want := expected(1, a, b, 0, c)
	f, err := load.Format("nm")
	if err != nil {
		t.Fatal(err)
	}
	tall, err := f.Encode(a, map[string]int{"n": 2, "m": 16, "v": 256})
	if err == nil {
		t.Fatal("units of 256 rows hold this matrix")
	}
	if tall, err = f.Encode(a, map[string]int{"n": 16, "m": 16, "v": 256}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		binding int64
		prepare func(dev *spmm.Device) (*spmm.Plan, error)
		nm      bool
	}{
		{"cut", 80_000, func(dev *spmm.Device) (*spmm.Plan, error) {
			return spmm.Prepare(ctx, dev, a, spmm.Options{Format: "nm"})
		}, true},
		{"encoded, cut", 1_100_000, func(dev *spmm.Device) (*spmm.Plan, error) {
			return spmm.Prepare(ctx, dev, tall, spmm.Options{})
		}, true},
		{"encoded in panels that are too large", 500_000, func(dev *spmm.Device) (*spmm.Plan, error) {
			return spmm.Prepare(ctx, dev, tall, spmm.Options{})
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dev, s := openSmall(t, test.binding)
			plan, err := test.prepare(dev)
			if err != nil {
				t.Fatal(err)
			}
			must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
			same(t, c, want)
			if i := plan.Info(); (i.Format == "nm") != test.nm || test.nm && i.Stats.StoredBytes < test.binding {
				t.Errorf("as %s because %s, %d bytes", i.Format, i.Why, i.Stats.StoredBytes)
			}
			if err := plan.Close(); err != nil || s.live != 0 {
				t.Errorf("%d buffers left, %v", s.live, err)
			}
		})
	}
}

// Tensors for a plan that is cut fit it, others are refused.
func TestTensorsFor(t *testing.T) {
	dev, _ := openSmall(t, 60_000)
	r := rand.New(rand.NewPCG(5, 6))
	a := sparse[float32](r, 700, 200, 3)
	b, got := dense[float32](r, 200, 100, 0, false), formats.NewDense[float32](700, 100)
	plan := prepare(t, dev, a, spmm.Options{Format: "csr"})
	x, y := tensorsFor[float32, float32](t, plan, 100)
	must(t, x.Upload(ctx, b))
	must(t, second(plan.Run(ctx, 1, x, 0, y)))
	must(t, y.Download(ctx, got))
	same(t, got, expected(1, a, b, 0, got))
	if _, err := spmm.NewTensor[float32](dev, 700, 100, false); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("a tensor above the limit: %v", err)
	}
	u, _ := spmm.NewTensor[float32](dev, 200, 8, false)
	v, _ := spmm.NewTensor[float32](dev, 700, 8, false)
	if _, err := plan.Run(ctx, 1, u, 0, v); err == nil || !strings.Contains(err.Error(), "TensorsFor") {
		t.Errorf("whole tensors for a plan in parts: %v", err)
	}
}

// Repeated multiplication allocates nothing.
func TestNoAllocations(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(7, 8))
	a := sparse[float32](r, 200, 200, 8)
	b, c := dense[float32](r, 200, 24, 0, false), dense[float32](r, 200, 24, 0, false)
	plan := prepare(t, dev, a, spmm.Options{Format: "csr"})
	x, y := tensorsFor[float32, float32](t, plan, 24)
	must(t, x.Upload(ctx, b))
	run := func() {
		must(t, second(plan.Run(ctx, 1, x, 0, y)))
	}
	multiply := func() {
		must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, c)))
	}
	bias := newTensor[half.F16](t, dev, 1, 24, false)
	epilogue := func() {
		must(t, second(plan.Run(ctx, 1, x, 0, y, spmm.Epilogue{ColBias: bias, Activation: spmm.GELU})))
	}
	for name, f := range map[string]func(){"Run": run, "Multiply": multiply, "Run with an epilogue": epilogue} {
		f()
		allocatesNothing(t, name, f)
	}
}

// raced tells that the race detector is on.
var raced bool

// allocatesNothing calls f and fails the test if it allocates. Where the race detector is on sync.Pool drops some of
// what it is given, and allocations mean nothing.
func allocatesNothing(t *testing.T, what string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(20, f); n >= 1 && !raced {
		t.Errorf("%s allocates %v times", what, n)
	}
}

// What one more multiplication costs the host: the matrix is too small for anything else to show.
func BenchmarkRun(b *testing.B) {
	dev := openCPU(b)
	plan := prepare(b, dev, sparse[float32](rand.New(rand.NewPCG(1, 2)), 8, 8, 2), spmm.Options{Format: "csr"})
	x, y := tensorsFor[float32, float32](b, plan, 8)
	b.ReportAllocs()
	for b.Loop() {
		must(b, second(plan.Run(ctx, 1, x, 0, y)))
	}
}
