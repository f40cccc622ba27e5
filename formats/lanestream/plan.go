// The choice of a stream's layout: how many rows of values a segment has, and how many rows the stream has.

package lanestream

import (
	"math"
	"slices"
)

// remainderCost is the cost of an entry of the COO remainder in bytes: its own, and those that could be read while its
// row of B is fetched.
const remainderCost = 16

// layout is the layout of a stream's values.
type layout struct {
	segmentRows int
	rows        int
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
	p := planner{window: o.Window, most: o.most(o.SegmentSteps, o.Window), chains: Chains}
	if o.Layout == Pairs {
		p.chains, p.back = lanes, 1
		p.most = min(p.most, o.SegmentSteps*quads-1) // a row for each quad reaches what must be reached
	}
	return p
}

// begin clears the n counts.
func (p *planner) begin(n int) []uint16 {
	p.counts = slices.Grow(p.counts[:0], n)[:n]
	clear(p.counts)
	return p.counts
}

// plan returns the layout of least cost. It tries numbers of rows around the average.
func (p *planner) plan() layout {
	entries := 0
	for _, n := range p.counts {
		entries += int(n)
	}
	segments := len(p.counts) / p.chains
	if entries == 0 {
		return layout{segmentRows: 1}
	}
	best, least := layout{segmentRows: 1}, remainderCost*entries // all of it in the COO remainder
	mean := float64(entries) / float64(len(p.counts))
	from, to := int(max(1, math.Floor(0.97*mean))), int(math.Ceil(1.08*mean))+1
	for rows := min(from, p.most); rows <= min(to, p.most); rows++ {
		dropped := p.replay(rows, segments)
		slices.Sort(p.ends[:p.chains])
		cut := 0 // entries past the rows kept
		for i, keep := p.chains-1, p.ends[p.chains-1]; keep > 0; keep-- {
			for i >= 0 && p.ends[i] > keep {
				i--
			}
			if cost := 2*Chains*keep + remainderCost*(dropped+cut); cost < least {
				best, least = layout{segmentRows: rows, rows: keep}, cost
			}
			// With one row less, each chain that reaches this far loses an entry.
			n := p.chains - 1 - i
			for k := i; k >= 0 && p.ends[k] == keep; k-- {
				n++
			}
			if cut += n; remainderCost*cut > least {
				break
			}
		}
	}
	return best
}

// replay simulates how all chains take their values with this many rows a segment, and returns how many entries go to
// the COO remainder.
func (p *planner) replay(rows, segments int) (dropped int) {
	p.ends = [Chains]int{}
	for j := range segments {
		least, most := limits(j, segments, rows, p.window, math.MaxInt, p.back)
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
