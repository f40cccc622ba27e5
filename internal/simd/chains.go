// Chains of values to vectors: format lanestream's steps, as a block takes them.

package simd

import "math/bits"

// What ExpandChains takes of a group of 64 rows, and of a step of it (see package formats/lanestream).
const (
	ChainsTaken = 16 // chains: those of two rows of lanes
	StepVectors = 32 // vectors of a step, one for each column
	StepWords   = 64 // words of mask
	// ChainPadding is the numbers that there must be after a chain's last value: they are read, and do not matter.
	ChainPadding = 16
)

// ExpandChains writes the vectors of some steps: dst[(32·s+col)·16+r] is the value in column col of step s, or 0. mask
// begins with the first word of the chains' first lane in the first step. Chain c's values begin at values[c·ld];
// next[c] of them are taken already, and next is advanced. Lane r = 8·e + m of a vector has row 8·m + e of the 64 rows,
// counted from the first lane's, and the value at position 4·⌊m/2⌋ + m%2 + 2·k of chain 8·e + 2·q + h has column 8·k +
// 4·h + q of its word's 16. The masks must not take more values than there are.
func ExpandChains(dst []float32, mask []uint32, steps int, values []float32, ld int, next *[ChainsTaken]int) {
	if steps == 0 {
		return
	}
	if len(dst) < steps*StepVectors*VectorRows || len(mask) < (steps-1)*StepWords+ChainsTaken ||
		len(values) < ChainsTaken*ld {
		panic("simd: slices of chains do not fit together")
	}
	expandChains(dst, mask, steps, values, ld, next)
}

func goExpandChains(dst []float32, mask []uint32, steps int, values []float32, ld int, next *[ChainsTaken]int) {
	clear(dst[:steps*StepVectors*VectorRows])
	for c := range next {
		chain, at := values[c*ld:][:ld], next[c]
		e, q, h := c/8, c/2%4, c%2
		for s := range steps {
			for w := range 2 {
				to := dst[(StepVectors*s+16*w+4*h+q)*VectorRows+8*e:]
				for word := mask[StepWords*s+2*(c/2)+w] >> h & 0x55555555; word != 0; word &= word - 1 {
					i := bits.TrailingZeros32(word) / 2 // 4·t + 2·k + r
					to[8*VectorRows*(i>>1&1)+i>>2*2+i&1] = chain[at]
					at++
				}
			}
		}
		next[c] = at
	}
}
