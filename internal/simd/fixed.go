// Between floating and fixed point: what reproducible mode does to each element of B and of C.

package simd

import (
	"math"
	"math/bits"
)

// NoLowest is the value of ScanRange's lowest where no finite element differs from zero.
const NoLowest = math.MaxInt32

// LowestBias is added by ScanRange to the exponent of an element's lowest bit that is set.
const LowestBias = 149 + 128

// ScanRange takes one row x of a matrix into account in what is known of its columns. For element x[j] of column j,
//
//	largest[j]  becomes the largest magnitude of a finite element, as the bits of a float32
//	lowest[j]   the exponent of the lowest bit that is set in any finite element, plus LowestBias; start with NoLowest
//	special[j]  −1 if an element is infinite or NaN, else it stays as it is; start with 0
//
// The slices must be at least as long as x.
func ScanRange(largest, lowest, special []int32, x []float32) {
	largest, lowest, special = largest[:len(x)], lowest[:len(x)], special[:len(x)]
	n := scanRange(largest, lowest, special, x)
	for j := n; j < len(x); j++ {
		m := int32(math.Float32bits(x[j]) & 0x7fffffff)
		if m >= 0x7f800000 {
			special[j] = -1
			continue
		}
		if m == 0 {
			continue
		}
		largest[j] = max(largest[j], m)
		e, f := m>>23, m&0x7fffff
		if e == 0 {
			e = 1
		} else {
			f |= 1 << 23
		}
		lowest[j] = min(lowest[j], e+127+int32(bits.TrailingZeros32(uint32(f))))
	}
}

// Quantise16 computes q[j] = x[j]·unit[j], rounded to the nearest integer, ties to even, and 0 where x[j] is not
// finite. Units are powers of two for which the result fits. q and unit must be at least as long as x.
func Quantise16(q []int16, x []float32, unit []float64) {
	q, unit = q[:len(x)], unit[:len(x)]
	n := quantise16(q, x, unit)
	for j := n; j < len(x); j++ {
		q[j] = int16(quantise(x[j], unit[j]))
	}
}

// Quantise32 is Quantise16 for integers of 32 bits.
func Quantise32(q []int32, x []float32, unit []float64) {
	q, unit = q[:len(x)], unit[:len(x)]
	n := quantise32(q, x, unit)
	for j := n; j < len(x); j++ {
		q[j] = int32(quantise(x[j], unit[j]))
	}
}

// Quantise48 is Quantise16 for integers below 2⁴⁸ in magnitude, each cut into two balanced digits of 24 bits: the
// integer is high[j]·2²⁴ + low[j], and low[j] lies in [−2²³, 2²³).
func Quantise48(low, high []int32, x []float32, unit []float64) {
	low, high, unit = low[:len(x)], high[:len(x)], unit[:len(x)]
	n := quantise48(low, high, x, unit)
	for j := n; j < len(x); j++ {
		q := quantise(x[j], unit[j])
		low[j] = int32(q) << 8 >> 8
		high[j] = int32((q - int64(low[j])) >> 24)
	}
}

// quantise relies on x·unit being exact and below 2⁵¹: adding 1.5·2⁵² rounds it to an integer, ties to even, which
// can be read off the sum's low bits.
func quantise(x float32, unit float64) int64 {
	const magic = 0x1.8p52
	if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
		return 0
	}
	return int64(math.Float64bits(float64(x)*unit+magic)) - int64(math.Float64bits(magic))
}

// RoundSums computes y[j] = sums[j]·unit[j]·scale, rounded once to float32, ties to even, a zero being +0. Units and
// scale are powers of two. It reports whether all sums lie in [−2⁵¹, 2⁵¹): where not, y is undefined. y and unit must
// be at least as long as sums.
func RoundSums(y []float32, sums []int64, unit []float64, scale float64) bool {
	y, unit = y[:len(sums)], unit[:len(sums)]
	n, fit := roundSums(y, sums, unit, scale)
	for j := n; j < len(sums); j++ {
		s := sums[j]
		fit = fit && uint64(s+1<<51) < 1<<52
		y[j] = float32(float64(s)*unit[j]*scale) + 0 // + 0: −0 becomes +0
	}
	return fit
}
