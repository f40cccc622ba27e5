// Panels with NEON, which every arm64 machine has.

package simd

import (
	"unsafe"

	"github.com/spmmrun/spmm/formats/half"
)

// The assembly does a tile of 8 columns. Strides are in bytes; nnz ≥ 1.

//go:noescape
func panelF32NEON(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func panelF16NEON(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func panelBF16NEON(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.BF16, ldb int)

// n is a positive multiple of eight.

//go:noescape
func widenF16NEON(dst *float32, src *half.F16, n int)

//go:noescape
func widenBF16NEON(dst *float32, src *half.BF16, n int)

func panelF32(acc []float32, lda int, vals []float32, v int, cols []uint32, b []float32, ldb, n int) {
	if level == goOnly {
		goPanelF32(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelF32NEON, acc, lda, vals, v, cols, b, ldb, n)
}

// panelInt32 has the sums of each row from rowInt32NEON.
func panelInt32(acc []float64, lda int, vals *[PanelRows * PanelEntries]float64, cols []uint32, b []int32, ldb, n int) {
	if level == goOnly {
		goPanelInt32(acc, lda, vals, cols, b, ldb, n)
		return
	}
	var sums [64]float64
	for j := 0; j < n; j += len(sums) {
		w := min(len(sums), n-j)
		for r := range PanelRows {
			rowInt32NEON(&sums[0], w, &vals[r*PanelEntries], &cols[0], len(cols), &b[j], 4*ldb)
			for i, x := range sums[:w] {
				acc[r*lda+j+i] += x
			}
		}
	}
}

func panelF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.F16, ldb, n int) {
	if level == goOnly {
		goPanelF16(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelF16NEON, acc, lda, vals, v, cols, b, ldb, n)
}

func panelBF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.BF16, ldb, n int) {
	if level == goOnly {
		goPanelBF16(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelBF16NEON, acc, lda, vals, v, cols, b, ldb, n)
}

// tile is one of the functions above.
type tile[T any] func(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *T, ldb int)

func panel[T any](f tile[T], acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int) {
	for j := 0; j < n; j += Width {
		f(&acc[j], 4*lda, &vals[0], 4*v, &cols[0], len(cols), &b[j], ldb*int(unsafe.Sizeof(b[0])))
	}
}

// widenF16 and widenBF16 do a multiple of eight elements and return how many.

func widenF16(dst []float32, src []half.F16) int {
	n := eights(len(src))
	if n > 0 {
		widenF16NEON(&dst[0], &src[0], n)
	}
	return n
}

func widenBF16(dst []float32, src []half.BF16) int {
	n := eights(len(src))
	if n > 0 {
		widenBF16NEON(&dst[0], &src[0], n)
	}
	return n
}

func finite(x []float32) bool { return goFinite(x) }
