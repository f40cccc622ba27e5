// Rows of integers with NEON.

package simd

// The assembly: n columns, a positive multiple of 8; nnz ≥ 1; ldb in bytes.

//go:noescape
func rowInt16NEON(acc *float64, n int, vals *float64, cols *uint32, nnz int, b *int16, ldb int)

//go:noescape
func rowInt32NEON(acc *float64, n int, vals *float64, cols *uint32, nnz int, b *int32, ldb int)

func rowsInt16(r *IntRows[int16]) {
	if level == goOnly {
		oneIntRow(r, goIntRow[int16])
		return
	}
	oneIntRow(r, func(acc, vals []float64, cols []uint32, b []int16, ldb int) {
		rowInt16NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 2*ldb)
	})
}

func rowsInt32(r *IntRows[int32]) {
	if level == goOnly {
		oneIntRow(r, goIntRow[int32])
		return
	}
	oneIntRow(r, func(acc, vals []float64, cols []uint32, b []int32, ldb int) {
		rowInt32NEON(&acc[0], len(acc), &vals[0], &cols[0], len(cols), &b[0], 4*ldb)
	})
}
