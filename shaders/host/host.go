// Package host is shared by the Go forms of kernels: the inner loops of package simd by element type, storing a row of
// sums to C, and computing sums that are not finite again.
package host

import (
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Loops are package simd's functions for elements of type T.
type Loops[T formats.Value] struct {
	Row   func(acc []float32, vals []T, cols []uint32, b []T, ldb int)
	Panel func(acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int)
	Widen func(dst []float32, src []T)
	Lines func(dst []float32, ldd int, src []T, lds, lines, n int)
	Wide  func(T) float32 // one element
}

// The loops for each element type.
var (
	F16  = Loops[half.F16]{simd.RowF16, simd.PanelF16, simd.WidenF16, simd.WidenLinesF16, half.F16.Float32}
	BF16 = Loops[half.BF16]{simd.RowBF16, simd.PanelBF16, simd.WidenBF16, simd.WidenLinesBF16, half.BF16.Float32}
	F32  = Loops[float32]{simd.RowF32, simd.PanelF32, func(dst, src []float32) { copy(dst, src) }, simd.WidenLinesF32,
		func(x float32) float32 { return x }}
)

// For returns what is for elements of type t. The arguments are usually one generic function's results for F16, BF16
// and F32.
func For[X any](t dtype.Type, f16, bf16, f32 X) X {
	switch t {
	case dtype.F16:
		return f16
	case dtype.BF16:
		return bf16
	}
	return f32
}

// Pad rounds n up to a multiple of simd.Width.
func Pad(n int) int { return (n + simd.Width - 1) / simd.Width * simd.Width }

// Out is how a kernel stores C: its arguments c and bias, and parameters of these names.
type Out struct {
	C, Bias     []byte
	Store       uint32 // see spec.Problem.StoreWord
	LDC         uint32
	Alpha, Beta float32
}

// Row writes alpha·acc + beta·C, with the epilogue, to a row of C from column col on. C is not read where beta is 0.
// tmp is scratch memory as long as acc.
func (o *Out) Row(row, col int, acc, tmp []float32) {
	at, n := row*int(o.LDC)+col, len(acc)
	switch elem, e := spec.Stored(o.Store); elem {
	case include.F16:
		store(o, e, row, col, backend.View[half.F16](o.C)[at:at+n], acc, tmp, simd.WidenF16, simd.NarrowF16)
	case include.BF16:
		store(o, e, row, col, backend.View[half.BF16](o.C)[at:at+n], acc, tmp, simd.WidenBF16, simd.NarrowBF16)
	default:
		c := backend.View[float32](o.C)[at : at+n]
		simd.Axpby(c, acc, o.Alpha, o.Beta)
		Apply(c, e, o.Bias, row, col)
	}
}

// store is Row for a C of 16-bit elements.
func store[T any](o *Out, e spec.Epilogue, row, col int, c []T, acc, tmp []float32, widen func([]float32, []T),
	narrow func([]T, []float32)) {
	if o.Beta != 0 {
		widen(tmp, c)
	}
	simd.Axpby(tmp, acc, o.Alpha, o.Beta)
	Apply(tmp, e, o.Bias, row, col)
	narrow(c, tmp)
}

// Repair replaces the sums that are not finite by those of the stored entries alone: a kernel that multiplies padding
// by an infinity of B makes NaN of it. entries calls its argument with the operands of each stored entry in the product
// for acc[i].
func Repair(acc []float32, entries func(i int, add func(x, y float32))) {
	if simd.Finite(acc) {
		return
	}
	for i, x := range acc {
		if finite(x) {
			continue
		}
		// Products with an operand that is not finite decide by themselves what the sum is, so that the order of
		// summation does not matter.
		var sum, decided float32
		entries(i, func(x, y float32) {
			if finite(x) && finite(y) {
				sum += x * y
			} else {
				decided += x * y // ±Inf, or NaN, which stays
			}
		})
		if acc[i] = sum; !finite(decided) {
			acc[i] = decided
		}
	}
}

func finite(x float32) bool { return math.Float32bits(x)&0x7f800000 != 0x7f800000 }
