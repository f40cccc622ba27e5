// Conversion between element types.

package formats

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Convert returns a with elements of type D: a itself if it has them already, else a matrix that shares a's RowPtr and
// ColIdx, its values rounded to nearest, ties to even. Values out of D's range become infinite.
func Convert[D Value](a Sparse) *CSR[D] {
	return Dispatch(a, convert[D, half.F16], convert[D, half.BF16], convert[D, float32], convert[D, float64])
}

func convert[D, S Value](a *CSR[S]) *CSR[D] {
	if same, ok := any(a).(*CSR[D]); ok {
		return same
	}
	out := &CSR[D]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: make([]D, len(a.Val))}
	par.Range(len(a.Val), grain, func(lo, hi int) { ConvertSlice(out.Val[lo:hi], a.Val[lo:hi]) })
	return out
}

// ConvertTo is Convert for an element type that is known at run time: F16, BF16, F32 or F64; TF32 means F32. It panics
// for any other type.
func ConvertTo(a Sparse, t dtype.Type) Sparse {
	switch t.Storage() {
	case dtype.F16:
		return Convert[half.F16](a)
	case dtype.BF16:
		return Convert[half.BF16](a)
	case dtype.F32:
		return Convert[float32](a)
	case dtype.F64:
		return Convert[float64](a)
	}
	panic(fmt.Sprintf("formats: no matrix has elements of type %v", t))
}

// ConvertSlice rounds src to dst, to nearest, ties to even. dst must be at least as long.
func ConvertSlice[D, S Value](dst []D, src []S) {
	dst = dst[:len(src)]
	if same, ok := any(dst).([]S); ok {
		copy(same, src)
		return
	}
	switch d := any(dst).(type) {
	case []float32:
		switch s := any(src).(type) {
		case []half.F16:
			half.Decode(d, s)
		case []half.BF16:
			half.Decode(d, s)
		case []float64:
			for i, x := range s {
				d[i] = float32(x)
			}
		}
	case []float64:
		for i, x := range src {
			d[i] = number.Float64(x)
		}
	case []half.F16:
		throughFloat32(d, src)
	case []half.BF16:
		throughFloat32(d, src)
	}
}

// throughFloat32 is exact up to the last rounding: 16-bit types are subsets of float32, and float64 is rounded to odd
// there.
func throughFloat32[D half.F16 | half.BF16, S Value](dst []D, src []S) {
	if s, ok := any(src).([]float32); ok {
		half.Encode(dst, s)
		return
	}
	var buf [1024]float32
	for len(src) > 0 {
		n := min(len(src), len(buf))
		if s, ok := any(src[:n]).([]float64); ok {
			for i, x := range s {
				buf[i] = roundToOdd(x)
			}
		} else {
			ConvertSlice(buf[:n], src[:n])
		}
		half.Encode(dst[:n], buf[:n])
		dst, src = dst[n:], src[n:]
	}
}

// fromFloat64 rounds x to T once.
func fromFloat64[T Value](x float64) T {
	var t T
	switch p := any(&t).(type) {
	case *half.F16:
		*p = half.F16From(roundToOdd(x))
	case *half.BF16:
		*p = half.BF16From(roundToOdd(x))
	case *float32:
		*p = float32(x)
	case *float64:
		*p = x
	}
	return t
}

// roundToOdd returns x if it is a float32, else the neighbour with an odd significand. Rounding that
// to a shorter type gives the same as rounding x.
func roundToOdd(x float64) float32 {
	f := float32(x)
	d, b := float64(f), math.Float32bits(f)
	switch {
	case d == x || x != x || b&1 == 1 || math.IsInf(d, 0):
		return f
	case math.Abs(d) > math.Abs(x):
		return math.Float32frombits(b - 1)
	}
	return math.Float32frombits(b + 1)
}
