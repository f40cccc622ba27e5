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

// ScanColumns takes rows of a matrix, ld apart in x, into account in what is known of its columns. For column j,
//
//	largest[j]  becomes the largest magnitude of a finite element, as the bits of a float32
//	lowest[j]   the exponent of the lowest bit that is set in any finite element, plus LowestBias; start with NoLowest
//	special[j]  −1 if an element is infinite or NaN, else it stays as it is; start with 0
//
// The three are as long as a row.
func ScanColumns(largest, lowest, special []int32, x []float32, ld, rows int) {
	n := len(largest)
	lowest, special = lowest[:n], special[:n]
	if rows == 0 || n == 0 {
		return
	}
	if ld < n || len(x) < (rows-1)*ld+n {
		panic("simd: rows to be scanned do not fit")
	}
	for j := scanColumns(largest, lowest, special, x, ld, rows); j < n; j++ {
		for i := range rows {
			m := int32(math.Float32bits(x[i*ld+j]) & 0x7fffffff)
			if m >= 0x7f800000 {
				special[j] = -1
				continue
			}
			if m == 0 {
				continue
			}
			largest[j] = max(largest[j], m)
			lowest[j] = min(lowest[j], max(m>>23, 1)+127+int32(bits.TrailingZeros32(uint32(m|1<<23))))
		}
	}
}

// LargestColumns is ScanColumns without the lowest bits, which takes half as long.
func LargestColumns(largest, special []int32, x []float32, ld, rows int) {
	n := len(largest)
	special = special[:n]
	if rows == 0 || n == 0 {
		return
	}
	if ld < n || len(x) < (rows-1)*ld+n {
		panic("simd: rows to be scanned do not fit")
	}
	for j := largestColumns(largest, special, x, ld, rows); j < n; j++ {
		for i := range rows {
			if m := int32(math.Float32bits(x[i*ld+j]) & 0x7fffffff); m < 0x7f800000 {
				largest[j] = max(largest[j], m)
			} else {
				special[j] = -1
			}
		}
	}
}

// JoinRanges sets each word of dst to the larger of the fields of dst and src: bits 0 to 9, bits 10 to 19, and bits 20
// to 31. src is as long as dst.
func JoinRanges(dst, src []uint32) {
	src = src[:len(dst)]
	for j := joinRanges(dst, src); j < len(dst); j++ {
		const low, mid, high = 1<<10 - 1, (1<<10 - 1) << 10, math.MaxUint32 &^ (1<<20 - 1)
		a, b := dst[j], src[j]
		dst[j] = max(a&low, b&low) | max(a&mid, b&mid) | max(a&high, b&high)
	}
}

// Quantise16 computes q = x·first·second, rounded to the nearest integer, ties to even, and 0 where x is not finite,
// for rows that are ldx apart in x and ldq in q; column j has first[j] and second[j]. Both are powers of two, for which
// the result fits, and first[j] is less than 1 only if second[j] is 1. The latter two are as long as a row.
func Quantise16(q []int16, ldq int, x []float32, ldx, rows int, first, second []float32) {
	quantiseRows(q, ldq, x, ldx, rows, first, second, quantise16)
}

// Quantise32 is Quantise16 for integers of 32 bits.
func Quantise32(q []int32, ldq int, x []float32, ldx, rows int, first, second []float32) {
	quantiseRows(q, ldq, x, ldx, rows, first, second, quantise32)
}

// quantiseRows has the first columns done by fast, which returns how many.
func quantiseRows[T int16 | int32](q []T, ldq int, x []float32, ldx, rows int, first, second []float32,
	fast func(q []T, ldq int, x []float32, ldx, rows int, first, second []float32) int) {
	n := len(first)
	second = second[:n]
	if rows == 0 || n == 0 {
		return
	}
	if ldx < n || ldq < n || len(x) < (rows-1)*ldx+n || len(q) < (rows-1)*ldq+n {
		panic("simd: rows to be quantised do not fit")
	}
	done := fast(q, ldq, x, ldx, rows, first, second)
	if done == n {
		return
	}
	for i := range rows {
		for j := done; j < n; j++ {
			q[i*ldq+j] = T(quantise(x[i*ldx+j], float64(first[j])*float64(second[j])))
		}
	}
}

// Quantise48 computes x[j]·unit[j], rounded as by Quantise16, for integers below 2⁴⁸ in magnitude, each cut into two
// balanced digits of 24 bits: the integer is high[j]·2²⁴ + low[j], and low[j] lies in [−2²³, 2²³).
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

// HalveInt32 cuts each number of src in two: it is high[i]·2¹⁶ + low[i], and low[i] lies in [−2¹⁵, 2¹⁵). Numbers are
// less than 2³¹ − 2¹⁵.
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

// FoldSums adds sums[j]·scale to high[j] + low[j]: to high[j] its nearest multiple of FoldUnit, to low[j] the
// remainder, at most FoldUnit/2 in magnitude. The sums are integers at most 2⁵³ in magnitude and scale is a power of
// two. It is exact while high[j] stays within 2⁸⁵ and low[j] within 2⁵³. high and low must be at least as long as sums.
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

// Rounding is rows of sums that are to be rounded. They hold integers at most 2⁸⁵ in magnitude, High, and 2⁵³, Low.
// Scale, units and rows are powers of two.
type Rounding struct {
	Y    []float32
	LDY  int
	High []float64
	Low  []float64 // nil: zeros
	LDS  int       // of High and Low
	// Scale is a factor of High where there is Low; else it is 1, whatever it says.
	Scale float64
	Unit  []float64 // of columns
	Rows  []float64 // of rows
	// Stream has Y written past the caches, which is faster where it is larger than they are. Where rows do not lie at
	// multiples of 32 bytes it has no effect.
	Stream bool
}

// Do computes Y[i·LDY+j] = (High[i·LDS+j]·Scale + Low[i·LDS+j])·Unit[j]·Rows[i], rounded once to float32, ties to even,
// a zero being +0, for i < len(Rows) and j < len(Unit).
func (r *Rounding) Do() {
	rows, n := len(r.Rows), len(r.Unit)
	if rows == 0 || n == 0 {
		return
	}
	if r.LDY < n || r.LDS < n || len(r.Y) < (rows-1)*r.LDY+n || len(r.High) < (rows-1)*r.LDS+n ||
		r.Low != nil && len(r.Low) < (rows-1)*r.LDS+n {
		panic("simd: slices of sums to be rounded do not fit together")
	}
	done := r.round()
	if done == n {
		return
	}
	for i, row := range r.Rows {
		for j := done; j < n; j++ {
			s := r.High[i*r.LDS+j]
			if r.Low != nil {
				s = OddSum(s*r.Scale, r.Low[i*r.LDS+j])
			}
			r.Y[i*r.LDY+j] = float32(s*r.Unit[j]*row) + 0 // + 0: −0 becomes +0
		}
	}
}

// OddSum returns a + b rounded to odd: the sum where float64 has it, else the one of its two neighbours whose last bit
// is set. To round that to a float32 is to round the sum once (Boldo and Melquiond, "Emulation of FMA and correctly
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
