// From CSR to tiles and back.

package tiledcsr

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowmerge"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Options are the options of Encode. The zero Options are the paper's shape with this package's parameters of the row
// shuffle.
type Options struct {
	Height int // rows of a group: 2, 4, 8, 16 or 32; 0 means 8

	// Keep leaves rows in their order: there is no row shuffle.
	Keep bool
	// Threshold is that of similar matching: rows match whose union is less than 1+Threshold times as
	// long as the longer one. 0 means 0.1; negative: none match.
	Threshold float64
	// Complement is that of complementary matching: the most columns that a slot of complementary rows
	// may have. 0 means 16, one tile; negative: none match.
	Complement int
	// Bin is how many rows may fail to match before a slot is closed, at least Height. 0 means 64.
	// As many as there are rows is the paper's exhaustive search, in quadratic time.
	Bin int
}

// withDefaults fills the options in and checks them.
func (o Options) withDefaults() (Options, error) {
	if o.Height == 0 {
		o.Height = 8
	}
	if o.Threshold == 0 {
		o.Threshold = 0.1
	}
	if o.Complement == 0 {
		o.Complement = TileCols
	}
	if o.Bin == 0 {
		o.Bin = 64
	}
	if err := checkHeight(o.Height); err != nil {
		return o, err
	}
	if o.Bin < o.Height || o.Bin > math.MaxInt32 {
		return o, fmt.Errorf("tiledcsr: a bin of %d rows: need %d to %d", o.Bin, o.Height, math.MaxInt32)
	}
	if math.IsNaN(o.Threshold) {
		return o, fmt.Errorf("tiledcsr: threshold %v: need a number", o.Threshold)
	}
	return o, nil
}

func checkHeight(h int) error {
	if h < 2 || h > MaxHeight || h&(h-1) != 0 {
		return fmt.Errorf("tiledcsr: groups of %d rows: need 2, 4, 8, 16 or 32", h)
	}
	return nil
}

// grain is the groups that a core takes at a time.
const grain = 16

// Encode packs a. It uses all cores and takes time proportional to the slots that it writes and, for the row shuffle,
// to the entries times Bin. The error wraps ErrTooLarge if there are more slots than formats.MaxSlots.
func Encode[T formats.Value](a *formats.CSR[T], o Options) (*Matrix[T], error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := a.Validate(); err != nil {
		return nil, err
	}
	m := &Matrix[T]{Height: o.Height, Rows: a.Rows, Cols: a.Cols}
	if err := m.arrange(a, shuffled(a, o)); err != nil {
		return nil, err
	}
	groups := len(m.TilePtr) - 1
	tiles := int(m.TilePtr[groups])
	m.ColIdx = make([]uint32, tiles*TileCols)
	m.Values = make([]T, len(m.ColIdx)*m.Height)
	m.Mask = make([]uint32, len(m.Values)/32)
	par.Each(groups, grain, func(g int) { m.pack(a, g) })
	return m, nil
}

// arrange sets RowIdx and TilePtr: every Height rows of order make a group.
func (m *Matrix[T]) arrange(a *formats.CSR[T], order []uint32) error {
	groups := Groups(a.Rows, m.Height)
	tiles := make([]uint32, groups)
	rows := func(g int) []uint32 { return order[g*m.Height : min(a.Rows, (g+1)*m.Height)] }
	par.Each(groups, grain, func(g int) {
		slices.Sort(rows(g))
		var w rowmerge.Walk
		columns := uint32(0)
		for start(&w, a, rows(g)); w.Next(a.ColIdx); {
			columns++
		}
		tiles[g] = (columns + TileCols - 1) / TileCols
	})
	m.RowIdx = make([]uint32, 0, groups*m.Height)
	m.TilePtr = make([]uint32, 1, groups+1)
	var sum uint64
	for _, g := range slots.HeaviestFirst(groups, func(g uint32) uint32 { return tiles[g] }) {
		sum += uint64(tiles[g])
		if sum*TileCols*uint64(m.Height) > formats.MaxSlots {
			return fmt.Errorf("%w: more than %d value slots", ErrTooLarge, int64(formats.MaxSlots))
		}
		m.TilePtr = append(m.TilePtr, uint32(sum))
		m.RowIdx = append(m.RowIdx, rows(int(g))...)
		for len(m.RowIdx)%m.Height != 0 {
			m.RowIdx = append(m.RowIdx, NoRow)
		}
	}
	return nil
}

// start begins a walk of rows; only the last may be NoRow.
func start[T formats.Value](w *rowmerge.Walk, a *formats.CSR[T], rows []uint32) {
	for _, r := range rows {
		if r != NoRow {
			w.Add(a.RowPtr[r], a.RowPtr[r+1], a.ColIdx)
		}
	}
}

// pack writes group g's tiles.
func (m *Matrix[T]) pack(a *formats.CSR[T], g int) {
	q, end := int(m.TilePtr[g])*TileCols, int(m.TilePtr[g+1])*TileCols
	var col uint32
	var w rowmerge.Walk
	for start(&w, a, m.rows(g)); w.Next(a.ColIdx); q++ {
		col = uint32(w.Col)
		m.ColIdx[q] = col
		at := q * m.Height
		values := m.Values[at:][:m.Height]
		for took := w.Took; took != 0; took &= took - 1 {
			r := bits.TrailingZeros32(took)
			values[r] = a.Val[w.Entry(r)]
		}
		m.Mask[at/32] |= w.Took << (at % 32) // a tile has words of its own
	}
	for ; q < end; q++ {
		m.ColIdx[q] = col
	}
}

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] { return m.entries().CSR() }

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// all other arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded { return m.with(nil) }

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := m.with(make([]T, len(m.ColIdx)*m.Height))
	out.entries().Set(values)
	return out
}

func (m *Matrix[T]) entries() entries.Of[T] {
	return entries.Of[T]{Rows: m.Rows, Cols: m.Cols, Panels: len(m.TilePtr) - 1, Grain: grain, Panel: m.group}
}

// group calls f for each stored entry of group g: its row, its column and its value, by ascending column and then row.
func (m *Matrix[T]) group(g int, f func(row, col int, v *T)) {
	rows := m.rows(g)
	for q := int(m.TilePtr[g]) * TileCols; q < int(m.TilePtr[g+1])*TileCols; q++ {
		for w := m.colMask(q); w != 0; w &= w - 1 {
			r := bits.TrailingZeros32(w)
			f(int(rows[r]), int(m.ColIdx[q]), &m.Values[q*m.Height+r])
		}
	}
}

// with returns the matrix with other slots.
func (m *Matrix[T]) with(values []T) *Matrix[T] {
	out := *m
	out.Values = values
	return &out
}
