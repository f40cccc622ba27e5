// From CSR to lane streams.

package lanestream

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// restShare says for what share of the values room is kept for the remainder's; with more they are copied.
const restShare = 64

// Options say how a matrix is packed.
type Options struct {
	// Layout is Places, Pairs or ByDensity.
	Layout int
	// Parts is the number of streams of a group of 64 rows, 1 to MaxParts; 0 means 1. A warp multiplies a stream.
	Parts int
	// PieceSteps is the number of steps of 32 columns in a segment, 1, 2 or 4, and Window the number of segments of values
	// that a step may read from, 2 or 3. 0 means by density.
	PieceSteps, Window int
	// RingRows says that a reader's ring has room for fewer rows of values than MaxPieceRows says; 0: it has not.
	RingRows int
}

// leastRows is the least number of rows of a segment.
const leastRows = 4

// most returns how many rows a segment may have.
func (o Options) most(pieceSteps, window int) int {
	return min(ringRows, cmp.Or(o.RingRows, ringRows))/(window+1) - maskRows(o.Layout)*pieceSteps
}

// ByDensity is an option: Pairs for matrices whose density is at most mostPairs, else Places.
const (
	ByDensity = 2
	mostPairs = 0.15
)

// LayoutFor returns the layout that ByDensity stands for.
func LayoutFor(rows, cols, entries int) int {
	return layoutFor(float64(entries) / max(1, float64(rows)*float64(cols)))
}

func layoutFor(density float64) int {
	if density <= mostPairs {
		return Pairs
	}
	return Places
}

// resolve checks the options, and sets those that are left to the density of the matrix.
func (o Options) resolve(density float64) (Options, error) {
	if o.Parts == 0 {
		o.Parts = 1
	}
	if o.Layout == ByDensity {
		o.Layout = layoutFor(density)
	}
	mean := density * Chains / 2 // rows of values that a step needs
	if o.Layout == Pairs {
		mean = pairRows(density)
	}
	if o.PieceSteps == 0 {
		o.PieceSteps = 1
		spare := 1 // rows; where the ring is small they count
		if o.RingRows != 0 {
			spare = 0
		}
		for _, n := range []int{2, 4} {
			if mean*float64(n) <= 1.01*float64(o.most(n, 2)-spare) {
				o.PieceSteps = n
			}
		}
	}
	if o.Window == 0 {
		o.Window = 2
		if 1.1*mean*float64(o.PieceSteps) <= float64(o.most(o.PieceSteps, 3)) {
			o.Window = 3
		}
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Layout != Places && o.Layout != Pairs:
		return fmt.Errorf("lanestream: layout %d: need %d, %d or, to encode, %d", o.Layout, Places, Pairs, ByDensity)
	case o.Parts < 1 || o.Parts > MaxParts:
		return fmt.Errorf("lanestream: %d parts: need 1 to %d", o.Parts, MaxParts)
	case o.PieceSteps != 1 && o.PieceSteps != 2 && o.PieceSteps != 4:
		return fmt.Errorf("lanestream: segments of %d steps: need 1, 2 or 4", o.PieceSteps)
	case o.Window != 2 && o.Window != 3:
		return fmt.Errorf("lanestream: a window of %d segments: need 2 or 3", o.Window)
	case o.RingRows != 0 && o.most(o.PieceSteps, o.Window) < leastRows:
		return fmt.Errorf("lanestream: a ring of %d rows: need %d or more", o.RingRows,
			(o.Window+1)*(leastRows+maskRows(o.Layout)*o.PieceSteps))
	}
	return nil
}

// Encode packs a. It uses all cores and takes time proportional to the entries and to Rows·Cols/32. A matrix whose mask
// or values need more than formats.MaxSlots numbers is ErrTooLarge, and so is one that is formats.MostlyEmpty.
func Encode[T formats.Value](a *formats.CSR[T], o Options) (*Matrix[T], error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	density := 0.0
	if len(a.Val) > 0 {
		density = float64(len(a.Val)) / (float64(a.Rows) * float64(a.Cols))
	}
	o, err := o.resolve(density)
	if err != nil {
		return nil, err
	}
	m := &Matrix[T]{Rows: a.Rows, Cols: a.Cols, Layout: o.Layout, Parts: o.Parts, PieceSteps: o.PieceSteps,
		Window: o.Window}
	if unsafe.Sizeof(*new(T)) == 2 {
		err = pack(m, o, a, rawOf[uint16](a.Val), func() []uint16 { return rawOf[uint16](m.Values) })
	} else {
		err = pack(m, o, a, rawOf[uint32](a.Val), func() []uint32 { return rawOf[uint32](m.Values) })
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// pack fills the arrays of m, whose sizes are set; values returns m's values as bits once they are allocated.
func pack[T formats.Value, U raw](m *Matrix[T], o Options, a *formats.CSR[T], val []U, values func() []U) error {
	groups, steps := m.Groups(), m.Pieces()*m.PieceSteps
	if int64(groups)*int64(max(1, steps)) > int64(formats.MaxSlots/stepWords(m.Layout)) || m.Rows >= formats.MaxSlots {
		return fmt.Errorf("%w: %d bits of a mask for %d×%d", ErrTooLarge,
			int64(groups)*int64(steps)*32*int64(stepWords(m.Layout)), m.Rows, m.Cols)
	}
	if words := int64(groups) * int64(steps) * int64(stepWords(m.Layout)); formats.MostlyEmpty(words, a.NNZ()) {
		return fmt.Errorf("%w: %d words of a mask for %d entries", ErrTooLarge, words, a.NNZ())
	}
	layouts := make([]layout, groups*m.Parts)
	packers := sync.Pool{New: func() any { return newPacker[T, U](m, o, a, val) }}
	par.Each(groups, 1, func(g int) {
		p := packers.Get().(*packer[U])
		defer packers.Put(p)
		for q := range m.Parts {
			if m.Layout == Pairs {
				layouts[g*m.Parts+q] = p.layoutPairs(g, q)
			} else {
				layouts[g*m.Parts+q] = p.layout(g, q)
			}
		}
	})
	if err := m.allocate(layouts); err != nil {
		return err
	}
	rest := make([][GroupRows][]entry[U], groups)
	out := values() // without the remainder's
	par.Each(groups, 1, func(g int) {
		p := packers.Get().(*packer[U])
		defer packers.Put(p)
		for q := range m.Parts {
			s := g*m.Parts + q
			write := p.write
			if m.Layout == Pairs {
				write = p.writePairs
			}
			write(m.stream(g, q), out[Chains*int(m.StreamPtr[s]):Chains*int(m.StreamPtr[s+1])], m.Stored[storedBits*int(m.StreamPtr[s]):])
		}
		for r := range rest[g] {
			rest[g][r] = slices.Clone(p.rest[r])
			p.rest[r] = p.rest[r][:0]
		}
	})
	return joinRest(m, rest, func() []U { return values()[m.Slots():] })
}

// allocate makes the arrays for streams that are laid out.
func (m *Matrix[T]) allocate(layouts []layout) error {
	m.StreamPtr, m.PieceRows = make([]uint32, len(layouts)+1), make([]uint32, len(layouts))
	var rows int64
	for s, l := range layouts {
		rows += int64(l.rows)
		if rows > formats.MaxSlots/Chains {
			return fmt.Errorf("%w: more than %d values by row %d of %d", ErrTooLarge, int64(formats.MaxSlots),
				s/m.Parts*GroupRows, m.Rows)
		}
		m.StreamPtr[s+1], m.PieceRows[s] = uint32(rows), uint32(l.pieceRows)
	}
	m.Mask = make([]uint32, m.Groups()*m.Pieces()*m.PieceSteps*stepWords(m.Layout))
	m.Values = make([]T, rows*Chains, rows*Chains+rows*Chains/restShare) // the remainder's follow
	m.Stored = make([]uint32, rows*storedBits)
	return nil
}

// stream returns part q of group g, without its values.
func (m *Matrix[T]) stream(g, q int) streamOf {
	s := g*m.Parts + q
	first, end := m.FirstPiece(q), m.FirstPiece(q+1)
	at := func(piece int) int { return (g*m.Pieces() + piece) * m.PieceSteps * stepWords(m.Layout) }
	return streamOf{
		group: g, first: first, count: end - first,
		rows: int(m.StreamPtr[s+1] - m.StreamPtr[s]), pieceRows: int(m.PieceRows[s]),
		mask: m.Mask[at(first):at(end)],
	}
}

// streamOf is a stream but for its values.
type streamOf struct {
	group        int
	first, count int // segments
	rows         int // of values
	pieceRows    int
	mask         []uint32 // of its segments
}

// entry is an entry of the COO remainder.
type entry[U raw] struct {
	col uint32
	val U
}

// packer packs the streams of one group after the other.
type packer[U raw] struct {
	rows, cols    int
	rowPtr        []int64
	colIdx        []int32
	val           []U
	steps, window int // of a segment; in segments
	first         func(part int) int
	planner       planner
	chain         [StepCols]uint8 // of a column of a step, in row 0
	bit           [StepCols]uint8 // of a segment's column in its chain's word, in row 0

	rest  [GroupRows][]entry[U]
	next  [GroupRows]int64     // entry of each row
	tile  []U                  // a segment's values: rows of steps·StepCols
	taken [Chains]words        // its entries, layout Places
	has   [GroupRows][4]uint32 // its entries, layout Pairs: a word of each step
	quads [4 * quads]quad      // of a lane
}

func newPacker[T formats.Value, U raw](m *Matrix[T], o Options, a *formats.CSR[T], val []U) *packer[U] {
	p := &packer[U]{
		rows: a.Rows, cols: a.Cols, rowPtr: a.RowPtr, colIdx: a.ColIdx, val: val, steps: m.PieceSteps, window: m.Window,
		first:   m.FirstPiece,
		planner: newPlanner(o),
		tile:    make([]U, GroupRows*m.PieceSteps*StepCols),
	}
	for col := range StepCols {
		chain, _, i := position(0, col)
		p.chain[col], p.bit[col] = uint8(chain), uint8(i)
	}
	return p
}

// rowsOf returns the rows that there are of a group.
func (p *packer[U]) rowsOf(group int) int { return min(GroupRows, p.rows-group*GroupRows) }

// seek sets next to the first entries of group g from column col on.
func (p *packer[U]) seek(g, col int) {
	for r := range p.rowsOf(g) {
		begin, end := p.rowPtr[g*GroupRows+r], p.rowPtr[g*GroupRows+r+1]
		n, _ := slices.BinarySearch(p.colIdx[begin:end], int32(min(col, p.cols)))
		p.next[r] = begin + int64(n)
	}
}

// layout lays part q of group g out.
func (p *packer[U]) layout(g, q int) layout {
	first, last := p.first(q), p.first(q+1)
	counts := p.planner.begin((last - first) * Chains)
	width := p.steps * StepCols
	shift := bits.TrailingZeros(uint(width))
	p.seek(g, first*width)
	for r := range p.rowsOf(g) {
		of := r % 8 * 8
		end := p.rowPtr[g*GroupRows+r+1]
		for i := p.next[r]; i < end; i++ {
			piece := int(p.colIdx[i])>>shift - first
			if piece >= last-first {
				break
			}
			counts[piece*Chains+of+int(p.chain[p.colIdx[i]%StepCols])]++
		}
	}
	return p.planner.plan()
}

// write writes a stream: its mask and values; what does not fit is added to the remainder.
func (p *packer[U]) write(s streamOf, values []U, stored []uint32) {
	var reached [Chains]int
	p.seek(s.group, s.first*p.steps*StepCols)
	for j := range s.count {
		p.bring(s.group, s.first+j)
		least, most := limits(j, s.count, s.pieceRows, p.window, s.rows, 0)
		mask := s.mask[j*p.steps*stepWords(Places):][:p.steps*stepWords(Places)]
		for c := range Chains {
			reached[c] = p.writeChain(s, j, c, reached[c], least, most, mask, values, stored)
		}
	}
}

// bring reads the entries of a segment to the tile and to taken.
func (p *packer[U]) bring(g, piece int) {
	width := p.steps * StepCols
	begin, end := piece*width, (piece+1)*width
	p.taken = [Chains]words{}
	for r := range p.rowsOf(g) {
		i, stop := p.next[r], p.rowPtr[g*GroupRows+r+1]
		row := p.tile[r*width:][:width]
		chains := p.taken[r%8*8:][:8]
		bit := uint16(1) << (r>>3&1 | r>>4<<2)
		for ; i < stop && int(p.colIdx[i]) < end; i++ {
			col := int(p.colIdx[i]) - begin
			row[col] = p.val[i]
			chains[p.chain[col%StepCols]][col/16&7] |= bit << p.bit[col%StepCols]
		}
		p.next[r] = i
	}
}

// writeChain writes a chain's values of segment j, from row `at` on, and returns the row that it has reached then.
func (p *packer[U]) writeChain(s streamOf, j, c, at, least, most int, mask []uint32, values []U, stored []uint32) int {
	n := p.steps * chainWords
	has := &p.taken[c]
	count := has.count(n)
	for ; at+count > most; count-- {
		p.drop(s, j, c)
	}
	takes := *has
	for w := 0; w < n && at+count < least; w++ { // fillers
		for ; at+count < least && takes[w] != 0xffff; count++ {
			takes[w] |= takes[w] + 1
		}
	}
	width := p.steps * StepCols
	base := c / 8 * width
	for w := range n {
		x := takes[w]
		if x == 0 {
			continue
		}
		mask[w/chainWords*stepWords(Places)+c/2*chainWords+w%chainWords] |= spread(uint32(x)) << (c % 2)
		tile := p.tile[base+16*w+4*(c%2)+c%8/2:]
		for ; x != 0; x &= x - 1 {
			i := bits.TrailingZeros16(x)
			if has[w]>>i&1 != 0 {
				stored[at*storedBits+c/32] |= 1 << (c % 32)
				values[at*Chains+c] = tile[(8*(i&1)+16*(i>>2))*width+8*(i>>1&1)]
			}
			at++
		}
	}
	return at
}

// drop leaves an entry of a chain's segment j to the COO remainder: of the row that has the fewest there.
func (p *packer[U]) drop(s streamOf, j, c int) {
	has := &p.taken[c]
	bestWord, best, bestRow := 0, -1, 0
	for w := range p.steps * chainWords {
		for x := has[w]; x != 0; x &= x - 1 {
			i := bits.TrailingZeros16(x)
			if row, _ := Place(c, 0, i); best < 0 || len(p.rest[row]) < len(p.rest[bestRow]) {
				bestWord, best, bestRow = w, i, row
			}
		}
	}
	_, col := Place(c, bestWord, best)
	width := p.steps * StepCols
	p.rest[bestRow] = append(p.rest[bestRow], entry[U]{uint32((s.first+j)*width + col), p.tile[bestRow*width+col]})
	has[bestWord] &^= 1 << best
}

// joinRest adds the groups' COO remainders to the arrays. values returns the part of m.Values that is theirs.
func joinRest[T formats.Value, U raw](m *Matrix[T], rest [][GroupRows][]entry[U], values func() []U) error {
	m.RestPtr = make([]uint32, m.Rows+1)
	var n int64
	for i := range m.Rows {
		if n += int64(len(rest[i/GroupRows][i%GroupRows])); n > formats.MaxSlots {
			return fmt.Errorf("%w: more than %d entries in the COO remainder", ErrTooLarge, int64(formats.MaxSlots))
		}
		m.RestPtr[i+1] = uint32(n)
	}
	m.RestCol = make([]uint32, n)
	if need := m.Slots() + int(n); need <= cap(m.Values) {
		m.Values = m.Values[:need]
	} else {
		m.Values = append(m.Values, make([]T, n)...)
	}
	val := values()
	par.Range(m.Rows, 1<<10, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			of := rest[i/GroupRows][i%GroupRows]
			slices.SortFunc(of, func(x, y entry[U]) int { return int(int64(x.col) - int64(y.col)) })
			for k, e := range of {
				m.RestCol[int(m.RestPtr[i])+k], val[int(m.RestPtr[i])+k] = e.col, e.val
			}
		}
	})
	return nil
}
