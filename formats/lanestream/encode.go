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

// Encode keeps room behind the values for a COO remainder of 1/remainderShare of them; a larger one is copied.
const remainderShare = 64

// Options are the options of Encode.
type Options struct {
	// Layout is Places, Pairs or ByDensity. The default is Places.
	Layout int
	// Splits is the number of streams of a group of 64 rows, 1 to MaxSplits; 0 means 1. One warp multiplies a stream.
	Splits int
	// SegmentSteps is the number of steps of 32 columns in a segment: 1, 2 or 4. Window is the number of segments of
	// values that a step may read from: 2 or 3. 0 means that Encode chooses by the density.
	SegmentSteps, Window int
	// RingRows is the number of rows of values that a reader's ring has room for, at most 113; 0 means 113.
	RingRows int
}

// leastRows is the least number of rows of a segment.
const leastRows = 4

// most returns the most rows of values that a segment may have.
func (o Options) most(segmentSteps, window int) int {
	return min(ringRows, cmp.Or(o.RingRows, ringRows))/(window+1) - maskRows(o.Layout)*segmentSteps
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
	if o.Splits == 0 {
		o.Splits = 1
	}
	if o.Layout == ByDensity {
		o.Layout = layoutFor(density)
	}
	mean := density * Chains / 2 // rows of values that a step needs
	if o.Layout == Pairs {
		mean = pairRows(density)
	}
	if o.SegmentSteps == 0 {
		o.SegmentSteps = 1
		spare := 1 // rows; a small ring has none to spare
		if o.RingRows != 0 {
			spare = 0
		}
		for _, n := range []int{2, 4} {
			if mean*float64(n) <= 1.01*float64(o.most(n, 2)-spare) {
				o.SegmentSteps = n
			}
		}
	}
	if o.Window == 0 {
		o.Window = 2
		if 1.1*mean*float64(o.SegmentSteps) <= float64(o.most(o.SegmentSteps, 3)) {
			o.Window = 3
		}
	}
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Layout != Places && o.Layout != Pairs:
		return fmt.Errorf("lanestream: layout %d: need %d, %d or, to encode, %d", o.Layout, Places, Pairs, ByDensity)
	case o.Splits < 1 || o.Splits > MaxSplits:
		return fmt.Errorf("lanestream: %d splits: need 1 to %d", o.Splits, MaxSplits)
	case o.SegmentSteps != 1 && o.SegmentSteps != 2 && o.SegmentSteps != 4:
		return fmt.Errorf("lanestream: segments of %d steps: need 1, 2 or 4", o.SegmentSteps)
	case o.Window != 2 && o.Window != 3:
		return fmt.Errorf("lanestream: a window of %d segments: need 2 or 3", o.Window)
	case o.RingRows != 0 && o.most(o.SegmentSteps, o.Window) < leastRows:
		return fmt.Errorf("lanestream: a ring of %d rows: need %d or more", o.RingRows,
			(o.Window+1)*(leastRows+maskRows(o.Layout)*o.SegmentSteps))
	}
	return nil
}

// Encode packs a. It uses all cores and takes time proportional to the entries and to Rows·Cols/32. The error wraps
// ErrTooLarge if the mask or the values have more than formats.MaxSlots elements, or if the mask is
// formats.MostlyEmpty. Invalid options and an invalid a are other errors.
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
	m := &Matrix[T]{Rows: a.Rows, Cols: a.Cols, Layout: o.Layout, Splits: o.Splits, SegmentSteps: o.SegmentSteps,
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
	groups, steps := m.Groups(), m.Segments()*m.SegmentSteps
	if int64(groups)*int64(max(1, steps)) > int64(formats.MaxSlots/stepWords(m.Layout)) || m.Rows >= formats.MaxSlots {
		return fmt.Errorf("%w: %d bits of a mask for %d×%d", ErrTooLarge,
			int64(groups)*int64(steps)*32*int64(stepWords(m.Layout)), m.Rows, m.Cols)
	}
	if words := int64(groups) * int64(steps) * int64(stepWords(m.Layout)); formats.MostlyEmpty(words, a.NNZ()) {
		return fmt.Errorf("%w: %d words of a mask for %d entries", ErrTooLarge, words, a.NNZ())
	}
	layouts := make([]layout, groups*m.Splits)
	packers := sync.Pool{New: func() any { return newPacker[T, U](m, o, a, val) }}
	par.Each(groups, 1, func(g int) {
		p := packers.Get().(*packer[U])
		defer packers.Put(p)
		for q := range m.Splits {
			if m.Layout == Pairs {
				layouts[g*m.Splits+q] = p.layoutPairs(g, q)
			} else {
				layouts[g*m.Splits+q] = p.layout(g, q)
			}
		}
	})
	if err := m.allocate(layouts); err != nil {
		return err
	}
	remainder := make([][GroupRows][]entry[U], groups)
	out := values() // of the streams
	par.Each(groups, 1, func(g int) {
		p := packers.Get().(*packer[U])
		defer packers.Put(p)
		for q := range m.Splits {
			s := g*m.Splits + q
			write := p.write
			if m.Layout == Pairs {
				write = p.writePairs
			}
			write(m.stream(g, q), out[Chains*int(m.StreamPtr[s]):Chains*int(m.StreamPtr[s+1])], m.Stored[storedBits*int(m.StreamPtr[s]):])
		}
		for r := range remainder[g] {
			remainder[g][r] = slices.Clone(p.remainder[r])
			p.remainder[r] = p.remainder[r][:0]
		}
	})
	return joinRemainder(m, remainder, func() []U { return values()[m.Slots():] })
}

// allocate makes the arrays for streams that are laid out.
func (m *Matrix[T]) allocate(layouts []layout) error {
	m.StreamPtr, m.SegmentRows = make([]uint32, len(layouts)+1), make([]uint32, len(layouts))
	var rows int64
	for s, l := range layouts {
		rows += int64(l.rows)
		if rows > formats.MaxSlots/Chains {
			return fmt.Errorf("%w: more than %d values by row %d of %d", ErrTooLarge, int64(formats.MaxSlots),
				s/m.Splits*GroupRows, m.Rows)
		}
		m.StreamPtr[s+1], m.SegmentRows[s] = uint32(rows), uint32(l.segmentRows)
	}
	m.Mask = make([]uint32, m.Groups()*m.Segments()*m.SegmentSteps*stepWords(m.Layout))
	m.Values = make([]T, rows*Chains, rows*Chains+rows*Chains/remainderShare) // the remainder's follow
	m.Stored = make([]uint32, rows*storedBits)
	return nil
}

// stream returns split q of group g, without its values.
func (m *Matrix[T]) stream(g, q int) streamOf {
	s := g*m.Splits + q
	first, end := m.FirstSegment(q), m.FirstSegment(q+1)
	at := func(segment int) int { return (g*m.Segments() + segment) * m.SegmentSteps * stepWords(m.Layout) }
	return streamOf{
		group: g, first: first, count: end - first,
		rows: int(m.StreamPtr[s+1] - m.StreamPtr[s]), segmentRows: int(m.SegmentRows[s]),
		mask: m.Mask[at(first):at(end)],
	}
}

// streamOf is a stream without its values.
type streamOf struct {
	group        int
	first, count int // segments
	rows         int // of values
	segmentRows  int
	mask         []uint32 // of its segments
}

// entry is an entry of the COO remainder.
type entry[U raw] struct {
	col uint32
	val U
}

// packer packs the streams of groups, one group at a time.
type packer[U raw] struct {
	rows, cols    int
	rowPtr        []int64
	colIdx        []int32
	val           []U
	steps, window int // of a segment; in segments
	first         func(split int) int
	planner       planner
	chain         [StepCols]uint8 // of a column of a step, in row 0
	bit           [StepCols]uint8 // of a segment's column in its chain's word, in row 0

	remainder [GroupRows][]entry[U]
	next      [GroupRows]int64     // entry of each row
	tile      []U                  // a segment's values: rows of steps·StepCols
	taken     [Chains]words        // its entries, layout Places
	has       [GroupRows][4]uint32 // its entries, layout Pairs: a word of each step
	quads     [4 * quads]quad      // of a lane
}

func newPacker[T formats.Value, U raw](m *Matrix[T], o Options, a *formats.CSR[T], val []U) *packer[U] {
	p := &packer[U]{
		rows: a.Rows, cols: a.Cols, rowPtr: a.RowPtr, colIdx: a.ColIdx, val: val, steps: m.SegmentSteps, window: m.Window,
		first:   m.FirstSegment,
		planner: newPlanner(o),
		tile:    make([]U, GroupRows*m.SegmentSteps*StepCols),
	}
	for col := range StepCols {
		chain, _, i := position(0, col)
		p.chain[col], p.bit[col] = uint8(chain), uint8(i)
	}
	return p
}

// rowsOf returns the number of rows of a group: 64, or fewer in the last one.
func (p *packer[U]) rowsOf(group int) int { return min(GroupRows, p.rows-group*GroupRows) }

// seek sets next to the first entries of group g from column col on.
func (p *packer[U]) seek(g, col int) {
	for r := range p.rowsOf(g) {
		begin, end := p.rowPtr[g*GroupRows+r], p.rowPtr[g*GroupRows+r+1]
		n, _ := slices.BinarySearch(p.colIdx[begin:end], int32(min(col, p.cols)))
		p.next[r] = begin + int64(n)
	}
}

// layout chooses the layout of split q of group g.
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
			segment := int(p.colIdx[i])>>shift - first
			if segment >= last-first {
				break
			}
			counts[segment*Chains+of+int(p.chain[p.colIdx[i]%StepCols])]++
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
		least, most := limits(j, s.count, s.segmentRows, p.window, s.rows, 0)
		mask := s.mask[j*p.steps*stepWords(Places):][:p.steps*stepWords(Places)]
		for c := range Chains {
			reached[c] = p.writeChain(s, j, c, reached[c], least, most, mask, values, stored)
		}
	}
}

// bring reads the entries of a segment to the tile and to taken.
func (p *packer[U]) bring(g, segment int) {
	width := p.steps * StepCols
	begin, end := segment*width, (segment+1)*width
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
			if row, _ := Place(c, 0, i); best < 0 || len(p.remainder[row]) < len(p.remainder[bestRow]) {
				bestWord, best, bestRow = w, i, row
			}
		}
	}
	_, col := Place(c, bestWord, best)
	width := p.steps * StepCols
	p.remainder[bestRow] = append(p.remainder[bestRow],
		entry[U]{uint32((s.first+j)*width + col), p.tile[bestRow*width+col]})
	has[bestWord] &^= 1 << best
}

// joinRemainder adds the groups' COO remainders to the arrays. values returns the range of m.Values that is theirs.
func joinRemainder[T formats.Value, U raw](m *Matrix[T], remainder [][GroupRows][]entry[U], values func() []U) error {
	m.RemainderPtr = make([]uint32, m.Rows+1)
	var n int64
	for i := range m.Rows {
		if n += int64(len(remainder[i/GroupRows][i%GroupRows])); n > formats.MaxSlots {
			return fmt.Errorf("%w: more than %d entries in the COO remainder", ErrTooLarge, int64(formats.MaxSlots))
		}
		m.RemainderPtr[i+1] = uint32(n)
	}
	m.RemainderCol = make([]uint32, n)
	if need := m.Slots() + int(n); need <= cap(m.Values) {
		m.Values = m.Values[:need]
	} else {
		m.Values = append(m.Values, make([]T, n)...)
	}
	val := values()
	par.Range(m.Rows, 1<<10, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			of := remainder[i/GroupRows][i%GroupRows]
			slices.SortFunc(of, func(x, y entry[U]) int { return int(int64(x.col) - int64(y.col)) })
			for k, e := range of {
				m.RemainderCol[int(m.RemainderPtr[i])+k], val[int(m.RemainderPtr[i])+k] = e.col, e.val
			}
		}
	})
	return nil
}
