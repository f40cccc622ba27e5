// Rows of integers with NEON.

package simd

// The assembly: n columns, a positive multiple of 8; nnz ≥ 1; ldb in bytes.

//go:noescape
func rowInt16NEON(acc *int64, n int, vals *int32, cols *uint32, nnz int, b *int16, ldb int)

//go:noescape
func rowInt32NEON(acc *int64, n int, vals *int32, cols *uint32, nnz int, b *int32, ldb int)

func rowInt16(acc []int64, vals []int32, cols []uint32, b []int16, ldb int) {
	if level == goOnly {
		goRowInt(acc, vals, cols, b, ldb)
		return
	}
	rowInt16NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
}

func rowInt32(acc []int64, vals []int32, cols []uint32, b []int32, ldb int) {
	if level == goOnly {
		goRowInt(acc, vals, cols, b, ldb)
		return
	}
	rowInt32NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
}
