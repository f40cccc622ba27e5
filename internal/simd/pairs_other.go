// Machines without assembly for pairs of rows.

//go:build !amd64

package simd

func pairsF64(r *Rows[float64, float64]) { goPairsF64(r) }
