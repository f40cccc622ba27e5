// New values through the front door: a plan with them multiplies as one that was prepared with them.

package spmm_test

import (
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// For every format, type, mode and orientation, in any order of calls.
func TestSetValues(t *testing.T) {
	dev := openCPU(t)
	rapid.Check(t, func(t *rapid.T) {
		o := spmm.Options{
			Format:    rapid.SampledFrom(append(spmm.Formats(), "auto")).Draw(t, "format"),
			Precision: rapid.SampledFrom([]dtype.Type{0, dtype.F16, dtype.BF16, dtype.TF32, dtype.F32}).Draw(t, "precision"),
			Mode:      rapid.SampledFrom([]spmm.Mode{spmm.Fast, spmm.Fast, spmm.Reproducible}).Draw(t, "mode"),
			Transpose: rapid.Bool().Draw(t, "transpose"),
			Right:     rapid.Bool().Draw(t, "right"),
		}
		if o.Mode == spmm.Reproducible {
			o.P = rapid.SampledFrom([]int{15, 23, 31, 47, spmm.AutoP}).Draw(t, "p")
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a := sparse[float32](r, rapid.IntRange(1, 60).Draw(t, "rows"), rapid.IntRange(1, 60).Draw(t, "columns"), 3)
		plan, err := spmm.Prepare(ctx, dev, a, o)
		if err != nil {
			t.Skip(err) // a format that cannot hold it
		}
		defer plan.Close()
		tensor := newTensor[half.F16](t, dev, 1, len(a.Val), false)
		defer tensor.Close()
		rows, cols := a.Rows, a.Cols
		if o.Transpose {
			rows, cols = cols, rows
		}
		b, c := dense[float32](r, cols, 5, 0, false), [2]int{rows, 5}
		if o.Right {
			b, c = dense[float32](r, 5, rows, 0, false), [2]int{5, cols}
		}
		for range 3 {
			for i := range a.Val {
				a.Val[i] = half.F16From(float32(r.NormFloat64() * math.Exp2(float64(r.IntN(6))))).Float32()
				if r.IntN(50) == 0 {
					a.Val[i] = []float32{0, float32(math.Inf(1)), float32(math.NaN())}[r.IntN(3)]
				}
			}
			if rapid.Bool().Draw(t, "from the host") {
				err = spmm.SetValues(ctx, plan, a.Val)
			} else {
				v := formats.Convert[half.F16](a).Val
				must(t, tensor.Upload(ctx, &formats.Dense[half.F16]{Rows: 1, Cols: len(v), LD: len(v), Data: v}))
				err = plan.SetValues(ctx, tensor)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := o
			again.Format, again.Variant = plan.Info().Format, plan.Info().Variant
			if o.Mode == spmm.Reproducible {
				again = o
			}
			fresh := prepare(t, dev, a, again)
			got, want := formats.NewDense[float32](c[0], c[1]), formats.NewDense[float32](c[0], c[1])
			must(t, second(spmm.Multiply(ctx, plan, 1, b, 0, got)))
			must(t, second(spmm.Multiply(ctx, fresh, 1, b, 0, want)))
			fresh.Close()
			if !got.Equal(want) {
				t.Fatalf("%+v: new values multiply differently", plan.Info())
			}
			p, lossless := plan.Reproduced()
			if q, also := fresh.Reproduced(); p != q || lossless != also {
				t.Fatalf("p = %d (%v), want %d (%v)", p, lossless, q, also)
			}
		}
	})
}

func TestSetValuesRefusals(t *testing.T) {
	dev, other := openCPU(t), openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 2)), 20, 30, 4)
	for _, o := range []spmm.Options{{}, {Format: "cvse"}, {Mode: spmm.Reproducible}} {
		plan := prepare(t, dev, a, o)
		elsewhere := newTensor[float32](t, other, 1, len(a.Val), false)
		square := newTensor[float32](t, dev, 7, 7, false)
		var none *spmm.Tensor[float32]
		want := func(err error, text string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want an error about %q", o, err, text)
			}
		}
		want(spmm.SetValues(ctx, plan, a.Val[1:]), fmt.Sprintf("%d values for a matrix of %d entries", len(a.Val)-1,
			len(a.Val)))
		want(plan.SetValues(ctx, elsewhere), "on the device of A")
		want(plan.SetValues(ctx, square), "7×7")
		want(plan.SetValues(ctx, none), "missing")
		want(plan.SetValues(ctx, nil), "missing")
		if err := plan.Close(); err != nil {
			t.Error(err)
		}
		want(spmm.SetValues(ctx, plan, a.Val), "used after Close")
	}
}

// Values from a tensor on the device take no memory of the host once their places are known.
func TestSetValuesAllocatesNothing(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 2)), 200, 300, 4)
	for _, o := range []spmm.Options{{Format: "csr"}, {Format: "cvse", Precision: dtype.F16},
		{Format: "hrpb", Transpose: true}, {Mode: spmm.Reproducible, P: 31}} {
		plan := prepare(t, dev, a, o)
		defer plan.Close()
		x := newTensor[half.F16](t, dev, len(a.Val), 1, true)
		defer x.Close()
		set := func() {
			must(t, plan.SetValues(ctx, x))
		}
		set()
		allocatesNothing(t, fmt.Sprintf("%+v: SetValues", o), set)
	}
}

// Each multiplication sees all of some call's values.
func TestSetValuesWhileMultiplying(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(1, 2)), 40, 40, 3)
	for i := range a.Val {
		a.Val[i] = 1
	}
	for _, o := range []spmm.Options{{Format: "cvse"}, {Mode: spmm.Reproducible}} {
		plan := prepare(t, dev, a, o)
		defer plan.Close()
		ones := formats.NewDense[float32](40, 8)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		var g sync.WaitGroup
		for k := range 4 {
			g.Go(func() {
				v := make([]float32, len(a.Val))
				for i := range v {
					v[i] = float32(k + 1)
				}
				for range 20 {
					if err := spmm.SetValues(ctx, plan, v); err != nil {
						t.Error(err)
					}
					c := formats.NewDense[float32](40, 8)
					if _, err := spmm.Multiply(ctx, plan, 1, ones, 0, c); err != nil {
						t.Error(err)
					}
					full := c.At(21, 0) / 40 // row 21 is full
					for i := range c.Data {
						if n := float32(a.RowPtr[i/8+1] - a.RowPtr[i/8]); c.Data[i] != full*n || full < 1 || full > 4 {
							t.Errorf("output %d is %g for %g entries, and that of the full row %g", i, c.Data[i], n, full*40)
							return
						}
					}
				}
			})
		}
		g.Wait()
	}
}

// A time step that changes the entries of A, whose pattern stays: the places of the entries are found once.
func ExamplePlan_SetValues() {
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	//	1 . 2
	//	. 3 .
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 2, 1},
		Val: []float32{1, 2, 3}}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: "cvse"})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	values, err := spmm.NewTensor[float32](dev, 1, 3, false) // which another computation on the device may write
	if err != nil {
		log.Fatal(err)
	}
	defer values.Close()
	x := &formats.Dense[float32]{Rows: 3, Cols: 1, LD: 1, Data: []float32{1, 1, 1}}
	y := formats.NewDense[float32](2, 1)
	for step := range 3 {
		s := float32(step)
		if err := values.Upload(ctx, &formats.Dense[float32]{Rows: 1, Cols: 3, LD: 3,
			Data: []float32{1 + s, 2, 3 - s}}); err != nil {
			log.Fatal(err)
		}
		if err := plan.SetValues(ctx, values); err != nil {
			log.Fatal(err)
		}
		if _, err := spmm.Multiply(ctx, plan, 1, x, 0, y); err != nil {
			log.Fatal(err)
		}
		fmt.Println(y.Data)
	}
	// Output:
	// [3 3]
	// [4 2]
	// [5 1]
}

// Values in the host's memory, in the order of the matrix's entries.
func ExampleSetValues() {
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 2, 1},
		Val: []float32{1, 2, 3}}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Transpose: true})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	if err := spmm.SetValues(ctx, plan, []float32{10, 20, 30}); err != nil {
		log.Fatal(err)
	}
	x := &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{1, 2}}
	y := formats.NewDense[float32](3, 1)
	if _, err := spmm.Multiply(ctx, plan, 1, x, 0, y); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y.Data)
	// Output: [10 60 20]
}

// In a sequence, values that a multiplication writes are those of the matrix that the next one multiplies with.
func TestSequenceAddValues(t *testing.T) { eachDevice(t, testSequenceAddValues) }

func testSequenceAddValues(t *testing.T, dev *spmm.Device) {
	r := rand.New(rand.NewPCG(1, 2))
	a := sparse[float32](r, 30, 40, 4)
	n := len(a.Val)
	row := sparse[float32](r, 1, 3, 1)
	for _, o := range []spmm.Options{{Format: "csr"}, {Format: "cvse", Precision: dtype.F16},
		{Format: "hrpb", Transpose: true}, {Mode: spmm.Reproducible}} {
		weights := prepare(t, dev, row, spmm.Options{})
		defer weights.Close()
		plan, err := spmm.Prepare(ctx, dev, a, o)
		if o.Format == "hrpb" && errors.Is(err, spmm.ErrUnsupported) {
			continue // CUDA has it in TF32 only
		}
		if err != nil {
			t.Fatal(err)
		}
		defer plan.Close()
		tensor := func(rows, cols int) *spmm.Tensor[float32] {
			x := newTensor[float32](t, dev, rows, cols, false)
			t.Cleanup(func() { x.Close() })
			return x
		}
		i := plan.Info()
		b, values, x, y := tensor(3, n), tensor(1, n), tensor(i.Cols, 6), tensor(i.Rows, 6)
		hx := dense[float32](r, i.Cols, 6, 0, false)
		must(t, x.Upload(ctx, hx))
		s := dev.NewSequence()
		defer s.Close()
		for _, err := range []error{s.Add(weights, 1, b, 0, values), s.AddValues(plan, values), s.Add(plan, 1, x, 0, y)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			hb := dense[float32](r, 3, n, 0, false)
			must(t, b.Upload(ctx, hb))
			must(t, second(s.Run(ctx)))
			got := formats.NewDense[float32](i.Rows, 6)
			must(t, y.Download(ctx, got))
			fresh := *a
			fresh.Val = expected(1, row, hb, 0, formats.NewDense[float32](1, n)).Data
			if want := timesB(t, dev, &fresh, o, hx); !got.Equal(want) {
				t.Errorf("%+v: the sequence multiplies with other values", o)
			}
		}
		if err := s.AddValues(plan, x); err == nil {
			t.Error("values of another size are taken")
		}
		if err := s.AddValues(nil, values); err == nil {
			t.Error("no plan is taken")
		}
		if err := s.AddValues(plan, nil); err == nil {
			t.Error("no values are taken")
		}
	}
	auto := prepare(t, dev, a, spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP})
	defer auto.Close()
	x := newTensor[float32](t, dev, 1, n, false)
	defer x.Close()
	s := dev.NewSequence()
	defer s.Close()
	if err := s.AddValues(auto, x); err == nil || !strings.Contains(err.Error(), "AutoP") {
		t.Errorf("with AutoP: %v", err)
	}
}
