// Package simd holds the inner loops of the kernels that run on the CPU: sums of scaled rows of a
// dense matrix, blocks of products, expansion of packed values and conversions between element types.
//
// Each has an assembly form for amd64 (AVX2 with FMA and F16C, or AVX-512), most have one for arm64 (NEON), which is
// chosen when the program starts, and all have one in Go for every other machine. The order of each sum depends on the
// arguments and on the machine's instruction set alone, never on how work is shared out.
package simd

import "github.com/spmmrun/spmm/formats/half"

// Width is the number of columns that the row functions handle at a time: len(acc) must be a
// multiple of it.
const Width = 8

// RowF32 computes one row of a sparse-dense product: acc[j] = Σ_k vals[k]·b[cols[k]·ldb+j]. Sums
// are kept in float32. len(acc) is a multiple of Width; every cols[k]·ldb+len(acc) ≤ len(b), which
// is not checked for each k.
func RowF32(acc, vals []float32, cols []uint32, b []float32, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowF32(acc, vals, cols, b, ldb)
	}
}

// RowF16 is RowF32 for binary16 elements.
func RowF16(acc []float32, vals []half.F16, cols []uint32, b []half.F16, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowF16(acc, vals, cols, b, ldb)
	}
}

// RowBF16 is RowF32 for bfloat16 elements.
func RowBF16(acc []float32, vals []half.BF16, cols []uint32, b []half.BF16, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowBF16(acc, vals, cols, b, ldb)
	}
}

// RowF64 is RowF32 for float64 elements. Sums are kept in float64.
func RowF64(acc, vals []float64, cols []uint32, b []float64, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowF64(acc, vals, cols, b, ldb)
	}
}

// hasEntries tells whether there is anything to add up to acc, and clears it if not. It panics where lengths do not
// fit.
func hasEntries[S any](acc []S, vals, cols, b int) bool {
	if cols == 0 || len(acc) == 0 {
		clear(acc)
		return false
	}
	if len(acc)%Width != 0 || vals < cols || b < len(acc) {
		panic("simd: slices of a row do not fit together")
	}
	return true
}

// Axpby computes c[i] = alpha·x[i] + beta·c[i] for i < len(x). Where beta is 0, c is not read.
func Axpby(c, x []float32, alpha, beta float32) {
	c = c[:len(x)]
	n := axpby(c, x, alpha, beta)
	for i := n; i < len(x); i++ {
		if beta == 0 {
			c[i] = alpha * x[i]
		} else {
			c[i] = alpha*x[i] + beta*c[i]
		}
	}
}
