// The choice of assembly on amd64.

package simd

import (
	"golang.org/x/sys/cpu"

	"github.com/spmmrun/spmm/formats/half"
)

// level is the instruction set in use: goOnly, avx2 or avx512. Tests lower it.
var level = detect()

const (
	goOnly = iota
	avx2
	avx512
)

func detect() int {
	x := cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasF16C:
		return goOnly
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512VL || !x.HasAVX512DQ:
		return avx2
	}
	return avx512
}

// Wide reports whether vectors have 64 bytes.
func Wide() bool { return level == avx512 }

// The assembly: n columns, a multiple of the vector's 8 (AVX2; of float64 4) or 16 (AVX-512; of float64 8); nnz ≥ 1;
// ldb in bytes.

//go:noescape
func rowF32AVX2(acc *float32, n int, vals *float32, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func rowF16AVX2(acc *float32, n int, vals *half.F16, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func rowBF16AVX2(acc *float32, n int, vals *half.BF16, cols *uint32, nnz int, b *half.BF16, ldb int)

//go:noescape
func rowF32AVX512(acc *float32, n int, vals *float32, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func rowF16AVX512(acc *float32, n int, vals *half.F16, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func rowBF16AVX512(acc *float32, n int, vals *half.BF16, cols *uint32, nnz int, b *half.BF16, ldb int)

//go:noescape
func rowF64AVX2(acc *float64, n int, vals *float64, cols *uint32, nnz int, b *float64, ldb int)

//go:noescape
func rowF64AVX512(acc *float64, n int, vals *float64, cols *uint32, nnz int, b *float64, ldb int)

//go:noescape
func axpbyAVX2(c, x *float32, n int, alpha, beta float32)

func rowF32(acc, vals []float32, cols []uint32, b []float32, ldb int) {
	if level == goOnly {
		goRow(acc, vals, cols, b, ldb)
		return
	}
	n := wide(len(acc))
	if n > 0 {
		rowF32AVX512(&acc[0], n, &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
	}
	if n < len(acc) {
		rowF32AVX2(&acc[n], len(acc)-n, &vals[0], &cols[0], len(cols), &b[n], 4*ldb)
	}
}

func rowF16(acc []float32, vals []half.F16, cols []uint32, b []half.F16, ldb int) {
	if level == goOnly {
		goRowF16(acc, vals, cols, b, ldb)
		return
	}
	n := wide(len(acc))
	if n > 0 {
		rowF16AVX512(&acc[0], n, &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
	}
	if n < len(acc) {
		rowF16AVX2(&acc[n], len(acc)-n, &vals[0], &cols[0], len(cols), &b[n], 2*ldb)
	}
}

func rowBF16(acc []float32, vals []half.BF16, cols []uint32, b []half.BF16, ldb int) {
	if level == goOnly {
		goRowBF16(acc, vals, cols, b, ldb)
		return
	}
	n := wide(len(acc))
	if n > 0 {
		rowBF16AVX512(&acc[0], n, &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
	}
	if n < len(acc) {
		rowBF16AVX2(&acc[n], len(acc)-n, &vals[0], &cols[0], len(cols), &b[n], 2*ldb)
	}
}

func rowF64(acc, vals []float64, cols []uint32, b []float64, ldb int) {
	switch level {
	case goOnly:
		goRow(acc, vals, cols, b, ldb)
	case avx2:
		rowF64AVX2(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 8*ldb)
	default:
		rowF64AVX512(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 8*ldb)
	}
}

// wide returns how many of n columns AVX-512 does.
func wide(n int) int {
	if level < avx512 {
		return 0
	}
	return n &^ 15
}

// axpby does a multiple of eight elements and returns how many.
func axpby(c, x []float32, alpha, beta float32) int {
	n := eights(len(x))
	if n > 0 {
		axpbyAVX2(&c[0], &x[0], n, alpha, beta)
	}
	return n
}
