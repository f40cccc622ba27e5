// From CSR to blocks, strips and steps, and back.

package jigsaw

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowmerge"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Options are the options of Encode.
type Options struct {
	BlockTile int // rows of a block: a multiple of 16 up to MaxBlock; the paper's are 16, 32 and 64
	// Span, if positive, bounds how far apart in a block's list the columns are that are used at about the
	// same time. It must be at least 32. See the package comment.
	Span int
	// AvoidConflicts deals columns so that the eight whose rows of B an instruction reads from shared
	// memory at once differ in their position mod 8, which are as many groups of banks when the rows
	// are an odd number of 16 bytes apart (§3.4.1). It leaves places empty rather than break that.
	AvoidConflicts bool
}

// block is a block while it is packed.
type block struct {
	cols    []uint32
	strips  []packed
	retried int64
}

// packed is a strip of a block: what packer made of it.
type packed struct {
	cols  []candidate
	steps []step
}

// Encode packs a. It uses all cores and takes about a microsecond for each column of a tile. The error wraps
// ErrTooLarge if there are more slots than formats.MaxSlots.
func Encode[T formats.Value](a *formats.CSR[T], o Options) (*Matrix[T], error) {
	if o.BlockTile < StripRows || o.BlockTile > MaxBlock || o.BlockTile%StripRows != 0 {
		return nil, fmt.Errorf("jigsaw: blocks of %d rows: need a multiple of %d up to %d", o.BlockTile, StripRows, MaxBlock)
	}
	if o.Span < 0 || o.Span > 0 && o.Span < StepCols || o.Span > spanMax {
		return nil, fmt.Errorf("jigsaw: a span of %d positions: need 0 or %d to %d", o.Span, StepCols, spanMax)
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	m := &Matrix[T]{BlockTile: o.BlockTile, Span: o.Span, Rows: a.Rows, Cols: a.Cols}
	made := make([]block, blocks(a.Rows, o.BlockTile))
	packers := sync.Pool{New: func() any { return &packer{span: uint32(o.Span), banks: o.AvoidConflicts} }}
	par.Each(len(made), 1, func(b int) {
		p := packers.Get().(*packer)
		made[b] = pack(a, b, o.BlockTile/StripRows, p)
		packers.Put(p)
	})
	if err := m.allocate(made); err != nil {
		return nil, err
	}
	par.Each(len(made), 1, func(b int) { write(m, a, b, &made[b]) })
	m.Order = slots.HeaviestFirst(len(made), m.weight)
	return m, nil
}

// walk begins a walk of strip s's rows.
func walk[T formats.Value](a *formats.CSR[T], s int) *rowmerge.Walk {
	var w rowmerge.Walk
	for i := s * StripRows; i < min(a.Rows, (s+1)*StripRows); i++ {
		w.Add(a.RowPtr[i], a.RowPtr[i+1], a.ColIdx)
	}
	return &w
}

// pack finds block b's columns and cuts its strips into steps.
func pack[T formats.Value](a *formats.CSR[T], b, strips int, p *packer) block {
	made := block{strips: make([]packed, strips)}
	for i := range made.strips {
		s := &made.strips[i]
		for w := walk(a, b*strips+i); w.Next(a.ColIdx); {
			s.cols = append(s.cols, candidate{uint32(w.Col), uint16(w.Took)})
			made.cols = append(made.cols, uint32(w.Col))
		}
	}
	slices.Sort(made.cols)
	made.cols = slices.Clip(slices.Compact(made.cols))
	before := p.retried
	for i := range made.strips {
		s := &made.strips[i]
		at := uint32(0)
		for j := range s.cols { // columns to positions
			for made.cols[at] != s.cols[j].pos {
				at++
			}
			s.cols[j].pos = at
		}
		p.cols = s.cols
		p.pack()
		s.steps = slices.Clone(p.steps)
	}
	made.retried = p.retried - before
	return made
}

// allocate makes the arrays and says where blocks and strips begin in them.
func (m *Matrix[T]) allocate(made []block) error {
	m.BlockPtr = make([]uint32, len(made)+1)
	m.StepPtr = make([]uint32, 1, len(made)*m.stripsOf()+1)
	var cols, steps uint64
	for b := range made {
		cols += uint64(len(made[b].cols))
		m.Retried += made[b].retried
		for _, s := range made[b].strips {
			steps += uint64(len(s.steps))
			m.StepPtr = append(m.StepPtr, uint32(steps))
		}
		m.BlockPtr[b+1] = uint32(cols)
		if max(steps*StepSlots, cols) > formats.MaxSlots {
			return fmt.Errorf("%w: more than %d value slots by row %d of %d", ErrTooLarge, int64(formats.MaxSlots),
				b*m.BlockTile, m.Rows)
		}
	}
	m.ColIdx = make([]uint32, cols)
	m.BlockColIdx = make([]uint32, steps*StepCols)
	m.Metadata = make([]uint32, steps*metaWords)
	m.Values = make([]T, steps*StepSlots)
	m.Mask = make([]uint32, steps*maskWords)
	return nil
}

// write fills block b's part of the arrays.
func write[T formats.Value](m *Matrix[T], a *formats.CSR[T], b int, made *block) {
	copy(m.ColIdx[m.BlockPtr[b]:], made.cols)
	for i := range made.strips {
		s := b*len(made.strips) + i
		m.writeStrip(int(m.StepPtr[s]), &made.strips[i])
		writeValues(m, a, s, &made.strips[i])
	}
}

// writeStrip writes the indices of a strip whose first step is number n.
func (m *Matrix[T]) writeStrip(n int, made *packed) {
	var last uint32
	for i := range made.steps {
		x := &made.steps[i]
		last = made.positions(x, last, m.BlockColIdx[(n+i)*StepCols:][:StepCols])
		for t := range 2 {
			for r := range StripRows {
				word, shift := slot{r: r, t: t}.place(n + i)
				m.Metadata[word] |= uint32(made.metadata(x, r, t)) << shift
			}
		}
	}
}

// writeValues writes the values of strip s and their bits in Mask, walking its rows again.
func writeValues[T formats.Value](m *Matrix[T], a *formats.CSR[T], s int, made *packed) {
	places := make([]int, len(made.cols)) // of each column, from the matrix's first step
	for i := range made.steps {
		for k, c := range made.steps[i] {
			if c != noColumn {
				places[c] = (int(m.StepPtr[s])+i)*StepCols + k
			}
		}
	}
	w := walk(a, s)
	for _, at := range places {
		w.Next(a.ColIdx)
		n, k := at/StepCols, at%StepCols
		for took := w.Took; took != 0; took &= took - 1 {
			r := bits.TrailingZeros32(took)
			x := slot{r: r, t: k / TileCols, q: k % TileCols / 4}
			if m.column(n, x) != k {
				x.e = 1
			}
			i := x.index()
			m.Values[n*StepSlots+i] = a.Val[w.Entry(r)]
			m.Mask[n*maskWords+i/32] |= 1 << (i % 32)
		}
	}
}

// weight returns how many steps block b has.
func (m *Matrix[T]) weight(b uint32) uint32 {
	strips := m.stripsOf()
	return m.StepPtr[(int(b)+1)*strips] - m.StepPtr[int(b)*strips]
}
