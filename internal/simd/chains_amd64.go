// The choice of assembly for chains on amd64.

package simd

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

// ld is in bytes, steps ≥ 1.

//go:noescape
func expandChainsAVX512(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[ChainsTaken]int)

//go:noescape
func expandChainsAVX2(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[ChainsTaken]int,
	lanes *[256][8]uint32)

// spread says, for each set of 8 places, which of the values that follow each other goes to each; places that have none
// have the sign bit.
var spread = func() (t [256][8]uint32) {
	for set := range t {
		for i := range t[set] {
			if t[set][i] = 1 << 31; set>>i&1 != 0 {
				t[set][i] = uint32(bits.OnesCount8(uint8(set) & (1<<i - 1)))
			}
		}
	}
	return t
}()

func expandChains(dst []float32, mask []uint32, steps int, values []float32, ld int, next *[ChainsTaken]int) {
	switch {
	case level == goOnly || !cpu.X86.HasBMI2:
		goExpandChains(dst, mask, steps, values, ld, next)
	case level == avx2:
		expandChainsAVX2(&dst[0], &mask[0], steps, &values[0], 4*ld, next, &spread)
	default:
		expandChainsAVX512(&dst[0], &mask[0], steps, &values[0], 4*ld, next)
	}
}
