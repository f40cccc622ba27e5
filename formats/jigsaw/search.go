// The reordering of one tile (§3.2, Algorithm 1): up to 16 columns are dealt to two octets and those to
// two quads each, so that no row has more than two entries in a quad.
//
// The search is the paper's bidirectional one, from the tile down: an octet and the columns it leaves
// must both fall into compatible quads. Rows' entries are counted in 4-bit fields, 16 rows to a word.

package jigsaw

const (
	banksOfShared = 8    // groups of banks: 16-byte segments of rows of B that can be read at once
	patience      = 1000 // places tried before the search gives up

)

// A candidate is a column that a tile may take.
type candidate struct {
	pos  uint32 // position in the block's list
	mask uint16 // rows of the strip that have an entry
}

// search deals the columns of a tile.
type search struct {
	n     int
	mask  [TileCols]uint16
	rows  [TileCols]uint64 // mask as counts
	bank  [TileCols]uint8  // bit of the bank, 0 if banks do not matter
	octet [TileCols]uint8  // 0 or 1
	quad  [TileCols]uint8  // 0 or 1, within the octet
	tries int
}

// spread returns a mask as 16 counts of 4 bits.
func spread(mask uint16) uint64 {
	x := uint64(mask)
	x = (x | x<<24) & 0x000000ff000000ff
	x = (x | x<<12) & 0x000f000f000f000f
	x = (x | x<<6) & 0x0303030303030303
	return (x | x<<3) & 0x1111111111111111
}

// above reports whether a count of 7 or less exceeds limit (up to 7).
func above(counts uint64, limit uint64) bool {
	return (counts+(7-limit)*0x1111111111111111)&0x8888888888888888 != 0
}

// add makes c the tile's next column. Its bank is a number below banksOfShared.
func (s *search) add(c candidate, banks bool) {
	s.mask[s.n], s.rows[s.n], s.bank[s.n] = c.mask, spread(c.mask), 0
	if banks {
		s.bank[s.n] = 1 << (c.pos % banksOfShared)
	}
	s.n++
}

// remove takes column i out.
func (s *search) remove(i int) {
	s.n--
	copy(s.mask[i:s.n], s.mask[i+1:])
	copy(s.rows[i:s.n], s.rows[i+1:])
	copy(s.bank[i:s.n], s.bank[i+1:])
}

// side is one side of a division.
type side struct {
	rows  uint64
	size  int
	banks uint8
}

// find deals the columns and reports whether it could.
func (s *search) find() bool {
	s.tries = 0
	return s.octets(0, [2]side{})
}

// octets deals columns i and on to octets. In an octet, which is read from shared memory at once, no two
// columns share a bank.
func (s *search) octets(i int, in [2]side) bool {
	if i == s.n {
		return s.quads(0) && s.quads(1)
	}
	if s.tries++; s.tries > patience {
		return false
	}
	first := 0
	if in[1].size < in[0].size {
		first = 1
	}
	for try := range 2 {
		h := first ^ try
		o := in[h]
		if o.size == 8 || o.banks&s.bank[i] != 0 || above(o.rows+s.rows[i], 4) {
			continue
		}
		next := in
		next[h] = side{o.rows + s.rows[i], o.size + 1, o.banks | s.bank[i]}
		s.octet[i] = uint8(h)
		if s.octets(i+1, next) {
			return true
		}
		if in[0].size == 0 && in[1].size == 0 {
			return false // the other octet is the same by symmetry
		}
	}
	return false
}

// quads deals the columns of an octet to its two quads.
func (s *search) quads(octet uint8) bool {
	var cols [8]int
	n := 0
	for i, o := range s.octet[:s.n] {
		if o == octet {
			cols[n] = i
			n++
		}
	}
	return s.divide(cols[:n], [2]side{})
}

func (s *search) divide(cols []int, in [2]side) bool {
	if len(cols) == 0 {
		return true
	}
	i := cols[0]
	for h := range 2 {
		q := in[h]
		if q.size == 4 || above(q.rows+s.rows[i], 2) {
			continue
		}
		next := in
		next[h] = side{rows: q.rows + s.rows[i], size: q.size + 1}
		s.quad[i] = uint8(h)
		if s.divide(cols[1:], next) {
			return true
		}
		if q.size == 0 {
			return false
		}
	}
	return false
}

// leastCompatible returns the column, the first apart, that is in the fewest compatible groups of four: the
// one to put back when there is no order.
func (s *search) leastCompatible() int {
	var groups [TileCols]int
	for a := range s.n {
		for b := a + 1; b < s.n; b++ {
			ab := s.rows[a] + s.rows[b]
			for c := b + 1; c < s.n; c++ {
				abc := ab + s.rows[c]
				if above(abc, 2) {
					continue
				}
				for d := c + 1; d < s.n; d++ {
					if !above(abc+s.rows[d], 2) {
						groups[a]++
						groups[b]++
						groups[c]++
						groups[d]++
					}
				}
			}
		}
	}
	least := s.n - 1
	for i := s.n - 2; i > 0; i-- {
		if groups[i] < groups[least] {
			least = i
		}
	}
	return least
}
