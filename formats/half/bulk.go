// Conversion of whole slices.

package half

import "math"

// Decode converts src to float32 in dst, which must be at least as long. It is exact.
func Decode[T F16 | BF16](dst []float32, src []T) {
	dst = dst[:len(src)]
	switch s := any(src).(type) {
	case []F16:
		decodeF16(dst, s)
	case []BF16:
		for i, h := range s {
			dst[i] = h.Float32()
		}
	}
}

// Encode rounds src to dst, which must be at least as long, as F16From and BF16From do.
func Encode[T F16 | BF16](dst []T, src []float32) {
	dst = dst[:len(src)]
	switch d := any(dst).(type) {
	case []F16:
		encodeF16(d, src)
	case []BF16:
		for i, x := range src {
			d[i] = BF16From(x)
		}
	}
}

// Normal numbers, nearly all, are converted in place of a call: adjust the exponent's bias, shift.
const (
	rebias   = (127 - 15) << 23 // from binary16's exponent bias to binary32's
	f16Min   = 0x38800000       // 2⁻¹⁴, the least normal binary16
	f16Limit = 0x477ff000       // 65520, the least float32 that rounds to infinity
)

func decodeF16(dst []float32, src []F16) {
	for i, h := range src {
		sign, a := uint32(h&0x8000)<<16, uint32(h&0x7fff)
		if a-0x400 < 0x7c00-0x400 {
			dst[i] = math.Float32frombits(sign | a<<13 + rebias)
		} else {
			dst[i] = h.Float32()
		}
	}
}

func encodeF16(dst []F16, src []float32) {
	for i, x := range src {
		b := math.Float32bits(x)
		sign, a := F16(b>>16&0x8000), b&0x7fffffff
		switch {
		case a-f16Min < f16Limit-f16Min: // round the 13 low bits away, ties to even
			r := a - rebias
			dst[i] = sign | F16((r+0xfff+r>>13&1)>>13)
		case a < f16Min:
			// The last bit of a float32 in [0.5, 1) is 2⁻²⁴, as that of a subnormal binary16.
			dst[i] = sign | F16(math.Float32bits(math.Float32frombits(a)+0.5)-math.Float32bits(0.5))
		default:
			dst[i] = F16From(x)
		}
	}
}
