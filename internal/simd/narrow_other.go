// Rounding on machines without assembly for it.

//go:build !amd64

package simd

import "github.com/spmmrun/spmm/formats/half"

func narrowF16(dst []half.F16, src []float32) int   { return 0 }
func narrowBF16(dst []half.BF16, src []float32) int { return 0 }
