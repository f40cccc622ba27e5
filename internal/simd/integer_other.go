// Machines without assembly for integers.

//go:build !amd64 && !arm64

package simd

func rowInt16(acc []int64, vals []int32, cols []uint32, b []int16, ldb int) {
	goRowInt(acc, vals, cols, b, ldb)
}

func rowInt32(acc []int64, vals []int32, cols []uint32, b []int32, ldb int) {
	goRowInt(acc, vals, cols, b, ldb)
}
