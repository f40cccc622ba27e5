// What the host does: normalisation, attention, and checking.

package main

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// normalised divides each column by its root mean square.
func normalised(x *formats.Dense[float32]) *formats.Dense[half.F16] {
	y := formats.NewDense[float32](x.Rows, x.Cols)
	for j := range x.Cols {
		sum := 0.0
		for i := range x.Rows {
			sum += float64(x.At(i, j)) * float64(x.At(i, j))
		}
		scale := float32(1 / math.Sqrt(sum/float64(x.Rows)+1e-6))
		for i := range x.Rows {
			y.Set(i, j, scale*x.At(i, j))
		}
	}
	return formats.ConvertDense[half.F16](y)
}

// attention returns, for each head and token, the mean of the values of the token and those before it, weighted by
// the softmax of query times keys. qkv holds queries, keys and values, one below the other.
func attention(qkv *formats.Dense[float32], heads int) *formats.Dense[half.F16] {
	width, n := qkv.Rows/3, qkv.Cols
	size := width / heads
	t := qkv.Layout(true, 0) // a token's vectors, contiguous
	y := formats.NewDense[float32](width, n).Layout(true, 0)
	var wg sync.WaitGroup
	for h := range heads {
		wg.Go(func() { attend(t, y, h*size, size) })
	}
	wg.Wait()
	return formats.ConvertDense[half.F16](y.Layout(false, 0))
}

// attend does the head whose elements of a token's queries, keys and values begin at `at`. Each line of t and y is a
// token.
func attend(t, y *formats.Dense[float32], at, size int) {
	width, n := y.Rows, y.Cols
	weights := make([]float64, n)
	for i := range n {
		largest := math.Inf(-1)
		for j := range i + 1 {
			w := 0.0
			for k, q := range t.Line(i)[at : at+size] {
				w += float64(q * t.Line(j)[width+at+k])
			}
			weights[j] = w / math.Sqrt(float64(size))
			largest = max(largest, weights[j])
		}
		sum := 0.0
		for j := range i + 1 {
			weights[j] = math.Exp(weights[j] - largest)
			sum += weights[j]
		}
		out := y.Line(i)[at : at+size]
		for j := range i + 1 {
			w := float32(weights[j] / sum)
			for k, v := range t.Line(j)[2*width+at:][:size] {
				out[k] += w * v
			}
		}
	}
}

// distance returns how far outputs are from W·x + before, computed in float64, over the largest of them. It looks at
// some rows and columns.
func (l *layer) distance(y *formats.Dense[float32], x *formats.Dense[half.F16],
	before *formats.Dense[float32]) float64 {
	worst, largest := 0.0, 0.0
	for i := 0; i < y.Rows; i += 1 + y.Rows/50 {
		w := l.weights
		for j := 0; j < y.Cols; j += 1 + y.Cols/8 {
			want := 0.0
			if before != nil {
				want = float64(before.At(i, j))
			}
			for e := w.RowPtr[i]; e < w.RowPtr[i+1]; e++ {
				want += float64(w.Val[e].Float32()) * float64(x.At(int(w.ColIdx[e]), j).Float32())
			}
			worst = max(worst, math.Abs(float64(y.At(i, j))-want))
			largest = max(largest, math.Abs(want))
		}
	}
	return worst / largest
}
