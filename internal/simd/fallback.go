// The inner loops in Go: what runs where there is no assembly, and what the assembly is tested by.

package simd

import (
	"math"

	"github.com/spmmrun/spmm/formats/half"
)

// Each function keeps the sums of eight columns in registers over all of the row's entries.

func goRow[S float32 | float64](acc, vals []S, cols []uint32, b []S, ldb int) {
	for j := 0; j < len(acc); j += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 S
		for k, col := range cols {
			v, x := vals[k], b[int(col)*ldb+j:][:8]
			s0, s1, s2, s3 = s0+v*x[0], s1+v*x[1], s2+v*x[2], s3+v*x[3]
			s4, s5, s6, s7 = s4+v*x[4], s5+v*x[5], s6+v*x[6], s7+v*x[7]
		}
		*(*[8]S)(acc[j:]) = [8]S{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

func goRowF16(acc []float32, vals []half.F16, cols []uint32, b []half.F16, ldb int) {
	for j := 0; j < len(acc); j += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for k, col := range cols {
			v, x := f16(vals[k]), b[int(col)*ldb+j:][:8]
			s0, s1, s2, s3 = s0+v*f16(x[0]), s1+v*f16(x[1]), s2+v*f16(x[2]), s3+v*f16(x[3])
			s4, s5, s6, s7 = s4+v*f16(x[4]), s5+v*f16(x[5]), s6+v*f16(x[6]), s7+v*f16(x[7])
		}
		*(*[8]float32)(acc[j:]) = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

func goRowBF16(acc []float32, vals []half.BF16, cols []uint32, b []half.BF16, ldb int) {
	for j := 0; j < len(acc); j += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for k, col := range cols {
			v, x := bf16(vals[k]), b[int(col)*ldb+j:][:8]
			s0, s1, s2, s3 = s0+v*bf16(x[0]), s1+v*bf16(x[1]), s2+v*bf16(x[2]), s3+v*bf16(x[3])
			s4, s5, s6, s7 = s4+v*bf16(x[4]), s5+v*bf16(x[5]), s6+v*bf16(x[6]), s7+v*bf16(x[7])
		}
		*(*[8]float32)(acc[j:]) = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

// f16 widens a binary16 without a table: the exponent is moved into place by a multiplication, which
// also normalises what was subnormal.
func f16(h half.F16) float32 {
	m := uint32(h&0x7fff) << 13
	if m >= 0x0f800000 { // infinity or NaN
		return math.Float32frombits(uint32(h&0x8000)<<16 | 0x70000000 | m)
	}
	return math.Float32frombits(uint32(h&0x8000)<<16 | math.Float32bits(math.Float32frombits(m)*0x1p112))
}

func bf16(h half.BF16) float32 { return math.Float32frombits(uint32(h) << 16) }
