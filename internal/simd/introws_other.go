// Machines without assembly for rows of integers.

//go:build !amd64 && !arm64

package simd

func rowsInt16(r *IntRows[int16]) { oneIntRow(r, goIntRow[int16]) }
func rowsInt32(r *IntRows[int32]) { oneIntRow(r, goIntRow[int32]) }
