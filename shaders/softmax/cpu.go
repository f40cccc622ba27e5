// The kernel on the CPU: a workgroup is a run of spans.

package softmax

import (
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// groupOf returns the function of one workgroup. exp is for t ≤ 0 and NaN.
func groupOf[S host.Real](exp func(t S) S) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		spans, s := backend.View[uint32](args[0]), backend.View[S](args[1])
		first := int64(at[0]+at[2]*p.width) * cpuSpans
		for i := first; i < min(first+cpuSpans, int64(p.items)); i++ {
			at := 2 * (int64(p.first) + i)
			normalise(s[spans[at]:spans[at+1]], exp)
		}
	}
}

// normalise replaces numbers by their softmax.
func normalise[S host.Real](x []S, exp func(t S) S) {
	most, sum := S(math.Inf(-1)), S(0)
	for _, v := range x {
		most = max(most, v)
	}
	for i, v := range x {
		x[i] = exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// exp returns e^t for t ≤ 0, as 2^n·e^r with |r| ≤ ln(2)/2, and 0 below -87.
func exp(t float32) float32 {
	if t != t {
		return t
	}
	if t <= -87 {
		return 0
	}
	n := float32(math.Floor(float64(t*1.44269504 + 0.5)))
	r := t - n*0.693359375 + n*0.000212194440
	y := float32(1.0 / 5040)
	for _, c := range [...]float32{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		y = y*r + c
	}
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}

// exp64 is exp in f64.
func exp64(t float64) float64 {
	if t != t {
		return t
	}
	if t <= -700 {
		return 0
	}
	n := math.Floor(t*1.4426950408889634 + 0.5)
	r := t - n*0.693145751953125 - n*1.4286068203094172e-06
	y := 1.0 / 6227020800
	for _, c := range [...]float64{1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		y = y*r + c
	}
	return y * math.Float64frombits(uint64(int64(n)+1023)<<52)
}
