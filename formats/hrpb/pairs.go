// The order of rows by pairs: rows are matched by two, pairs by two, and so on.

package hrpb

import "slices"

// groups are sets of rows, each with the columns in which its rows have entries, laid out as CSR has rows.
type groups struct {
	ptr  []int64
	cols []int32
}

// of returns the columns of group i.
func (g groups) of(i uint32) []int32 { return g.cols[g.ptr[i]:g.ptr[i+1]] }

// pairRows returns the rows in an order in which those of a panel share columns: each row is matched with one that is
// like it, each pair with a pair that is like it, and so on up to groups of together panels. On a mesh numbered line by
// line that makes bricks: 4×2×2 points of a 27-point stencil in a panel, and 4×4×4 in four of them.
//
// Matching is greedy: rows and groups take a mate in their order, the one that shares most columns; or, with bestFirst,
// which takes three times as long, the pairs come first whose columns have the largest Jaccard index, those of both
// over those of either.
func pairRows(rowPtr []int64, colIdx []int32, cols int, bestFirst bool) []uint32 {
	rows := len(rowPtr) - 1
	order := make([]uint32, rows)
	for r := range order {
		order[r] = uint32(r)
	}
	p := &pairer{
		groups: groups{rowPtr, colIdx}, colPtr: make([]int64, cols+1), at: make([]int64, cols), seen: make([]uint32, cols),
		bestFirst: bestFirst, work: orderWork * int64(len(colIdx)+rows),
	}
	for size := 1; size < together*PanelRows && size < rows; size *= 2 {
		sequence := p.sequence(rows / size)
		paired := make([]uint32, 0, rows)
		for _, g := range sequence {
			paired = append(paired, order[int(g)*size:min(rows, (int(g)+1)*size)]...)
		}
		order = paired
		p.join(sequence)
	}
	return order
}

// pairer matches groups of as many rows each. The last group may have fewer: it stays the last, so that the others fill
// whole panels.
type pairer struct {
	groups
	colPtr   []int64  // of each column: where its groups start in groupIdx
	groupIdx []uint32 // ascending
	at       []int64  // of each column, while groupIdx is made
	seen     []uint32 // of each column: the last group that had it, plus 1, while groups are joined

	full      uint32   // groups that are whole
	mate      []uint32 // of each group, or single
	shared    []uint32 // of each group: the columns that it shares with the one that is matched
	near      []uint32 // groups that share some
	bestFirst bool
	work      int64
}

const single = 1<<32 - 1

// sequence returns the groups with those that are matched side by side. Of all of them the first full ones are whole.
func (p *pairer) sequence(full int) []uint32 {
	n := len(p.ptr) - 1
	p.transpose()
	p.full, p.mate, p.shared = uint32(full), slices.Repeat([]uint32{single}, n), make([]uint32, n)
	if p.bestFirst {
		p.matchBest()
	} else {
		p.match()
	}
	sequence := make([]uint32, 0, n)
	alone := uint32(single) // of those that are left, every other waits for the next
	for g := range p.full {
		switch other := p.mate[g]; {
		case other == single && alone == single:
			alone = g
		case other == single:
			sequence, alone = append(sequence, alone, g), single
		case g < other:
			sequence = append(sequence, g, other)
		}
	}
	if alone != single {
		sequence = append(sequence, alone)
	}
	for g := full; g < n; g++ {
		sequence = append(sequence, uint32(g))
	}
	return sequence
}

// match finds mates for the groups in their order.
func (p *pairer) match() {
	for g := range p.full {
		if p.mate[g] != single {
			continue
		}
		if w := p.best(g); w.to != single {
			p.mate[g], p.mate[w.to] = w.to, g
		}
	}
}

// matchBest finds mates for the groups, for those that are most alike first. A candidate whose mate was taken meanwhile
// is replaced by the next best.
func (p *pairer) matchBest() {
	heap := make([]candidate, 0, p.full) // the best on top
	for g := range p.full {
		if w := p.best(g); w.to != single {
			heap = append(heap, w)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	for len(heap) > 0 {
		w := &heap[0]
		if p.mate[w.from] == single && p.mate[w.to] != single {
			*w = p.best(w.from)
		} else if p.mate[w.from] == single {
			p.mate[w.from], p.mate[w.to] = w.to, w.from
		}
		if p.mate[w.from] != single || w.to == single {
			last := len(heap) - 1
			heap[0] = heap[last]
			heap = heap[:last]
		}
		siftDown(heap, 0)
	}
}

// candidate is the best mate for a group.
type candidate struct {
	from, to   uint32
	similarity uint64 // columns of both; where the best come first, their Jaccard index times 2³²
}

// siftDown moves an element of a heap to below those that are better.
func siftDown(h []candidate, i int) {
	better := func(x, y candidate) bool {
		return x.similarity > y.similarity || x.similarity == y.similarity && x.from < y.from
	}
	for 2*i+1 < len(h) {
		below := 2*i + 1
		if below+1 < len(h) && better(h[below+1], h[below]) {
			below++
		}
		if !better(h[below], h[i]) {
			return
		}
		h[i], h[below] = h[below], h[i]
		i = below
	}
}

// best returns the best mate for g of those that have none; to is single if no other shares a column with it.
func (p *pairer) best(g uint32) candidate {
	p.near = p.near[:0]
	for _, c := range p.of(g) {
		found := p.groupIdx[p.colPtr[c]:p.colPtr[c+1]]
		if len(found) > commonCols || p.work < 0 {
			continue
		}
		p.work -= int64(len(found))
		for _, h := range found {
			if h == g || h >= p.full || p.mate[h] != single {
				continue
			}
			if p.shared[h] == 0 {
				p.near = append(p.near, h)
			}
			p.shared[h]++
		}
	}
	best := candidate{from: g, to: single}
	for _, h := range p.near {
		both := uint64(p.shared[h])
		similarity := both
		if p.bestFirst {
			similarity = both << 32 / (uint64(len(p.of(g))+len(p.of(h))) - both)
		}
		if similarity > best.similarity || similarity == best.similarity && h < best.to {
			best.to, best.similarity = h, similarity
		}
		p.shared[h] = 0
	}
	return best
}

// transpose lists the groups of each column.
func (p *pairer) transpose() {
	clear(p.colPtr)
	for _, c := range p.cols {
		p.colPtr[c+1]++
	}
	for c := range p.at {
		p.at[c] = p.colPtr[c]
		p.colPtr[c+1] += p.colPtr[c]
	}
	p.groupIdx = make([]uint32, len(p.cols))
	for g := range uint32(len(p.ptr) - 1) {
		for _, c := range p.of(g) {
			p.groupIdx[p.at[c]] = g
			p.at[c]++
		}
	}
}

// join makes one group of each two that are side by side.
func (p *pairer) join(sequence []uint32) {
	joined := groups{ptr: make([]int64, 1, len(sequence)/2+2), cols: make([]int32, 0, len(p.cols))}
	clear(p.seen)
	for i, g := range sequence {
		for _, c := range p.of(g) {
			if p.seen[c] != uint32(i/2)+1 {
				p.seen[c] = uint32(i/2) + 1
				joined.cols = append(joined.cols, c)
			}
		}
		if i%2 == 1 || i+1 == len(sequence) {
			joined.ptr = append(joined.ptr, int64(len(joined.cols)))
		}
	}
	p.groups = joined
}
