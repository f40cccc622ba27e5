// Graphs and grids: rmat and stencil. A row's edges follow from its number, so that any rows can be made without the
// others.

package gen

import (
	"fmt"
	"math"
	"slices"
)

// size settles the rows and columns of kinds for which they follow from other keys.
func (s *Spec) size() error {
	switch s.Kind {
	case "rmat":
		switch {
		case s.scale > 30:
			return fmt.Errorf("scale=%d: want at most 30", s.scale)
		case s.degree > 1<<16:
			return fmt.Errorf("degree=%d: want at most 65536", s.degree)
		case s.permute > 1:
			return fmt.Errorf("permute=%d: want 0 or 1", s.permute)
		}
		s.Rows = 1 << s.scale
	case "stencil":
		if s.dimensions() == 0 {
			return fmt.Errorf("points=%d: want 5, 7, 9 or 27", s.points)
		}
		s.Rows = 1
		for range s.dimensions() {
			if s.side > math.MaxInt32/s.Rows {
				return fmt.Errorf("side=%d makes more than %d points", s.side, math.MaxInt32)
			}
			s.Rows *= s.side
		}
	}
	return nil
}

// dimensions of a stencil's grid; 0 if there is none with this number of points.
func (s *Spec) dimensions() int {
	return map[int]int{5: 2, 9: 2, 7: 3, 27: 3}[s.points]
}

// In each of an edge's scale levels, its row's bit and its column's are 0 0 with probability a, 0 1 with b, 1 0 with c
// and 1 1 with d. A row has an edge with the product, over its bits, of a+b for a 0 and c+d for a 1; given the row's
// bit, the column's is 1 with probability b/(a+b) or d/(c+d).
const (
	rmatA, rmatB, rmatC, rmatD = 0.57, 0.19, 0.19, 0.05

	columnAfter0 = 1 << 16 / 4      // b/(a+b) times 2¹⁶
	columnAfter1 = 1 << 16 * 5 / 24 // d/(c+d)
	levels       = 4                // that a random number decides
)

// edges returns how many edges of rmat's row g are drawn: about Poisson distributed, and the means of all rows add up
// to degree for each.
func (p *pattern) edges(g int) int {
	mean := float64(p.degree) * float64(p.Rows)
	for vertex, l := p.vertex(g), 0; l < p.scale; l++ {
		if vertex>>l&1 == 0 {
			mean *= rmatA + rmatB
		} else {
			mean *= rmatC + rmatD
		}
	}
	mean32, s := uint64(min(mean, 1<<30)*(1<<32)), p.counts.sub(uint64(g))
	if mean32 < trials/4<<32 {
		return few(s, trials, mean32)
	}
	return max(0, normal(s, mean32, mean32))
}

// targets appends the columns of row g to out, of n edges that are drawn.
func (p *pattern) targets(g, n int, s stream, out []int32) []int32 {
	start, row := len(out), p.vertex(g)
	for e := range n {
		edge, column, random := s.sub(uint64(e)), 0, uint64(0)
		for l := range p.scale {
			if l%levels == 0 {
				random = edge.at(uint64(l / levels))
			}
			likely := uint64(columnAfter0)
			if row>>l&1 == 1 {
				likely = columnAfter1
			}
			if random&0xffff < likely {
				column |= 1 << l
			}
			random >>= 16
		}
		out = append(out, int32(p.number(column)))
	}
	slices.Sort(out[start:])
	return out[:start+len(slices.Compact(out[start:]))]
}

// A permutation of the vertices: rounds of a multiplication by an odd number and a shift that is its own inverse.
const (
	permuteRounds  = 3
	permuteFactor  = golden | 1
	permuteInverse = 0xf1de83e19937733d // times permuteFactor is 1 mod 2⁶⁴
)

// number returns the number of a vertex of rmat, vertex the vertex of a number.
func (p *pattern) number(vertex int) int {
	if p.permute == 0 {
		return vertex
	}
	mask, x := uint64(p.Rows-1), uint64(vertex)
	for round := range uint64(permuteRounds) {
		x = (x + p.turn(round)) * permuteFactor & mask
		x ^= x >> ((p.scale + 1) / 2)
	}
	return int(x)
}

func (p *pattern) vertex(number int) int {
	if p.permute == 0 {
		return number
	}
	mask, x := uint64(p.Rows-1), uint64(number)
	for round := uint64(permuteRounds); round > 0; round-- {
		x ^= x >> ((p.scale + 1) / 2)
		x = (x*permuteInverse - p.turn(round-1)) & mask
	}
	return int(x)
}

// turn is the number that a round adds.
func (p *pattern) turn(round uint64) uint64 { return p.picks.at(round) }

// neighbours calls f for the points of the stencil around point g, itself included, in order, and returns how many
// there are.
func (p *pattern) neighbours(g int, f func(j int)) int {
	side, count := p.side, 0
	x, y, z := g%side, g/side%side, g/side/side
	depth := p.dimensions() - 2 // 1 in a cube
	for dz := -depth; dz <= depth; dz++ {
		for dy := -1; dy <= 1; dy++ {
			for dx := -1; dx <= 1; dx++ {
				cross := p.points == 5 || p.points == 7
				if cross && dx*dx+dy*dy+dz*dz > 1 || x+dx < 0 || x+dx >= side || y+dy < 0 || y+dy >= side || depth > 0 &&
					(z+dz < 0 || z+dz >= side) {
					continue
				}
				count++
				f(g + dx + side*(dy+side*dz))
			}
		}
	}
	return count
}
