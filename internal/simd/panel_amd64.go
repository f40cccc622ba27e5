// The choice of assembly for panels on amd64.

package simd

import (
	"unsafe"

	"github.com/spmmrun/spmm/formats/half"
)

// The assembly does one tile of columns: 8 (AVX2) or 32 (AVX-512), and fourF32AVX2 16 of four rows. Strides are in
// bytes; nnz ≥ 1.

//go:noescape
func panelF32AVX2(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func panelF16AVX2(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func panelBF16AVX2(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.BF16, ldb int)

//go:noescape
func fourF32AVX2(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func panelF32AVX512(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *float32, ldb int)

//go:noescape
func panelF16AVX512(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.F16, ldb int)

//go:noescape
func panelBF16AVX512(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *half.BF16, ldb int)

// Those for integers do 4 columns (AVX2), 8 or 16 (AVX-512); v is 8, the bytes of a value.

//go:noescape
func panelInt32AVX2(acc *float64, lda int, vals *float64, v int, cols *uint32, nnz int, b *int32, ldb int)

//go:noescape
func panel8Int32AVX512(acc *float64, lda int, vals *float64, v int, cols *uint32, nnz int, b *int32, ldb int)

//go:noescape
func panel16Int32AVX512(acc *float64, lda int, vals *float64, v int, cols *uint32, nnz int, b *int32, ldb int)

// n is a positive multiple of eight.

//go:noescape
func widenF16AVX2(dst *float32, src *half.F16, n int)

//go:noescape
func widenBF16AVX2(dst *float32, src *half.BF16, n int)

// panelTile is the number of columns of an AVX-512 tile.
const panelTile = 32

func panelF32(acc []float32, lda int, vals []float32, v int, cols []uint32, b []float32, ldb, n int) {
	if level == goOnly {
		goPanelF32(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelF32AVX2, fourF32AVX2, panelF32AVX512, acc, lda, vals, v, cols, b, ldb, n)
}

func panelF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.F16, ldb, n int) {
	if level == goOnly {
		goPanelF16(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelF16AVX2, nil, panelF16AVX512, acc, lda, vals, v, cols, b, ldb, n)
}

func panelBF16(acc []float32, lda int, vals []float32, v int, cols []uint32, b []half.BF16, ldb, n int) {
	if level == goOnly {
		goPanelBF16(acc, lda, vals, v, cols, b, ldb, n)
		return
	}
	panel(panelBF16AVX2, nil, panelBF16AVX512, acc, lda, vals, v, cols, b, ldb, n)
}

func panelInt32(acc []float64, lda int, vals *[PanelRows * PanelEntries]float64, cols []uint32, b []int32, ldb, n int) {
	if level == goOnly {
		goPanelInt32(acc, lda, vals, cols, b, ldb, n)
		return
	}
	for j := 0; j < n; {
		do, columns := panelInt32AVX2, 4
		switch {
		case level == avx512 && n-j >= 16:
			do, columns = panel16Int32AVX512, 16
		case level == avx512:
			do, columns = panel8Int32AVX512, 8
		}
		do(&acc[j], 8*lda, &vals[0], 8, &cols[0], len(cols), &b[j], 4*ldb)
		j += columns
	}
}

// tile is one of the functions for float32's sums.
type tile[T any] func(acc *float32, lda int, vals *float32, v int, cols *uint32, nnz int, b *T, ldb int)

func panel[T any](narrow, four, wide tile[T], acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb,
	n int) {
	stride, j := ldb*int(unsafe.Sizeof(b[0])), 0
	for ; level >= avx512 && n-j >= panelTile; j += panelTile {
		wide(&acc[j], 4*lda, &vals[0], 4*v, &cols[0], len(cols), &b[j], stride)
	}
	for ; four != nil && level == avx2 && n-j >= 2*Width; j += 2 * Width {
		four(&acc[j], 4*lda, &vals[0], 4*v, &cols[0], len(cols), &b[j], stride)
		four(&acc[4*lda+j], 4*lda, &vals[4], 4*v, &cols[0], len(cols), &b[j], stride)
	}
	for ; j < n; j += Width {
		narrow(&acc[j], 4*lda, &vals[0], 4*v, &cols[0], len(cols), &b[j], stride)
	}
}

// widenF16 and widenBF16 do a multiple of eight elements and return how many.

func widenF16(dst []float32, src []half.F16) int {
	n := eights(len(src))
	if n > 0 {
		widenF16AVX2(&dst[0], &src[0], n)
	}
	return n
}

func widenBF16(dst []float32, src []half.BF16) int {
	n := eights(len(src))
	if n > 0 {
		widenBF16AVX2(&dst[0], &src[0], n)
	}
	return n
}

//go:noescape
func finiteAVX2(x *float32, n int) bool

// finite takes a multiple of eight elements.
func finite(x []float32) bool {
	if level == goOnly || len(x) == 0 {
		return goFinite(x)
	}
	return finiteAVX2(&x[0], len(x))
}
