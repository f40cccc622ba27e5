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
func widenInt16AVX2(dst *float64, src *int16, n int)

//go:noescape
func widenInt32AVX2(dst *float64, src *int32, n int)

//go:noescape
func halveInt32AVX2(low, high *float64, src *int32, n int)

//go:noescape
func foldSumsAVX2(high, low, sums *float64, n int, scale float64)

//go:noescape
func roundSumsAVX2(y *float32, sums, unit *float64, n int, scale float64)

//go:noescape
func roundPairsAVX2(y *float32, high, low *float64, scale float64, unit *float64, n int, row float64)

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

func roundSums(y []float32, sums, unit []float64, scale float64) int {
	n := eights(len(y))
	if n > 0 {
		roundSumsAVX2(&y[0], &sums[0], &unit[0], n, scale)
	}
	return n
}

func roundPairs(y []float32, high, low []float64, scale float64, unit []float64, row float64) int {
	n := eights(len(y))
	if n > 0 {
		roundPairsAVX2(&y[0], &high[0], &low[0], scale, &unit[0], n, row)
	}
	return n
}
