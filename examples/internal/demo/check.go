// Arithmetic in float64, to check with.

package demo

import (
	"math"

	"github.com/spmmrun/spmm/formats"
)

// Wide returns numbers in float64.
func Wide[T formats.Value](x []T) []float64 {
	y := make([]float64, len(x))
	formats.ConvertSlice(y, x)
	return y
}

// Product returns a·x for an x of `cols` columns, row by row.
func Product[T formats.Value](a *formats.CSR[T], x []float64, cols int) []float64 {
	val := Wide(a.Val)
	y := make([]float64, a.Rows*cols)
	for i := range a.Rows {
		row := y[i*cols:][:cols]
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			for j, b := range x[int(a.ColIdx[e])*cols:][:cols] {
				row[j] += val[e] * b
			}
		}
	}
	return y
}

// Distance returns how far numbers are from what they should be: the largest distance over the largest number.
func Distance(got []float32, want []float64) float64 {
	var distance, largest float64
	for i, x := range want {
		distance = max(distance, math.Abs(float64(got[i])-x))
		largest = max(largest, math.Abs(x))
	}
	return distance / largest
}
