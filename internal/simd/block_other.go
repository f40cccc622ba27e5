// Blocks on machines without assembly for them.

//go:build !amd64

package simd

import "github.com/spmmrun/spmm/formats/half"

func inLines(n int) int { return n }

func turnedF32(acc, a []float32, cols []uint32, b []float32, ldb, n int) {
	goTurnedF32(acc, a, cols, b, ldb, n)
}

func turns() bool { return false }

func turn8(dst []float32, ldd int, src []float32, lds, n int) { goTurn(dst, ldd, src, lds, 8, n) }

func linesF32(dst []float32, ldd int, src []float32, lds, lines, n int) bool    { return false }
func linesF16(dst []float32, ldd int, src []half.F16, lds, lines, n int) bool   { return false }
func linesBF16(dst []float32, ldd int, src []half.BF16, lds, lines, n int) bool { return false }
