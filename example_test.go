// The library as its users call it.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/mtx"
)

// A matrix from a list of entries, multiplied once.
func Example() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu") // "auto" takes the fastest device present
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	//	1 . 2
	//	. 3 .
	entries := &formats.COO[float32]{Rows: 2, Cols: 3, Row: []int32{0, 0, 1}, Col: []int32{0, 2, 1},
		Val: []float32{1, 2, 3}}
	a, err := entries.ToCSR(formats.SumDuplicates)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	b := &formats.Dense[float32]{Rows: 3, Cols: 2, LD: 2, Data: []float32{
		1, 10,
		2, 20,
		3, 30,
	}}
	c := formats.NewDense[float32](2, 2)
	if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Data)
	// Output: [7 70 6 60]
}

// A matrix from a file.
func ExamplePrepare() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	file := strings.NewReader("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 2\n2 1 -1\n3 2 -1\n")
	a, err := mtx.Read(file, mtx.Options{})
	if err != nil {
		log.Fatal(err)
	}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: "csr", Precision: dtype.F16})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	info := plan.Info()
	fmt.Printf("%d×%d, %d entries as %s in %v, fill %g\n", info.Rows, info.Cols, info.NNZ, info.Format, info.Precision,
		info.Stats.Fill)
	// Output: 3×3, 5 entries as csr in f16, fill 1
}

// Two multiplications whose data stay on the device: x ← A·(A·x), in binary16.
func ExamplePlan_Run() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	//	. 2
	//	3 .
	a := &formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{1, 0}, Val: []float32{2, 3}}
	plan, err := spmm.Prepare(ctx, dev, formats.Convert[half.F16](a), spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()

	x, y, err := spmm.TensorsFor[half.F16, half.F16](plan, 3)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Close()
	defer y.Close()
	data := formats.ConvertDense[half.F16](&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 3, Data: []float32{1, 2, 3, 4, 5, 6}})
	if err := x.Upload(ctx, data); err != nil {
		log.Fatal(err)
	}
	if _, err := plan.Run(ctx, 1, x, 0, y); err != nil {
		log.Fatal(err)
	}
	if _, err := plan.Run(ctx, 1, y, 0, x); err != nil {
		log.Fatal(err)
	}
	if err := x.Download(ctx, data); err != nil {
		log.Fatal(err)
	}
	fmt.Println(formats.ConvertDense[float32](data).Data)
	// Output: [6 12 18 24 30 36]
}

// A layer of a network: a sparse weight times features, a bias for each row, ReLU, in one pass.
func ExampleEpilogue() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	//	2  .
	//	. -1
	weight := &formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 1},
		Val: []float32{2, -1}}
	plan, err := spmm.Prepare(ctx, dev, weight, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	bias, err := spmm.NewTensor[float32](dev, 2, 1, false)
	if err != nil {
		log.Fatal(err)
	}
	defer bias.Close()
	if err := bias.Upload(ctx, &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{-3, 5}}); err != nil {
		log.Fatal(err)
	}

	x := &formats.Dense[float32]{Rows: 2, Cols: 3, LD: 3, Data: []float32{1, 2, 3, 4, 5, 6}}
	y := formats.NewDense[float32](2, 3)
	if _, err := spmm.Multiply(ctx, plan, 1, x, 0, y, spmm.Epilogue{RowBias: bias, Activation: spmm.ReLU}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y.Data)
	// Output: [0 1 3 1 0 0]
}

// What there is to run on; the output depends on the machine.
func ExampleDevices() {
	present, absent := spmm.Devices(context.Background())
	for _, d := range present {
		fmt.Println(d)
	}
	for _, a := range absent {
		fmt.Println(a.Backend, "is not here:", a.Err)
	}
}

// A graph's adjacency matrix, to the sixth power, times a vector: recorded once, run twice, with one wait each.
func ExampleDevice_NewSequence() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	// A path 0 – 1 – 2.
	a := &formats.CSR[float32]{Rows: 3, Cols: 3, RowPtr: []int64{0, 1, 3, 4}, ColIdx: []int32{1, 0, 2, 1},
		Val: []float32{1, 1, 1, 1}}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, y, err := spmm.TensorsFor[float32, float32](plan, 1)
	if err != nil {
		log.Fatal(err)
	}
	walks := formats.NewDense[float32](3, 1)
	walks.Set(0, 0, 1)
	if err := x.Upload(ctx, walks); err != nil {
		log.Fatal(err)
	}

	s := dev.NewSequence()
	defer s.Close()
	for range 3 { // y = A·x, x = A·y
		if err := errors.Join(s.Add(plan, 1, x, 0, y), s.Add(plan, 1, y, 0, x)); err != nil {
			log.Fatal(err)
		}
	}
	for range 2 { // the second run goes on where the first has ended
		if _, err := s.Run(ctx); err != nil {
			log.Fatal(err)
		}
		if err := x.Download(ctx, walks); err != nil {
			log.Fatal(err)
		}
		fmt.Println(walks.Data)
	}
	// Output:
	// [4 0 4]
	// [32 0 32]
}

// The device multiplies while the host prepares the next matrix.
func ExamplePlan_Start() {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	first := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 2}, ColIdx: []int32{0, 1}, Val: []float32{1, 1}}
	second := &formats.CSR[float32]{Rows: 2, Cols: 1, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 0},
		Val: []float32{2, 3}}
	plan, err := spmm.Prepare(ctx, dev, first, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, y, err := spmm.TensorsFor[float32, float32](plan, 1)
	if err != nil {
		log.Fatal(err)
	}
	b := &formats.Dense[float32]{Rows: 2, Cols: 1, LD: 1, Data: []float32{10, 20}}
	if err := x.Upload(ctx, b); err != nil {
		log.Fatal(err)
	}

	pending, err := plan.Start(ctx, 1, x, 0, y) // y = 30
	if err != nil {
		log.Fatal(err)
	}
	next, err := spmm.Prepare(ctx, dev, second, spmm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := next.Run(ctx, 1, y, 0, x); err != nil { // after what was started
		log.Fatal(err)
	}
	if _, err := pending.Wait(ctx); err != nil { // which is done, then
		log.Fatal(err)
	}
	if err := x.Download(ctx, b); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Data)
	// Output: [60 90]
}
