// Package number reads elements of any type as numbers.
package number

import "github.com/spmmrun/spmm/formats/half"

// Float64 is v in float64, which is exact.
func Float64[T half.F16 | half.BF16 | float32 | float64](v T) float64 {
	switch v := any(v).(type) {
	case half.F16:
		return float64(v.Float32())
	case half.BF16:
		return float64(v.Float32())
	case float32:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
