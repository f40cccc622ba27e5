// One strip's columns cut into tiles and steps.

package jigsaw

import "math/bits"

const (
	look    = 96 // columns ahead that a tile may choose from
	retries = 6  // columns put back and replaced before a tile makes do with fewer
)

// A step as the packer lays it out: which candidate is in each place, noColumn where none is.
type step [StepCols]int32

const noColumn = -1

var emptyStep = func() (s step) {
	for k := range s {
		s[k] = noColumn
	}
	return s
}()

// packer cuts strips into steps. It keeps its memory from strip to strip.
type packer struct {
	span    uint32 // 0: none
	banks   bool
	retried int64
	hope    int // columns to start a tile with

	cols  []candidate
	next  []int32 // the next column not taken yet; next[len(cols)] is the first
	steps []step

	search search
	taken  [TileCols]int32 // the columns of the search
	barred []bool          // put back from this tile
}

// pack lays out p.cols in p.steps.
func (p *packer) pack() {
	n := len(p.cols)
	p.steps, p.next, p.barred = p.steps[:0], p.next[:0], p.barred[:0]
	for i := range n {
		p.next = append(p.next, int32(i+1))
		p.barred = append(p.barred, false)
	}
	p.next = append(p.next, 0)
	p.hope = TileCols
	for p.first() < n {
		s := emptyStep
		limit := uint32(1<<32 - 1)
		if pos := p.cols[p.first()].pos; p.span > 0 && pos < limit-p.span {
			limit = pos + p.span
		}
		for t := range 2 {
			p.tile((*[TileCols]int32)(s[TileCols*t:]), limit)
		}
		p.steps = append(p.steps, s)
	}
	if len(p.steps)%2 == 1 {
		p.steps = append(p.steps, emptyStep)
	}
}

// first returns the first column not taken yet.
func (p *packer) first() int { return int(p.next[len(p.cols)]) }

// tile takes columns before limit for a tile and deals them to its places.
func (p *packer) tile(places *[TileCols]int32, limit uint32) {
	s := &p.search
	s.n = 0
	tries := 0
	for ; ; tries++ {
		if tries <= retries {
			p.choose(limit)
		}
		if s.n == 0 || s.find() {
			break
		}
		least := s.leastCompatible()
		p.barred[p.taken[least]] = true
		copy(p.taken[least:s.n-1], p.taken[least+1:])
		s.remove(least)
		p.retried++
	}
	p.hope = TileCols
	if tries > retries { // the next will fare no better
		p.hope = min(TileCols, s.n+2)
	}
	var room [4]int // of the quads
	for i := range s.n {
		q := int(2*s.octet[i] + s.quad[i])
		places[4*q+room[q]] = p.taken[i]
		room[q]++
	}
	p.unlink()
}

// choose fills the search with columns that may fit next to those it has: at most 8 entries in a row, and two columns
// of a bank. The first column that is left always goes first.
func (p *packer) choose(limit uint32) {
	s := &p.search
	var rows uint64 // at most 8 in each field
	var banks [banksOfShared]uint8
	for i := range s.n {
		rows += s.rows[i]
		banks[p.cols[p.taken[i]].pos%banksOfShared]++
	}
	has := s.n
	seen := 0
	for i := p.first(); i < len(p.cols) && s.n < p.hope && seen < look; i, seen = int(p.next[i]), seen+1 {
		c := p.cols[i]
		if c.pos >= limit {
			break
		}
		bank := c.pos % banksOfShared
		if p.barred[i] || p.holds(i, has) || p.banks && banks[bank] == 2 || (rows&0x8888888888888888)>>3&spread(c.mask) != 0 {
			continue
		}
		rows += spread(c.mask)
		banks[bank]++
		p.taken[s.n] = int32(i)
		s.add(c, p.banks)
	}
}

// holds reports whether column i is among the first n of the search.
func (p *packer) holds(i, n int) bool {
	for _, c := range p.taken[:n] {
		if int(c) == i {
			return true
		}
	}
	return false
}

// unlink takes the tile's columns out of the list and lets those that were put back be chosen again.
func (p *packer) unlink() {
	left := p.search.n
	at := len(p.cols)
	for seen := 0; int(p.next[at]) < len(p.cols) && seen < look+TileCols; seen++ {
		i := int(p.next[at])
		p.barred[i] = false
		if left > 0 && p.holds(i, p.search.n) {
			p.next[at] = p.next[i]
			left--
			continue
		}
		at = i
	}
}

// positions writes the position of each of a step's columns. Places without a column repeat a position of the
// step, of a bank that their octet lacks if there is one; if the step has no column, the last that the
// strip used before. It returns the last position that the strip has used by then.
func (p *packed) positions(s *step, last uint32, out []uint32) uint32 {
	var of [banksOfShared]uint32 // a position of each bank
	var has uint8
	for k, c := range s {
		if c != noColumn {
			last = p.cols[c].pos
			out[k] = last
			of[last%banksOfShared] = last
			has |= 1 << (last % banksOfShared)
		}
	}
	for o := 0; o < StepCols; o += 8 {
		free := has
		for k, c := range s[o : o+8] {
			if c != noColumn {
				free &^= 1 << (out[o+k] % banksOfShared)
			}
		}
		for k, c := range s[o : o+8] {
			if c == noColumn {
				out[o+k] = last
				if free != 0 {
					out[o+k] = of[bits.TrailingZeros8(free)]
					free &= free - 1
				}
			}
		}
	}
	return last
}

// pairs sets the two columns of row r in each quad of a tile: bits 2·e of quad q at 4·q. bits tells which
// of the tile's columns have an entry in the row; at most two of a quad have.
func pairs(row uint16) uint16 {
	var meta uint16
	for q := range quads {
		in := row >> (4 * q) & 15
		for k := uint16(8); bits.OnesCount16(in) < 2; k >>= 1 { // the last columns make up for what lacks
			in |= k
		}
		a, b := bits.TrailingZeros16(in), bits.Len16(in)-1
		meta |= uint16(a|b<<2) << (4 * q)
	}
	return meta
}

// metadata returns what a step's metadata say of row r in tile t.
func (p *packed) metadata(s *step, r, t int) uint16 {
	var row uint16
	for k, c := range s[TileCols*t : TileCols*(t+1)] {
		if c != noColumn && p.cols[c].mask>>r&1 == 1 {
			row |= 1 << k
		}
	}
	return pairs(row)
}
