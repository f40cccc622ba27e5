// The random numbers: a hash of seed and position, in integers only, so that every machine gets the same and any part
// can be made without the others.

package gen

import "math/bits"

const golden = 0x9e3779b97f4a7c15

// mix is the output function of the SplitMix64 generator.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is a sequence of random 64-bit numbers.
type stream uint64

// The streams of one seed.
const (
	streamEntry  = iota + 1 // values of sparse entries
	streamDense             // values of dense elements
	streamCount             // entries of each row
	streamPick              // their columns
	streamEmpty             // which rows are empty
	streamJitter            // densities of rows
)

func newStream(seed, purpose uint64) stream { return stream(mix(seed + golden)).sub(purpose) }

// at returns number i of the stream.
func (s stream) at(i uint64) uint64 { return mix(uint64(s) + (i+1)*golden) }

// sub returns the stream numbered i of those that start at s.
func (s stream) sub(i uint64) stream { return stream(s.at(i)) }

// scale maps the random number h to 0 to n-1.
func scale(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// centred returns the sum of h's four 16-bit parts less its mean: about normal, within ±131070, with
// standard deviation centredSD.
func centred(h uint64) int64 {
	return int64(h&0xffff+h>>16&0xffff+h>>32&0xffff+h>>48) - 2*0xffff
}

const centredSD = 37837 // √((2³²-1)/3)
