// Rows one by one, where there is no assembly for several.

//go:build !amd64

package simd

import "github.com/spmmrun/spmm/formats/half"

func rowsF32(r *Rows[float32, float32])    { oneByOne(r, RowF32) }
func rowsF16(r *Rows[half.F16, float32])   { oneByOne(r, RowF16) }
func rowsBF16(r *Rows[half.BF16, float32]) { oneByOne(r, RowBF16) }
func rowsF64(r *Rows[float64, float64])    { oneByOne(r, RowF64) }
