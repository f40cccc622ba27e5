// Chains with NEON.

package simd

import "math/bits"

// ld is in bytes, steps ≥ 1.
//
//go:noescape
func expandChainsNEON(dst *float32, mask *uint32, steps int, values *float32, ld int, next *[ChainsTaken]int,
	spread *[128]spreading)

// spreading says for a set of four places, which of the 16 bytes of values that follow each other goes to each byte;
// what lies beyond them is 0. taken is the bytes of the values.
type spreading struct {
	bytes [16]uint8
	taken uint64
	_     uint64
}

// spreadings has those of the sets whose places are the even bits of the index.
var spreadings = func() (t [128]spreading) {
	for set := range t {
		n := uint8(0)
		for i := range 4 {
			for b := range 4 {
				t[set].bytes[4*i+b] = 255
				if set>>(2*i)&1 != 0 {
					t[set].bytes[4*i+b] = 4*n + uint8(b)
				}
			}
			n += uint8(set >> (2 * i) & 1)
		}
		t[set].taken = 4 * uint64(bits.OnesCount8(uint8(set)&0x55))
	}
	return t
}()

func expandChains(dst []float32, mask []uint32, steps int, values []float32, ld int, next *[ChainsTaken]int) {
	if level == goOnly {
		goExpandChains(dst, mask, steps, values, ld, next)
		return
	}
	expandChainsNEON(&dst[0], &mask[0], steps, &values[0], 4*ld, next, &spreadings)
}
