package spmm_test

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/nm"
)

// A layer of a network is Y = X·W with the weights on the right, pruned 2:4 along its inputs. As a sparse matrix on
// the left it is Yᵀ = Wᵀ·Xᵀ; the transposes are the same numbers in memory, read column by column.
func Example_weightsOnTheRight() {
	const batch, inputs, outputs = 2, 4, 3
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8} // batch × inputs, row by row
	w := []float32{                        // inputs × outputs, row by row
		9, 1, 7,
		2, 8, 1,
		7, 1, 9,
		1, 6, 2,
	}
	y := make([]float32, batch*outputs)

	transposed := func(rows, cols int, data []float32) *formats.Dense[float32] {
		return &formats.Dense[float32]{Rows: cols, Cols: rows, LD: cols, ColMajor: true, Data: data}
	}
	a, err := nm.PruneDense(transposed(inputs, outputs, w), nm.Pattern{N: 2, M: 4, V: 1, W: 1})
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
	p, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	if _, err := spmm.Multiply(ctx, p, 1, transposed(batch, inputs, x), 0, transposed(batch, outputs, y)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(y[:outputs])
	fmt.Println(y[outputs:])
	// Output:
	// [30 40 34]
	// [94 96 98]
}
