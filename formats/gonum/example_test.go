package gonum_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats/gonum"
)

// A sparse matrix of gonum's times a dense one whose elements are not copied.
func Example() {
	a, loss, err := gonum.SparseFromMat[float32](mat.NewTridiag(3, []float64{-1, -1}, []float64{2, 2, 2},
		[]float64{-1, -1}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("A:", loss)
	b := blas32.General{Rows: 3, Cols: 2, Stride: 2, Data: []float32{1, 4, 2, 5, 3, 6}}
	c := blas32.General{Rows: 3, Cols: 2, Stride: 2, Data: make([]float32, 6)}

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
	if _, err := spmm.Multiply(ctx, plan, 1, gonum.FromGeneral(b), 0, gonum.FromGeneral(c)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("C:", c.Data)
	// Output:
	// A: 7 values: all exact
	// C: [0 3 0 0 4 7]
}

func ExampleFromMat() {
	m := mat.NewDense(2, 2, []float64{1, 0.1, 0.25, 1e39})
	d, loss, err := gonum.FromMat[float32](m.T())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.At(0, 1), d.At(1, 1), d.ColMajor)
	fmt.Println(loss)
	// Output:
	// 0.25 +Inf true
	// 4 values: 1 rounded, 1 became infinite (relative error up to 1.5e-08)
}

func ExampleSparseFromMat() {
	m := mat.NewDiagDense(3, []float64{4, 0, -2})
	a, loss, err := gonum.SparseFromMat[float32](m)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.RowPtr, a.ColIdx, a.Val)
	fmt.Println(loss)
	// Output:
	// [0 1 1 2] [0 2] [4 -2]
	// 2 values: all exact
}

// A sparse matrix in gonum's arithmetic: its product with its transpose.
func ExampleView() {
	a, _, err := gonum.SparseFromMat[float32](mat.NewDense(2, 3, []float64{1, 0, 2, 0, 3, 0}))
	if err != nil {
		fmt.Println(err)
		return
	}
	v := gonum.View(a)
	var p mat.Dense
	p.Mul(v, v.T())
	fmt.Println(mat.Formatted(&p))
	// Output:
	// ⎡5  0⎤
	// ⎣0  9⎦
}
