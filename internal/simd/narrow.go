// Rounding to 16-bit elements.

package simd

import "github.com/spmmrun/spmm/formats/half"

// NarrowF16 rounds src to dst: to nearest even, with infinity for what is too large, and NaN for NaN.
func NarrowF16(dst []half.F16, src []float32) {
	dst = dst[:len(src)]
	n := narrowF16(dst, src)
	half.Encode(dst[n:], src[n:])
}

// NarrowBF16 is NarrowF16 for bfloat16.
func NarrowBF16(dst []half.BF16, src []float32) {
	dst = dst[:len(src)]
	n := narrowBF16(dst, src)
	half.Encode(dst[n:], src[n:])
}
