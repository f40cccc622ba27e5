// Elements of any type on the CPU, read from and written to a kernel's arguments.

package host

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
)

// Widen reads elements of src, of type t as package include numbers them, from element `at` on.
func Widen(x []float32, src []byte, at int, t uint32) {
	switch t {
	case include.F16:
		simd.WidenF16(x, backend.View[half.F16](src)[at:at+len(x)])
	case include.BF16:
		simd.WidenBF16(x, backend.View[half.BF16](src)[at:at+len(x)])
	default:
		copy(x, backend.View[float32](src)[at:])
	}
}

// Element reads element i of m, of type t.
func Element(m []byte, i int, t uint32) float32 {
	switch t {
	case include.F16:
		return backend.View[half.F16](m)[i].Float32()
	case include.BF16:
		return backend.View[half.BF16](m)[i].Float32()
	}
	return backend.View[float32](m)[i]
}

// Narrow rounds x to elements of type t, from element `at` of dst on.
func Narrow(dst []byte, x []float32, at int, t uint32) {
	switch t {
	case include.F16:
		simd.NarrowF16(backend.View[half.F16](dst)[at:at+len(x)], x)
	case include.BF16:
		simd.NarrowBF16(backend.View[half.BF16](dst)[at:at+len(x)], x)
	default:
		copy(backend.View[float32](dst)[at:at+len(x)], x)
	}
}

// Widen64 is Widen for f64.
func Widen64(x []float64, src []byte, at int, t uint32) {
	switch t {
	case include.F16:
		formats.ConvertSlice(x, backend.View[half.F16](src)[at:at+len(x)])
	case include.BF16:
		formats.ConvertSlice(x, backend.View[half.BF16](src)[at:at+len(x)])
	case include.F32:
		formats.ConvertSlice(x, backend.View[float32](src)[at:at+len(x)])
	default:
		copy(x, backend.View[float64](src)[at:])
	}
}

// Narrow64 is Narrow for f64.
func Narrow64(dst []byte, x []float64, at int, t uint32) {
	switch t {
	case include.F16:
		formats.ConvertSlice(backend.View[half.F16](dst)[at:at+len(x)], x)
	case include.BF16:
		formats.ConvertSlice(backend.View[half.BF16](dst)[at:at+len(x)], x)
	case include.F32:
		formats.ConvertSlice(backend.View[float32](dst)[at:at+len(x)], x)
	default:
		copy(backend.View[float64](dst)[at:at+len(x)], x)
	}
}
