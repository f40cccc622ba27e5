// Random numbers that are the same on every machine: a hash of a place, in integers alone.

package conformance

// The streams of draws that a problem is made of.
const (
	streamPattern = iota + 1
	streamA
	streamB
	streamC
	streamScaleA
	streamScaleB
	streamStored
	streamSpecialA
	streamSpecialB
	streamSpecialC
	streamBias
	streamSpecialBias
)

// draw returns the random 64 bits of place (i, j) in a stream: three rounds of splitmix64's finalizer.
func draw(seed uint64, stream, i, j int) uint64 { return lineOf(seed, stream, i).at(j) }

// line is the draws of row i of a stream; those of a row share two of the three rounds.
type line uint64

func lineOf(seed uint64, stream, i int) line {
	return line(mix(mix(seed<<8|uint64(stream)) ^ uint64(i)))
}

func (l line) at(j int) uint64 { return mix(uint64(l) ^ uint64(j)) }

func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a draw in [0, n).
func below(n int64, seed uint64, stream, i, j int) int64 {
	return int64(draw(seed, stream, i, j) >> 1 % uint64(n))
}
