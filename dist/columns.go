// Sets of rows of B, and their numbers among those that a rank has.

package dist

import "math/bits"

// columns is a set of numbers below a bound. Once it is counted, it tells how many of its numbers are below a given
// one.
type columns struct {
	words  []uint64
	before []int32 // numbers in the words before each
	count  int
}

func newColumns(n int) *columns { return &columns{words: make([]uint64, (n+63)/64)} }

func (s *columns) add(i int) { s.words[i/64] |= 1 << (i % 64) }

func (s *columns) addRange(lo, hi int) {
	for i := lo; i < hi; i++ {
		if i%64 == 0 && i+64 <= hi {
			s.words[i/64] = ^uint64(0)
			i += 63
			continue
		}
		s.add(i)
	}
}

// counted makes position and the count right.
func (s *columns) counted() *columns {
	s.before, s.count = make([]int32, len(s.words)), 0
	for w, x := range s.words {
		s.before[w] = int32(s.count)
		s.count += bits.OnesCount64(x)
	}
	return s
}

// position returns how many numbers of the set are below i.
func (s *columns) position(i int) int {
	if i/64 >= len(s.words) {
		return s.count
	}
	return int(s.before[i/64]) + bits.OnesCount64(s.words[i/64]&(1<<(i%64)-1))
}

// list returns the numbers of the set from lo to before hi, less lo.
func (s *columns) list(lo, hi int) []int32 {
	out := make([]int32, 0, s.position(hi)-s.position(lo))
	for w := lo / 64; w*64 < hi; w++ {
		for x := s.words[w]; x != 0; x &= x - 1 {
			if i := w*64 + bits.TrailingZeros64(x); i >= lo && i < hi {
				out = append(out, int32(i-lo))
			}
		}
	}
	return out
}
