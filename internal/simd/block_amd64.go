// The choice of assembly for blocks on amd64.

package simd

import "github.com/spmmrun/spmm/formats/half"

// In the assembly, strides are in bytes and nnz ≥ 1.

//go:noescape
func turned8AVX512(acc, a *float32, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func turned16AVX512(acc, a *float32, cols *uint32, nnz int, b *float32, ldb int)

// n is a positive multiple of four.
//
//go:noescape
func turn8AVX2(dst *float32, ldd int, src *float32, lds, n int)

// n is a positive multiple of eight.

//go:noescape
func linesF32AVX2(dst *float32, ldd int, src *float32, lds, lines, n int)

//go:noescape
func linesF16AVX2(dst *float32, ldd int, src *half.F16, lds, lines, n int)

//go:noescape
func linesBF16AVX2(dst *float32, ldd int, src *half.BF16, lds, lines, n int)

// inLines: a tile of AVX-512 in lines has 32 columns. Fewer have lanes for rows.
func inLines(n int) int {
	if level >= avx512 {
		return n &^ (panelTile - 1)
	}
	return n
}

func turnedF32(acc, a []float32, cols []uint32, b []float32, ldb, n int) {
	if level < avx512 {
		goTurnedF32(acc, a, cols, b, ldb, n)
		return
	}
	j := 0
	for ; j+16 <= n; j += 16 {
		turned16AVX512(&acc[VectorRows*j], &a[0], &cols[0], len(cols), &b[j], 4*ldb)
	}
	if j < n {
		turned8AVX512(&acc[VectorRows*j], &a[0], &cols[0], len(cols), &b[j], 4*ldb)
	}
}

// turns tells whether turn8 is faster than goTurn.
func turns() bool { return level > goOnly }

// turn8 transposes eight lines.
func turn8(dst []float32, ldd int, src []float32, lds, n int) {
	turn8AVX2(&dst[0], 4*ldd, &src[0], 4*lds, n)
}

func linesF32(dst []float32, ldd int, src []float32, lds, lines, n int) bool {
	if level == goOnly {
		return false
	}
	linesF32AVX2(&dst[0], 4*ldd, &src[0], 4*lds, lines, n)
	return true
}

func linesF16(dst []float32, ldd int, src []half.F16, lds, lines, n int) bool {
	if level == goOnly {
		return false
	}
	linesF16AVX2(&dst[0], 4*ldd, &src[0], 2*lds, lines, n)
	return true
}

func linesBF16(dst []float32, ldd int, src []half.BF16, lds, lines, n int) bool {
	if level == goOnly {
		return false
	}
	linesBF16AVX2(&dst[0], 4*ldd, &src[0], 2*lds, lines, n)
	return true
}
