// Rows with NEON, which every arm64 machine has.

package simd

import "github.com/spmmrun/spmm/formats/half"

const (
	goOnly = iota
	neon
)

// level is the instruction set in use. Tests lower it.
var level = neon

// The assembly: n columns, a multiple of 8; nnz ≥ 1; ldb in bytes.

//go:noescape
func rowF32NEON(acc *float32, n int, vals *float32, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func rowF16NEON(acc *float32, n int, vals *half.F16, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func rowBF16NEON(acc *float32, n int, vals *half.BF16, cols *uint32, nnz int, b *half.BF16, ldb int)

//go:noescape
func rowF64NEON(acc *float64, n int, vals *float64, cols *uint32, nnz int, b *float64, ldb int)

func rowF64(acc, vals []float64, cols []uint32, b []float64, ldb int) {
	if level == goOnly {
		goRow(acc, vals, cols, b, ldb)
		return
	}
	rowF64NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 8*ldb)
}

// Wide reports whether vectors have 64 bytes.
func Wide() bool { return false }

func rowF32(acc, vals []float32, cols []uint32, b []float32, ldb int) {
	if level == goOnly {
		goRow(acc, vals, cols, b, ldb)
		return
	}
	rowF32NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
}

func rowF16(acc []float32, vals []half.F16, cols []uint32, b []half.F16, ldb int) {
	if level == goOnly {
		goRowF16(acc, vals, cols, b, ldb)
		return
	}
	rowF16NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
}

func rowBF16(acc []float32, vals []half.BF16, cols []uint32, b []half.BF16, ldb int) {
	if level == goOnly {
		goRowBF16(acc, vals, cols, b, ldb)
		return
	}
	rowBF16NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
}

func axpby(c, x []float32, alpha, beta float32) int { return 0 }
