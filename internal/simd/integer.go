// Rows of products of integers.

package simd

// RowInt16 computes one row of a sparse-dense product of integers: acc[j] = Σ_k vals[k]·b[cols[k]·ldb+j].
// Sums are kept in 64 bits and wrap. len(acc) is a multiple of Width; every cols[k]·ldb+len(acc) ≤ len(b),
// which is not checked for each k.
func RowInt16(acc []int64, vals []int32, cols []uint32, b []int16, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowInt16(acc, vals, cols, b, ldb)
	}
}

// RowInt32 is RowInt16 for a b of 32-bit integers.
func RowInt32(acc []int64, vals []int32, cols []uint32, b []int32, ldb int) {
	if hasEntries(acc, len(vals), len(cols), len(b)) {
		rowInt32(acc, vals, cols, b, ldb)
	}
}

// goRowInt keeps the sums of four columns in registers over all of the row's entries.
func goRowInt[T int16 | int32](acc []int64, vals []int32, cols []uint32, b []T, ldb int) {
	for j := 0; j < len(acc); j += 4 {
		var s0, s1, s2, s3 int64
		for k, col := range cols {
			v, x := int64(vals[k]), b[int(col)*ldb+j:][:4]
			s0, s1, s2, s3 = s0+v*int64(x[0]), s1+v*int64(x[1]), s2+v*int64(x[2]), s3+v*int64(x[3])
		}
		*(*[4]int64)(acc[j:]) = [4]int64{s0, s1, s2, s3}
	}
}
