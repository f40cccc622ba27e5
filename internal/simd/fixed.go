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

// WidenInt16 sets dst to src as float64.
func WidenInt16(dst []float64, src []int16) {
	dst = dst[:len(src)]
	for i := widenInt16(dst, src); i < len(src); i++ {
		dst[i] = float64(src[i])
	}
}

// WidenInt32 sets dst to src as float64.
func WidenInt32(dst []float64, src []int32) {
	dst = dst[:len(src)]
	for i := widenInt32(dst, src); i < len(src); i++ {
		dst[i] = float64(src[i])
	}
}

// HalveInt32 cuts each number of src in two: it is high[i]·2¹⁶ + low[i], and low[i] lies in [−2¹⁵, 2¹⁵). Numbers are less
// than 2³¹ − 2¹⁵.
func HalveInt32(low, high []float64, src []int32) {
	low, high = low[:len(src)], high[:len(src)]
	for i := halveInt32(low, high, src); i < len(src); i++ {
		l := int32(int16(src[i]))
		low[i], high[i] = float64(l), float64((src[i]-l)>>16)
	}
}

// FoldUnit, 2^FoldBits, divides what FoldSums adds to two sums.
const (
	FoldBits = 34
	FoldUnit = 1 << FoldBits
)

// FoldSums adds sums[j]·scale to high[j] + low[j]: to high[j] its nearest multiple of FoldUnit, to low[j] what is left,
// at most FoldUnit/2 in magnitude. The sums are integers at most 2⁵³ in magnitude and scale is a power of two. It is
// exact while high[j] stays within 2⁸⁵ and low[j] within 2⁵³. high and low must be at least as long as sums.
func FoldSums(high, low, sums []float64, scale float64) {
	high, low = high[:len(sums)], low[:len(sums)]
	for j := foldSums(high, low, sums, scale); j < len(sums); j++ {
		s := sums[j] * scale
		h := s + foldMagic - foldMagic
		high[j] += h
		low[j] += s - h
	}
}

// foldMagic's last bit is FoldUnit: to add it to a smaller number is to round that to a multiple.
const foldMagic = 1.5 * 0x1p52 * FoldUnit

// RoundSums computes y[j] = (high[j]·scale + low[j])·unit[j]·row, rounded once to float32, ties to even, a zero being +0.
// high and low hold integers at most 2⁸⁵ and 2⁵³ in magnitude; if low is nil, it is 0. Units, row and scale are powers of
// two. The others must be at least as long as y.
func RoundSums(y []float32, high, low []float64, scale float64, unit []float64, row float64) {
	high, unit = high[:len(y)], unit[:len(y)]
	if low == nil {
		row *= scale
		for j := roundSums(y, high, unit, row); j < len(y); j++ {
			y[j] = float32(high[j]*unit[j]*row) + 0 // + 0: −0 becomes +0
		}
		return
	}
	low = low[:len(y)]
	for j := roundPairs(y, high, low, scale, unit, row); j < len(y); j++ {
		y[j] = float32(OddSum(high[j]*scale, low[j])*unit[j]*row) + 0
	}
}

// OddSum returns a + b rounded to odd: where it is not exact, the neighbour whose last bit is set, away from which the
// sum lies. To round that to a float32 is to round the sum once (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums", 2008).
func OddSum(a, b float64) float64 {
	s := a + b
	c := s - a
	left := (a - (s - c)) + (b - c) // a + b − s, exact (Knuth)
	bits := math.Float64bits(s)
	switch {
	case left == 0 || bits&1 == 1:
	case (left > 0) == (s > 0):
		bits++
	default:
		bits--
	}
	return math.Float64frombits(bits)
}
