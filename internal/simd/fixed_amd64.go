// The choice of assembly for fixed point on amd64. AVX-512 gains nothing: memory bounds these loops.

package simd

// In the assembly, n is a positive multiple of eight.

//go:noescape
func scanRangeAVX2(largest, lowest, special *int32, x *float32, n int)

//go:noescape
func quantise16AVX2(q *int16, x *float32, unit *float64, n int)

//go:noescape
func quantise32AVX2(q *int32, x *float32, unit *float64, n int)

//go:noescape
func quantise48AVX2(low, high *int32, x *float32, unit *float64, n int)

//go:noescape
func roundSumsAVX2(y *float32, sums *int64, unit *float64, n int, scale float64) (tooLarge int64)

// Each does the first n elements and returns n; the caller does the others.

func scanRange(largest, lowest, special []int32, x []float32) int {
	n := eights(len(x))
	if n > 0 {
		scanRangeAVX2(&largest[0], &lowest[0], &special[0], &x[0], n)
	}
	return n
}

func quantise16(q []int16, x []float32, unit []float64) int {
	n := eights(len(x))
	if n > 0 {
		quantise16AVX2(&q[0], &x[0], &unit[0], n)
	}
	return n
}

func quantise32(q []int32, x []float32, unit []float64) int {
	n := eights(len(x))
	if n > 0 {
		quantise32AVX2(&q[0], &x[0], &unit[0], n)
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

func roundSums(y []float32, sums []int64, unit []float64, scale float64) (n int, fit bool) {
	n = eights(len(sums))
	if n == 0 {
		return 0, true
	}
	return n, roundSumsAVX2(&y[0], &sums[0], &unit[0], n, scale) == 0
}
