// How many rows of values a segment of a stream has, and how many the stream keeps: what costs least.

package lanestream

import (
	"math"
	"slices"
)

// restCost is the cost of an entry of the COO remainder, in bytes: those that it takes, and the time to fetch a row of
// B for it alone.
const restCost = 16

// layout is how a stream's values are laid out.
type layout struct {
	pieceRows int
	rows      int
}

// planner chooses layouts. Its counts are the entries of each segment, chain by chain: those of segment j begin at
// chains·j.
type planner struct {
	window, most int // segments that a step may read from, rows that a segment may have
	chains, back int // chains of a stream; rows that may still be read, see limits
	counts       []uint16
	ends         [Chains]int
}

func newPlanner(o Options) planner {
	p := planner{window: o.Window, most: o.most(o.PieceSteps, o.Window), chains: Chains}
	if o.Layout == Pairs {
		p.chains, p.back = lanes, 1
		p.most = min(p.most, o.PieceSteps*quads-1) // a row for each quad reaches what must be reached
	}
	return p
}

// begin clears the n counts.
func (p *planner) begin(n int) []uint16 {
	p.counts = slices.Grow(p.counts[:0], n)[:n]
	clear(p.counts)
	return p.counts
}

// plan tries the numbers of rows around the average.
func (p *planner) plan() layout {
	entries := 0
	for _, n := range p.counts {
		entries += int(n)
	}
	pieces := len(p.counts) / p.chains
	if entries == 0 {
		return layout{pieceRows: 1}
	}
	best, least := layout{pieceRows: 1}, restCost*entries // all of it in the COO remainder
	mean := float64(entries) / float64(len(p.counts))
	from, to := int(max(1, math.Floor(0.97*mean))), int(math.Ceil(1.08*mean))+1
	for rows := min(from, p.most); rows <= min(to, p.most); rows++ {
		dropped := p.replay(rows, pieces)
		slices.Sort(p.ends[:p.chains])
		cut := 0 // entries past the rows kept
		for i, keep := p.chains-1, p.ends[p.chains-1]; keep > 0; keep-- {
			for i >= 0 && p.ends[i] > keep {
				i--
			}
			if cost := 2*Chains*keep + restCost*(dropped+cut); cost < least {
				best, least = layout{pieceRows: rows, rows: keep}, cost
			}
			// With a row less, the chains that reach this far lose an entry each.
			n := p.chains - 1 - i
			for k := i; k >= 0 && p.ends[k] == keep; k-- {
				n++
			}
			if cut += n; restCost*cut > least {
				break
			}
		}
	}
	return best
}

// replay has every chain take its values, with this many rows a segment, and returns how many entries go to the COO
// remainder.
func (p *planner) replay(rows, pieces int) (dropped int) {
	p.ends = [Chains]int{}
	for j := range pieces {
		least, most := limits(j, pieces, rows, p.window, math.MaxInt, p.back)
		for c, n := range p.counts[p.chains*j:][:p.chains] {
			end := p.ends[c] + int(n)
			if end > most {
				dropped += end - most
				end = most
			}
			p.ends[c] = max(end, least)
		}
	}
	return dropped
}
