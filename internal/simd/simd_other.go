// Machines without assembly.

//go:build !amd64 && !arm64

package simd

import "github.com/spmmrun/spmm/formats/half"

// Wide reports whether vectors have 64 bytes.
func Wide() bool { return false }

func rowF32(acc, vals []float32, cols []uint32, b []float32, ldb int) {
	goRow(acc, vals, cols, b, ldb)
}

func rowF16(acc []float32, vals []half.F16, cols []uint32, b []half.F16, ldb int) {
	goRowF16(acc, vals, cols, b, ldb)
}

func rowBF16(acc []float32, vals []half.BF16, cols []uint32, b []half.BF16, ldb int) {
	goRowBF16(acc, vals, cols, b, ldb)
}

func rowF64(acc, vals []float64, cols []uint32, b []float64, ldb int) {
	goRow(acc, vals, cols, b, ldb)
}

func axpby(c, x []float32, alpha, beta float32) int { return 0 }

// Tests lower level to reach other forms of the loops; here there is one.
var level int
