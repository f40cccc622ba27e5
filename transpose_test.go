// Multiplying with the transpose: the same bits as with a matrix that was transposed before.

package spmm_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/half"
)

func TestTranspose(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, o := range []spmm.Options{
		{}, {Format: "csr"}, {Format: "cvse"}, {Format: "hrpb", Precision: dtype.F16},
		{Format: "tiledcsr", Precision: dtype.BF16},
		{Mode: spmm.Reproducible}, {Mode: spmm.Reproducible, P: spmm.AutoP}, {Tune: true},
	} {
		testTranspose[float32](t, dev, r, o)
		testTranspose[half.F16](t, dev, r, o)
	}
}

func testTranspose[T formats.Value](t *testing.T, dev *spmm.Device, r *rand.Rand, o spmm.Options) {
	t.Helper()
	for _, size := range [][2]int{{70, 45}, {1, 33}, {40, 1}, {0, 5}, {5, 0}} {
		a := sparse[T](r, size[0], size[1], 4)
		b := dense[T](r, a.Rows, 9, 3, false)
		want := timesB(t, dev, a.Transpose(), o, b)
		if a.Rows > 1 && !want.Equal(expected(1, a.Transpose(), b, 0, formats.NewDense[float32](a.Cols, 9))) {
			t.Fatalf("%+v: wrong", o)
		}
		packed, err := cvse.Encode(a, cvse.Options{V: 8})
		if err != nil {
			t.Fatal(err)
		}
		at := a.Transpose()
		o.Transpose = true
		for _, m := range []formats.Encoded{a, packed, &formats.CSC[T]{Rows: a.Rows, Cols: a.Cols, ColPtr: at.RowPtr,
			RowIdx: at.ColIdx, Val: at.Val}} {
			if got := timesB(t, dev, m, o, b); !got.Equal(want) {
				t.Errorf("%+v: the transpose of %d×%d in format %s multiplies differently", o, a.Rows, a.Cols, m.Format())
			}
		}
		o.Transpose = false
	}
}

// timesB returns A·B for a prepared A.
func timesB[T formats.Value](t *testing.T, dev *spmm.Device, a formats.Encoded, o spmm.Options,
	b *formats.Dense[T]) *formats.Dense[float32] {
	t.Helper()
	p, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	defer p.Close()
	c := formats.NewDense[float32](p.Info().Rows, b.Cols)
	if _, err := spmm.Multiply(ctx, p, 1, b, 0, c); err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return c
}

// Info, Encode and Compare speak of the transpose. By columns without Transpose is the matrix itself.
func TestTransposeIsTold(t *testing.T) {
	dev := openCPU(t)
	a := sparse[float32](rand.New(rand.NewPCG(3, 4)), 30, 50, 5)
	at := a.Transpose()
	o := spmm.Options{Format: "cvse", Transpose: true}
	p := prepare(t, dev, a, o)
	defer p.Close()
	if i := p.Info(); i.Rows != 50 || i.Cols != 30 || i.NNZ != a.NNZ() {
		t.Errorf("the plan is of %d×%d with %d entries", i.Rows, i.Cols, i.NNZ)
	}
	e, err := spmm.Encode(ctx, dev, a, o)
	if err != nil || !e.Sparse().(*formats.CSR[float32]).Equal(at) {
		t.Errorf("Encode returns another matrix (%v)", err)
	}
	was, err := spmm.Compare(ctx, dev, at, spmm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	is, err := spmm.Compare(ctx, dev, a, spmm.Options{Transpose: true})
	if err != nil || len(is) != len(was) {
		t.Fatalf("%d packings (%v), want %d", len(is), err, len(was))
	}
	for i := range is {
		if is[i].Stats != was[i].Stats {
			t.Errorf("%s: %+v, of the transpose %+v", is[i].Format, is[i].Stats, was[i].Stats)
		}
	}
	c := &formats.CSC[float32]{Rows: 30, Cols: 50, ColPtr: at.RowPtr, RowIdx: at.ColIdx, Val: at.Val}
	b := dense[float32](rand.New(rand.NewPCG(5, 6)), 50, 7, 0, false)
	if !timesB(t, dev, c, spmm.Options{}, b).Equal(timesB(t, dev, a, spmm.Options{}, b)) {
		t.Error("by columns it is multiplied differently")
	}
}

// A forward and a backward pass of a layer with sparse weights, y = A·x and the gradient Aᵀ·g, from one matrix.
func ExampleOptions_transpose() {
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	//	1 . 2
	//	. 3 .
	a := &formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 2, 1},
		Val: []float32{1, 2, 3}}
	for _, pass := range []spmm.Options{{}, {Transpose: true}} {
		plan, err := spmm.Prepare(ctx, dev, a, pass)
		if err != nil {
			log.Fatal(err)
		}
		info := plan.Info()
		x := formats.NewDense[float32](info.Cols, 1)
		for i := range x.Data {
			x.Data[i] = float32(i + 1)
		}
		y := formats.NewDense[float32](info.Rows, 1)
		if _, err := spmm.Multiply(ctx, plan, 1, x, 0, y); err != nil {
			log.Fatal(err)
		}
		fmt.Println(y.Data)
		plan.Close()
	}
	// Output:
	// [7 6]
	// [1 6 2]
}
