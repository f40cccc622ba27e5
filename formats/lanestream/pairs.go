// Layout Pairs: two slots for each four neighbouring columns of a row.

package lanestream

import (
	"fmt"
	"math/bits"
)

// quads is the number of a lane's quads in a step.
const quads = GroupRows * StepCols / 4 / lanes

// Quad returns the row in the group (0 to 63), and the first column in the step (0 to 31), of quad i (0 to 15) of a
// lane (0 to 31), in layout Pairs.
func Quad(lane, i int) (row, col int) {
	return 16*(i>>2) + 8*(i&1) + lane/4, 16*(i>>1&1) + 4*(lane%4)
}

// Pair holds the bits of a step's mask for a quad.
type Pair struct {
	Next, Upper bool   // slot 0 has the lower half of the chain's next word; slot 1 has the upper half of the last one
	Col         [2]int // the slots' columns in the quad
}

// PairAt returns the bits of quad i (0 to 15) of a lane (0 to 31) in words, a step's 96 words of the mask.
func PairAt(mask []uint32, lane, i int) Pair {
	next, code := mask[Chains+lane]>>(16*(i>>3)+7-i&7), mask[placeWord(lane, i)]>>placeShift(lane, i)
	return Pair{Next: next&1 != 0, Upper: next>>8&1 != 0, Col: [2]int{int(code & 3), int(code >> 2 & 3)}}
}

// placeWord and placeShift return the word and the bit of a step's mask where the columns of a quad's slots are. They
// are where mma.sp takes them.
func placeWord(lane, i int) int  { return (lane&^3|i>>2&1<<1|i>>1&1)*2 + i>>3 }
func placeShift(lane, i int) int { return 4*(lane%4) + 16*(i&1) }

// set writes the bits of a quad to a mask, which has zeros there.
func (p Pair) set(mask []uint32, lane, i int) {
	at := 16*(i>>3) + 7 - i&7
	if p.Next {
		mask[Chains+lane] |= 1 << at
	}
	if p.Upper {
		mask[Chains+lane] |= 1 << (at + 8)
	}
	mask[placeWord(lane, i)] |= uint32(p.Col[0]|p.Col[1]<<2) << placeShift(lane, i)
}

// pairRows returns the expected number of words that a chain takes in a step at a density: one for each quad with two
// entries or more, and one for two quads with one entry.
func pairRows(density float64) float64 {
	q := 1 - density
	none, one := q*q*q*q, 4*density*q*q*q
	return quads * (1 - none - one/2)
}

// quad has a bit for each of its four columns that has an entry. force says that it must take the chain's next word.
type quad struct {
	has   uint8
	force bool
}

// firstTwo[x] has the lowest two bits of x.
var firstTwo = func() (t [16]uint8) {
	for has := range t {
		x := uint8(has)
		for bits.OnesCount8(x) > 2 {
			x &^= 1 << (bits.Len8(x) - 1)
		}
		t[has] = x
	}
	return t
}()

// count returns how many words quads take, and whether the upper half of the last word is free afterwards; free says
// whether it is before. A quad with two entries takes a word. One with a single entry takes the upper half that is
// free, or the lower half of a word.
func count(of []quad, free bool) (words int, after bool) {
	for _, q := range of {
		switch {
		case q.has&(q.has-1) != 0:
			words, free = words+1, false
		case q.force, q.has != 0 && !free:
			words, free = words+1, true
		case q.has != 0:
			free = false
		}
	}
	return words, free
}

// bringBits reads the entries of a segment into p.tile and p.has.
func (p *packer[U]) bringBits(g, segment int) {
	width := p.steps * StepCols
	begin, end := segment*width, (segment+1)*width
	p.has = [GroupRows][4]uint32{}
	for r := range p.rowsOf(g) {
		i, stop := p.next[r], p.rowPtr[g*GroupRows+r+1]
		row := p.tile[r*width:][:width]
		for ; i < stop && int(p.colIdx[i]) < end; i++ {
			col := int(p.colIdx[i]) - begin
			row[col] = p.val[i]
			p.has[r][col/StepCols] |= 1 << (col % StepCols)
		}
		p.next[r] = i
	}
}

// quadsOf sets p.quads to those of a lane in the segment that bringBits has read.
func (p *packer[U]) quadsOf(lane int) []quad {
	of := p.quads[:p.steps*quads]
	for i := range of {
		r, c := Quad(lane, i%quads)
		of[i] = quad{has: uint8(p.has[r][i/quads] >> c & 15)}
	}
	return of
}

// layoutPairs chooses the layout of split q of group g.
func (p *packer[U]) layoutPairs(g, q int) layout {
	first, last := p.first(q), p.first(q+1)
	counts := p.planner.begin((last - first) * lanes)
	p.seek(g, first*p.steps*StepCols)
	var free [lanes]bool
	for j := range last - first {
		p.bringBits(g, first+j)
		for l := range lanes {
			of := p.quadsOf(l)
			for i := range of {
				of[i].has = firstTwo[of[i].has]
			}
			var n int
			n, free[l] = count(of, free[l])
			counts[j*lanes+l] = uint16(n)
		}
	}
	return p.planner.plan()
}

// writePairs writes a stream's mask and values. Entries that do not fit go to the COO remainder.
func (p *packer[U]) writePairs(s streamOf, values []U, stored []uint32) {
	var chains [lanes]pairChain
	n := p.steps * stepWords(Pairs)
	p.seek(s.group, s.first*p.steps*StepCols)
	for j := range s.count {
		p.bringBits(s.group, s.first+j)
		least, most := limits(j, s.count, s.segmentRows, p.window, s.rows, 1)
		for l := range lanes {
			of := p.fit(s, j, l, chains[l], least, most)
			for k := range p.steps {
				p.writeQuads(&chains[l], of[k*quads:][:quads], s.mask[j*n+k*stepWords(Pairs):], l, k, values, stored)
			}
		}
	}
}

// pairChain is a position in a chain of words.
type pairChain struct {
	at   int  // words taken
	free bool // the upper half of the last one belongs to no quad yet
}

// fit returns the quads of a lane in segment j with at most two entries each, changed so that the chain takes at least
// `least` words in all and at most `most`.
func (p *packer[U]) fit(s streamOf, j, lane int, c pairChain, least, most int) []quad {
	of := p.quadsOf(lane)
	for i := range of {
		for of[i].has != firstTwo[of[i].has] {
			p.dropLast(s, j, lane, i, of)
		}
	}
	n, _ := count(of, c.free)
	for ; c.at+n > most; n, _ = count(of, c.free) {
		best, fewest := -1, 0
		for i := range of {
			if of[i].has == 0 {
				continue
			}
			if r, _ := Quad(lane, i%quads); best < 0 || len(p.remainder[r]) < fewest {
				best, fewest = i, len(p.remainder[r])
			}
		}
		p.dropLast(s, j, lane, best, of)
	}
	for i := len(of) - 1; i >= 0 && c.at+n < least; i-- {
		of[i].force = true // a filler, or a single entry that leaves a half free
		n, _ = count(of, c.free)
	}
	return of
}

// dropLast moves the last entry of a quad to the COO remainder.
func (p *packer[U]) dropLast(s streamOf, j, lane, i int, of []quad) {
	r, c := Quad(lane, i%quads)
	last := bits.Len8(of[i].has) - 1
	of[i].has &^= 1 << last
	width, col := p.steps*StepCols, i/quads*StepCols+c+last
	p.remainder[r] = append(p.remainder[r], entry[U]{uint32((s.first+j)*width + col), p.tile[r*width+col]})
}

// writeQuads writes a lane's values of step k of a segment, and its mask. A slot without an entry gets a column that
// the other slot does not have.
func (p *packer[U]) writeQuads(c *pairChain, of []quad, mask []uint32, lane, k int, values []U, stored []uint32) {
	width := p.steps * StepCols
	for i, q := range of {
		if q.has == 0 && !q.force {
			continue
		}
		r, col := Quad(lane, i)
		tile := p.tile[r*width+k*StepCols+col:]
		put := func(half, col int) {
			at := (c.at-1)*Chains + 2*lane + half
			values[at] = tile[col]
			stored[at/32] |= 1 << (at % 32)
		}
		first, last := bits.TrailingZeros8(q.has), bits.Len8(q.has)-1
		x := Pair{Next: true, Col: [2]int{0, 1}}
		switch {
		case q.has&(q.has-1) != 0:
			x.Upper, x.Col = true, [2]int{first, last}
			c.at, c.free = c.at+1, false
			put(0, first)
			put(1, last)
		case q.has != 0 && c.free && !q.force:
			x = Pair{Upper: true, Col: [2]int{b2i(first == 0), first}}
			c.free = false
			put(1, first)
		default:
			c.at, c.free = c.at+1, true
			if q.has != 0 {
				x.Col = [2]int{first, 3 - b2i(first == 3)}
				put(0, first)
			}
		}
		x.set(mask, lane, i)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkPairs checks that the chains of a stream stay within their windows, and their values.
func (m *Matrix[T]) checkPairs(number int, s streamOf) error {
	var taken [Chains]int
	for l := range lanes {
		at, err := m.checkChain(number, s, l)
		if err != nil {
			return err
		}
		taken[2*l], taken[2*l+1] = at, at
	}
	return m.checkValues(number, &taken)
}

// checkChain follows a lane's chain and returns the number of words that it takes.
func (m *Matrix[T]) checkChain(number int, s streamOf, lane int) (at int, err error) {
	free := false
	lost := func() bool { // the upper half of the last word is an entry, but no quad has it
		return free && m.isStored(Chains*(int(m.StreamPtr[number])+at-1)+2*lane+1)
	}
	n := m.SegmentSteps * stepWords(Pairs)
	for j := range s.count {
		least, most := limits(j, s.count, s.segmentRows, m.Window, s.rows, 1)
		for i := range m.SegmentSteps * quads {
			x := PairAt(s.mask[j*n+i/quads*stepWords(Pairs):], lane, i%quads)
			if x.Next {
				if at++; at > most {
					return 0, fmt.Errorf("takes %d words of chain %d in segment %d: need at most %d", at, lane, j, most)
				}
				at--
				if lost() {
					return 0, fmt.Errorf("has an entry in the upper half of word %d of chain %d that belongs to no column", at-1, lane)
				}
				at, free = at+1, true
			}
			if x.Upper {
				if !free {
					return 0, fmt.Errorf("takes the upper half of word %d of chain %d twice, or of none", at-1, lane)
				}
				free = false
			}
			if x.Next && x.Upper && x.Col[0] >= x.Col[1] {
				return 0, fmt.Errorf("has columns %d and %d in a pair of chain %d: need ascending ones", x.Col[0], x.Col[1], lane)
			}
		}
		if at < least {
			return 0, fmt.Errorf("takes %d words of chain %d by the end of segment %d: need %d or more", at, lane, j, least)
		}
	}
	if lost() {
		return 0, fmt.Errorf("has an entry in the upper half of word %d of chain %d that belongs to no column", at-1, lane)
	}
	return at, nil
}

// eachPair is each for layout Pairs.
func (m *Matrix[T]) eachPair(g int, f func(r, col, at int)) {
	for q := range m.Splits {
		s := m.stream(g, q)
		var last [lanes]int // index of each chain's last word
		for l := range last {
			last[l] = Chains*(int(m.StreamPtr[g*m.Splits+q])-1) + 2*l
		}
		for n := range s.count * m.SegmentSteps {
			m.eachOfStep(s.mask[n*stepWords(Pairs):], &last,
				func(r, col, at int) { f(r, (s.first*m.SegmentSteps+n)*StepCols+col, at) })
		}
	}
}

// eachOfStep visits one step, in the order of columns.
func (m *Matrix[T]) eachOfStep(mask []uint32, last *[lanes]int, f func(r, col, at int)) {
	var places [GroupRows][StepCols]int
	var has [GroupRows]uint32
	for l := range lanes {
		for i := range quads {
			x := PairAt(mask, l, i)
			r, c := Quad(l, i)
			take := func(col, at int) {
				if m.isStored(at) {
					places[r][c+col] = at
					has[r] |= 1 << (c + col)
				}
			}
			if x.Next {
				last[l] += Chains
				take(x.Col[0], last[l])
			}
			if x.Upper {
				take(x.Col[1], last[l]+1)
			}
		}
	}
	for r, x := range has {
		for ; x != 0; x &= x - 1 {
			col := bits.TrailingZeros32(x)
			f(r, col, places[r][col])
		}
	}
}
