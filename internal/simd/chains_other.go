// Chains on machines without assembly for them.

//go:build !amd64 && !arm64

package simd

func expandChains(dst []float32, mask []uint32, steps int, values []float32, ld int, next *[ChainsTaken]int) {
	goExpandChains(dst, mask, steps, values, ld, next)
}
