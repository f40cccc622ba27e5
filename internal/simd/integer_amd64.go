// The choice of assembly for integers on amd64. Sums are counted in words of 32 bits, two to each, so that
// rows of integers and of floats share their loops.

package simd

//go:noescape
func rowInt16AVX2(acc *int64, words int, vals *int32, cols *uint32, nnz int, b *int16, ldb int)

//go:noescape
func rowInt32AVX2(acc *int64, words int, vals *int32, cols *uint32, nnz int, b *int32, ldb int)

//go:noescape
func rowInt16AVX512(acc *int64, words int, vals *int32, cols *uint32, nnz int, b *int16, ldb int)

//go:noescape
func rowInt32AVX512(acc *int64, words int, vals *int32, cols *uint32, nnz int, b *int32, ldb int)

func rowInt16(acc []int64, vals []int32, cols []uint32, b []int16, ldb int) {
	switch level {
	case goOnly:
		goRowInt(acc, vals, cols, b, ldb)
	case avx2:
		rowInt16AVX2(&acc[0], 2*len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
	default:
		rowInt16AVX512(&acc[0], 2*len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
	}
}

func rowInt32(acc []int64, vals []int32, cols []uint32, b []int32, ldb int) {
	switch level {
	case goOnly:
		goRowInt(acc, vals, cols, b, ldb)
	case avx2:
		rowInt32AVX2(&acc[0], 2*len(acc), &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
	default:
		rowInt32AVX512(&acc[0], 2*len(acc), &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
	}
}
