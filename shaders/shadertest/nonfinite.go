// What structural zeros must not do.

package shadertest

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/spec"
)

// NonFinite multiplies by a B with infinities and NaNs: what a row does not store does not touch B,
// whatever B holds there; what it stores does, zeros included. And a beta that is NaN is not 0: all of C is NaN then.
func NonFinite(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, out dtype.Type) {
	t.Helper()
	switch v.In.Storage() {
	case dtype.F16:
		nonFinite[half.F16](t, dev, k, v, out)
	case dtype.BF16:
		nonFinite[half.BF16](t, dev, k, v, out)
	case dtype.F64:
		nonFinite[float64](t, dev, k, v, out)
	default:
		nonFinite[float32](t, dev, k, v, out)
	}
}

func nonFinite[T formats.Value](t *testing.T, dev backend.Device, kernel *spec.Format, v *spec.Variant, out dtype.Type) {
	t.Helper()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0: 1, 1: inf, 2: -inf, 3: nan, 4: 2} // B's rows, in the columns that are special
	rows := []struct {
		cols []int32
		vals []float32
		want float32 // in special columns; the others are the sum of values
	}{
		{[]int32{0, 4}, []float32{3, -1}, 1},
		{[]int32{0, 1}, []float32{3, 2}, inf},
		{[]int32{0, 1}, []float32{3, -2}, -inf},
		{[]int32{1, 2}, []float32{1, 1}, nan},
		{[]int32{1, 2}, []float32{1, -1}, inf},
		{[]int32{0, 1}, []float32{3, 0}, nan}, // a stored zero is an entry
		{[]int32{2, 4}, []float32{2, -5}, -inf},
		{[]int32{3}, []float32{1}, nan},
		{nil, nil, 0},
		{[]int32{4}, []float32{1}, 2},
	}
	const n, ld = 37, 40
	b := make([]T, len(special)*ld)
	for k, x := range special {
		for j := range ld {
			b[k*ld+j] = From[T](1.0)
			if j%3 == 0 {
				b[k*ld+j] = From[T](x)
			}
			if j >= n {
				b[k*ld+j] = From[T](nan)
			}
		}
	}
	a := &formats.CSR[T]{Rows: len(rows), Cols: len(special), RowPtr: []int64{0}}
	for _, r := range rows {
		a.ColIdx = append(a.ColIdx, r.cols...)
		for _, x := range r.vals {
			a.Val = append(a.Val, From[T](x))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	c := make([]byte, len(rows)*n*out.Size())
	Multiply(t, dev, kernel, v, a, backend.Bytes(b), nil, c,
		spec.Problem{M: len(rows), K: len(special), N: n, LDB: ld, LDC: n, Out: out, Alpha: 1})
	for i, r := range rows {
		var sum float32
		for _, x := range r.vals {
			sum += x
		}
		for j := range n {
			want := sum
			if j%3 == 0 {
				want = r.want
			}
			if got := element(c, out, i*n+j); got != want && (got == got || want == want) {
				t.Fatalf("C[%d,%d] is %v, want %v", i, j, got, want)
			}
		}
	}

	clear(c)
	Multiply(t, dev, kernel, v, a, backend.Bytes(b), nil, c,
		spec.Problem{M: len(rows), K: len(special), N: n, LDB: ld, LDC: n, Out: out, Alpha: 1, Beta: float64(nan)})
	for i := range len(rows) * n {
		if got := element(c, out, i); got == got {
			t.Fatalf("with a beta of NaN C[%d,%d] is %v", i/n, i%n, got)
		}
	}
}

// element returns element i of a matrix of type t.
func element(c []byte, t dtype.Type, i int) float32 {
	switch t {
	case dtype.F16:
		return backend.View[half.F16](c)[i].Float32()
	case dtype.BF16:
		return backend.View[half.BF16](c)[i].Float32()
	case dtype.F64:
		return float32(backend.View[float64](c)[i])
	}
	return backend.View[float32](c)[i]
}
