// Panels on machines without assembly.

//go:build !amd64 && !arm64

package simd

import "github.com/spmmrun/spmm/formats/half"

func panelF32(acc []float32, lda int, vals []float32, v int, cols []uint32, b []float32, ldb, n int) {
	goPanelF32(acc, lda, vals, v, cols, b, ldb, n)
}

func panelInt32(acc []float64, lda int, vals *[PanelRows * PanelEntries]float64, cols []uint32, b []int32, ldb, n int) {
	goPanelInt32(acc, lda, vals, cols, b, ldb, n)
}

func panelF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.F16, ldb, n int) {
	goPanelF16(acc, lda, vals, v, cols, b, ldb, n)
}

func panelBF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.BF16, ldb, n int) {
	goPanelBF16(acc, lda, vals, v, cols, b, ldb, n)
}

func widenF16(dst []float32, src []half.F16) int   { return 0 }
func widenBF16(dst []float32, src []half.BF16) int { return 0 }
func finite(x []float32) bool                      { return goFinite(x) }
