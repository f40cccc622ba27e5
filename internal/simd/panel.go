// Panels: eight rows that share their columns, so that a row of b is fetched once for all of them.

package simd

import (
	"math"

	"github.com/spmmrun/spmm/formats/half"
)

// PanelRows is the number of rows that the panel functions handle.
const PanelRows = 8

// PanelF32 adds to eight rows of a sparse-dense product: acc[r·lda+j] += Σ_k vals[k·v+r]·b[cols[k]·ldb+j]
// for r < 8 and j < n. n is a multiple of Width; sums are kept in float32 and taken in the order of k.
// Every cols[k]·ldb+n ≤ len(b), which is not checked for each k.
func PanelF32(acc []float32, lda int, vals []float32, v int, cols []uint32, b []float32, ldb, n int) {
	if len(cols) > 0 && n > 0 {
		checkPanel(len(acc), lda, len(vals), v, len(cols), len(b), n)
		panelF32(acc, lda, vals, v, cols, b, ldb, n)
	}
}

// PanelF16 is PanelF32 for a b of binary16 elements.
func PanelF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.F16, ldb, n int) {
	if len(cols) > 0 && n > 0 {
		checkPanel(len(acc), lda, len(vals), v, len(cols), len(b), n)
		panelF16(acc, lda, vals, v, cols, b, ldb, n)
	}
}

// PanelBF16 is PanelF32 for a b of bfloat16 elements.
func PanelBF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.BF16, ldb, n int) {
	if len(cols) > 0 && n > 0 {
		checkPanel(len(acc), lda, len(vals), v, len(cols), len(b), n)
		panelBF16(acc, lda, vals, v, cols, b, ldb, n)
	}
}

// PanelEntries is the most vectors that PanelInt32 takes, and the distance of its rows of values.
const PanelEntries = 128

// PanelInt32 adds to eight rows of a product of integers with the same columns: acc[r·lda+j] += Σ_k
// vals[r·PanelEntries+k]·b[cols[k]·ldb+j] for r < 8 and j < n. n is a multiple of Width. Sums are exact: see IntRows.
// Every cols[k]·ldb+n ≤ len(b), which is not checked for each k.
func PanelInt32(acc []float64, lda int, vals *[PanelRows * PanelEntries]float64, cols []uint32, b []int32, ldb, n int) {
	if len(cols) == 0 || n == 0 {
		return
	}
	checkPanel(len(acc), lda, len(vals), PanelRows, len(cols), len(b), n)
	panelInt32(acc, lda, vals, cols, b, ldb, n)
}

func checkPanel(acc, lda, vals, v, cols, b, n int) {
	if n%Width != 0 || lda < n || acc < (PanelRows-1)*lda+n || v < PanelRows || vals < (cols-1)*v+PanelRows || b < n {
		panic("simd: slices of a panel do not fit together")
	}
}

// WidenF16 sets dst to src as float32.
func WidenF16(dst []float32, src []half.F16) {
	dst = dst[:len(src)]
	for i := widenF16(dst, src); i < len(src); i++ {
		dst[i] = f16(src[i])
	}
}

// WidenBF16 sets dst to src as float32.
func WidenBF16(dst []float32, src []half.BF16) {
	dst = dst[:len(src)]
	for i := widenBF16(dst, src); i < len(src); i++ {
		dst[i] = bf16(src[i])
	}
}

func goPanelF32(acc []float32, lda int, vals []float32, v int, cols []uint32, b []float32, ldb, n int) {
	for k, col := range cols {
		for j := 0; j < n; j += 8 {
			goPanel8(acc[j:], lda, vals[k*v:], (*[8]float32)(b[int(col)*ldb+j:]))
		}
	}
}

func goPanelInt32(acc []float64, lda int, vals *[PanelRows * PanelEntries]float64, cols []uint32, b []int32, ldb,
	n int) {
	for k, col := range cols {
		x := b[int(col)*ldb:][:n]
		for r := range PanelRows {
			v, sums := vals[r*PanelEntries+k], acc[r*lda:][:n]
			for j, y := range x {
				sums[j] += v * float64(y)
			}
		}
	}
}

func goPanelF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.F16, ldb, n int) {
	var wide [8]float32
	for k, col := range cols {
		for j := 0; j < n; j += 8 {
			for i, x := range (*[8]half.F16)(b[int(col)*ldb+j:]) {
				wide[i] = f16(x)
			}
			goPanel8(acc[j:], lda, vals[k*v:], &wide)
		}
	}
}

func goPanelBF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.BF16, ldb, n int) {
	var wide [8]float32
	for k, col := range cols {
		for j := 0; j < n; j += 8 {
			for i, x := range (*[8]half.BF16)(b[int(col)*ldb+j:]) {
				wide[i] = bf16(x)
			}
			goPanel8(acc[j:], lda, vals[k*v:], &wide)
		}
	}
}

// goPanel8 adds one vector's products with eight columns.
func goPanel8(acc []float32, lda int, vals []float32, x *[8]float32) {
	for r, v := range (*[PanelRows]float32)(vals) {
		a := (*[8]float32)(acc[r*lda:])
		a[0], a[1], a[2], a[3] = a[0]+v*x[0], a[1]+v*x[1], a[2]+v*x[2], a[3]+v*x[3]
		a[4], a[5], a[6], a[7] = a[4]+v*x[4], a[5]+v*x[5], a[6]+v*x[6], a[7]+v*x[7]
	}
}

// Finite reports whether no element of x is an infinity or a NaN.
func Finite(x []float32) bool {
	n := len(x) &^ 7
	if !finite(x[:n]) {
		return false
	}
	for _, v := range x[n:] {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}

func goFinite(x []float32) bool {
	var top uint32
	for _, v := range x {
		top = max(top, math.Float32bits(v)&0x7fffffff)
	}
	return top < 0x7f800000
}
