package gorgonia_test

import (
	"context"
	"fmt"

	"gorgonia.org/tensor"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats/gorgonia"
)

// A sparse tensor of gorgonia's times a dense one, into a third. No element is copied.
func Example() {
	rows, cols := []int{0, 0, 1, 2}, []int{0, 2, 1, 2}
	a, err := gorgonia.FromCS[float32](tensor.CSRFromCoord(tensor.Shape{3, 3}, rows, cols, []float32{1, 2, 3, 4}))
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float32{1, 4, 2, 5, 3, 6}))
	y := tensor.New(tensor.WithShape(3, 2), tensor.Of(tensor.Float32))
	b, err := gorgonia.FromDense[float32](x)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := gorgonia.FromDense[float32](y)
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plan.Close()
	if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y)
	// Output:
	// ⎡ 7  16⎤
	// ⎢ 6  15⎥
	// ⎣12  24⎦
}

// A transpose that gorgonia leaves in place becomes a matrix in the other order.
func ExampleFromDense() {
	x := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float64{1, 2, 3, 4, 5, 6}))
	if err := x.T(); err != nil {
		fmt.Println(err)
		return
	}
	d, err := gorgonia.FromDense[float64](x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Rows, d.Cols, d.ColMajor, d.At(2, 0))
	// Output: 3 2 true 3
}
