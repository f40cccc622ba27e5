// Machines without assembly for fixed point.

//go:build !amd64

package simd

// Each does the first n elements and returns n; the caller does the others.

func scanColumns(largest, lowest, special []int32, x []float32, ld, rows int) int { return 0 }

func largestColumns(largest, special []int32, x []float32, ld, rows int) int { return 0 }

func joinRanges(dst, src []uint32) int { return 0 }

func quantise16(q []int16, ldq int, x []float32, ldx, rows int, first, second []float32) int {
	return 0
}

func quantise32(q []int32, ldq int, x []float32, ldx, rows int, first, second []float32) int {
	return 0
}

func quantise48(low, high []int32, x []float32, unit []float64) int { return 0 }

func widenInt16(dst []float64, src []int16) int { return 0 }

func widenInt32(dst []float64, src []int32) int { return 0 }

func halveInt32(low, high []float64, src []int32) int { return 0 }

func foldSums(high, low, sums []float64, scale float64) int { return 0 }

func (r *Rounding) round() int { return 0 }
