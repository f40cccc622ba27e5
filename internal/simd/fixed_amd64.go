// The choice of assembly for fixed point on amd64. AVX-512 is used where it was faster: memory bounds the other loops.

package simd

import "unsafe"

// In the assembly, n is a positive multiple of eight, rows are at least one, and strides are in bytes.

// Eight columns (AVX2), or sixteen.

//go:noescape
func scanColumnsAVX2(largest, lowest, special *int32, x *float32, ld, rows int)

//go:noescape
func scanColumnsAVX512(largest, lowest, special *int32, x *float32, ld, rows int)

// Eight columns or 32 (AVX2), 16 or 128.

//go:noescape
func largestColumnsAVX2(largest, special *int32, x *float32, ld, rows int)

//go:noescape
func largest32ColumnsAVX2(largest, special *int32, x *float32, ld, rows int)

//go:noescape
func largestColumnsAVX512(largest, special *int32, x *float32, ld, rows int)

//go:noescape
func largest128ColumnsAVX512(largest, special *int32, x *float32, ld, rows int)

//go:noescape
func joinRangesAVX2(dst, src *uint32, n int)

//go:noescape
func quantise16AVX2(q *int16, ldq int, x *float32, ldx, rows, n int, first, second *float32)

//go:noescape
func quantise32AVX2(q *int32, ldq int, x *float32, ldx, rows, n int, first, second *float32)

//go:noescape
func quantise32AVX512(q *int32, ldq int, x *float32, ldx, rows, n int, first, second *float32)

//go:noescape
func quantise48AVX2(low, high *int32, x *float32, unit *float64, n int)

//go:noescape
func widenInt16AVX2(dst *float64, src *int16, n int)

//go:noescape
func widenInt32AVX2(dst *float64, src *int32, n int)

//go:noescape
func halveInt32AVX2(low, high *float64, src *int32, n int)

//go:noescape
func foldSumsAVX2(high, low, sums *float64, n int, scale float64)

// The first n columns.

//go:noescape
func roundSinglesAVX2(r *Rounding, n int)

//go:noescape
func roundSinglesAVX512(r *Rounding, n int)

//go:noescape
func roundPairsAVX2(r *Rounding, n int)

//go:noescape
func roundPairsAVX512(r *Rounding, n int)

// Each does the first n elements and returns n; the caller does the others.

func scanColumns(largest, lowest, special []int32, x []float32, ld, rows int) int {
	n, j := eights(len(largest)), 0
	for ; level == avx512 && j+16 <= n; j += 16 {
		scanColumnsAVX512(&largest[j], &lowest[j], &special[j], &x[j], 4*ld, rows)
	}
	for ; j < n; j += 8 {
		scanColumnsAVX2(&largest[j], &lowest[j], &special[j], &x[j], 4*ld, rows)
	}
	return n
}

func largestColumns(largest, special []int32, x []float32, ld, rows int) int {
	n := eights(len(largest))
	for j := 0; j < n; {
		do, columns := largestColumnsAVX2, 8
		switch {
		case level == avx512 && n-j >= 128:
			do, columns = largest128ColumnsAVX512, 128
		case level == avx512 && n-j >= 16:
			do, columns = largestColumnsAVX512, 16
		case n-j >= 32:
			do, columns = largest32ColumnsAVX2, 32
		}
		do(&largest[j], &special[j], &x[j], 4*ld, rows)
		j += columns
	}
	return n
}

func joinRanges(dst, src []uint32) int {
	n := eights(len(dst))
	if n > 0 {
		joinRangesAVX2(&dst[0], &src[0], n)
	}
	return n
}

func quantise16(q []int16, ldq int, x []float32, ldx, rows int, first, second []float32) int {
	n := eights(len(first))
	if n > 0 {
		quantise16AVX2(&q[0], 2*ldq, &x[0], 4*ldx, rows, n, &first[0], &second[0])
	}
	return n
}

func quantise32(q []int32, ldq int, x []float32, ldx, rows int, first, second []float32) int {
	n := eights(len(first))
	done := wide(n)
	if done > 0 {
		quantise32AVX512(&q[0], 4*ldq, &x[0], 4*ldx, rows, done, &first[0], &second[0])
	}
	if done < n {
		quantise32AVX2(&q[done], 4*ldq, &x[done], 4*ldx, rows, n-done, &first[done], &second[done])
	}
	return n
}

func quantise48(low, high []int32, x []float32, unit []float64) int {
	n := eights(len(x))
	if n > 0 {
		quantise48AVX2(&low[0], &high[0], &x[0], &unit[0], n)
	}
	return n
}

func widenInt16(dst []float64, src []int16) int {
	n := eights(len(src))
	if n > 0 {
		widenInt16AVX2(&dst[0], &src[0], n)
	}
	return n
}

func widenInt32(dst []float64, src []int32) int {
	n := eights(len(src))
	if n > 0 {
		widenInt32AVX2(&dst[0], &src[0], n)
	}
	return n
}

func halveInt32(low, high []float64, src []int32) int {
	n := eights(len(src))
	if n > 0 {
		halveInt32AVX2(&low[0], &high[0], &src[0], n)
	}
	return n
}

func foldSums(high, low, sums []float64, scale float64) int {
	n := eights(len(sums))
	if n > 0 {
		foldSumsAVX2(&high[0], &low[0], &sums[0], n, scale)
	}
	return n
}

// round does the first columns and returns how many.
func (r *Rounding) round() int {
	n := eights(len(r.Unit))
	if n == 0 {
		return 0
	}
	if uintptr(unsafe.Pointer(&r.Y[0]))%32 != 0 || r.LDY%8 != 0 {
		r.Stream = false
	}
	switch { // no variable has the function, or r would be on the heap
	case level == avx512 && r.Low != nil:
		roundPairsAVX512(r, n)
	case level == avx512:
		roundSinglesAVX512(r, n)
	case r.Low != nil:
		roundPairsAVX2(r, n)
	default:
		roundSinglesAVX2(r, n)
	}
	return n
}
