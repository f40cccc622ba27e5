// Conversion between element types.

package formats

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Convert returns a with elements of type D, rounded to nearest, ties to even; what is out of D's
// range becomes infinite. The result shares a's RowPtr and ColIdx.
func Convert[D, S Value](a *CSR[S]) *CSR[D] {
	out := &CSR[D]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx}
	if same, ok := any(a.Val).([]D); ok {
		out.Val = same
		return out
	}
	out.Val = make([]D, len(a.Val))
	par.Range(len(a.Val), grain, func(lo, hi int) { ConvertSlice(out.Val[lo:hi], a.Val[lo:hi]) })
	return out
}

// ConvertTo returns s with elements stored as t (F16, BF16 or F32; TF32 means F32): s itself if they
// are already, else as Convert does. It panics if t stores no matrix or s is not a *CSR.
func ConvertTo(s Sparse, t dtype.Type) Sparse {
	t = t.Storage()
	if s.Type() == t {
		return s
	}
	switch a := s.(type) {
	case *CSR[float32]:
		return convertTo(a, t)
	case *CSR[half.F16]:
		return convertTo(a, t)
	case *CSR[half.BF16]:
		return convertTo(a, t)
	}
	panic(fmt.Sprintf("formats: ConvertTo of a %T", s))
}

func convertTo[S Value](a *CSR[S], t dtype.Type) Sparse {
	switch t {
	case dtype.F16:
		return Convert[half.F16](a)
	case dtype.BF16:
		return Convert[half.BF16](a)
	case dtype.F32:
		return Convert[float32](a)
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
		}
	case []half.F16:
		throughFloat32(d, src)
	case []half.BF16:
		throughFloat32(d, src)
	}
}

// throughFloat32 is exact up to the last rounding: 16-bit types are subsets of float32.
func throughFloat32[D half.F16 | half.BF16, S Value](dst []D, src []S) {
	if s, ok := any(src).([]float32); ok {
		half.Encode(dst, s)
		return
	}
	var buf [1024]float32
	for len(src) > 0 {
		n := min(len(src), len(buf))
		ConvertSlice(buf[:n], src[:n])
		half.Encode(dst[:n], buf[:n])
		dst, src = dst[n:], src[n:]
	}
}

// toFloat32 is exact.
func toFloat32[T Value](v T) float32 {
	switch v := any(v).(type) {
	case half.F16:
		return v.Float32()
	case half.BF16:
		return v.Float32()
	case float32:
		return v
	}
	return 0
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
