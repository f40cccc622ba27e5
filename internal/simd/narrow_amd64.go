// The choice of assembly for rounding on amd64.

package simd

import "github.com/spmmrun/spmm/formats/half"

// In the assembly, n is a positive multiple of eight.

//go:noescape
func narrowF16AVX2(dst *half.F16, src *float32, n int)

//go:noescape
func narrowBF16AVX2(dst *half.BF16, src *float32, n int)

// narrowF16 and narrowBF16 do a multiple of eight elements and return how many.

func narrowF16(dst []half.F16, src []float32) int {
	n := eights(len(src))
	if n > 0 {
		narrowF16AVX2(&dst[0], &src[0], n)
	}
	return n
}

func narrowBF16(dst []half.BF16, src []float32) int {
	n := eights(len(src))
	if n > 0 {
		narrowBF16AVX2(&dst[0], &src[0], n)
	}
	return n
}
