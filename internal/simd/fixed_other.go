// Machines without assembly for fixed point.

//go:build !amd64

package simd

// Each does the first n elements and returns n; the caller does the others.

func scanRange(largest, lowest, special []int32, x []float32) int { return 0 }

func quantise16(q []int16, x []float32, unit []float64) int { return 0 }

func quantise32(q []int32, x []float32, unit []float64) int { return 0 }

func quantise48(low, high []int32, x []float32, unit []float64) int { return 0 }

func roundSums(y []float32, sums []int64, unit []float64, scale float64) (n int, fit bool) {
	return 0, true
}
