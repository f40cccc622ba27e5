// From CSR to condensed panels and back.

package nm

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/entries"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// grain is how many panels a core takes at least: about this many values.
func grain(perPanel int) int { return max(1, 1<<14/max(1, perPanel)) }

// Encode condenses a. It uses all cores and takes time proportional to the entries and the slots. For a matrix that
// does not obey the pattern the error wraps ErrPattern and names the first row (panel) and group with too many entries.
// It wraps ErrTooLarge if there are more than formats.MaxSlots values, or if the matrix is formats.MostlyEmpty.
func Encode[T formats.Value](a *formats.CSR[T], p Pattern) (*Matrix[T], error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	s, err := p.Shape(a.Rows, a.Cols)
	if err != nil {
		return nil, err
	}
	if values := int64(s.Panels) * int64(s.Columns) * int64(p.V); formats.MostlyEmpty(values, a.NNZ()) {
		return nil, fmt.Errorf("%w: %d values for %d entries", ErrTooLarge, values, a.NNZ())
	}
	if p != Sparse24 {
		if err := obeys(a, p, s); err != nil {
			return nil, err
		}
	}
	m := &Matrix[T]{
		Pattern: p, Rows: a.Rows, Cols: a.Cols,
		Values: make([]T, s.Panels*s.Columns*p.V),
		Index:  make([]uint32, s.Panels*s.IndexWords),
		Mask:   make([]uint32, s.Panels*s.MaskWords),
	}
	if p == Sparse24 {
		var broken atomic.Bool
		par.Range(s.Panels, grain(s.Columns), func(lo, hi int) {
			for i := lo; i < hi && !broken.Load(); i++ {
				if !m.fill24(a, s, i) {
					broken.Store(true)
				}
			}
		})
		if broken.Load() {
			return nil, obeys(a, p, s)
		}
		return m, nil
	}
	par.Range(s.Panels, grain(s.Columns*p.V), func(lo, hi int) {
		at := &panel{Pattern: p}
		for i := lo; i < hi; i++ {
			m.fill(a, at, s, i)
		}
	})
	return m, nil
}

// obeys returns an error for the first panel, and its first group, with more than N units.
func obeys[T formats.Value](a *formats.CSR[T], p Pattern, s Shape) error {
	var mu sync.Mutex
	first, err := s.Panels, error(nil)
	par.Range(s.Panels, grain(s.Columns*p.V), func(lo, hi int) {
		at := &panel{Pattern: p}
		for i := lo; i < hi; i++ {
			start(at, a, i)
			g := 0
			for ; g < s.Groups; g++ {
				if step(at, a, g); bits.OnesCount64(at.units) > p.N {
					break
				}
			}
			if g == s.Groups {
				continue
			}
			mu.Lock()
			if i < first {
				first, err = i, at.refusal(a.Cols, g)
			}
			mu.Unlock()
			return
		}
	})
	return err
}

// refusal says what group g of a panel holds.
func (p *panel) refusal(cols, g int) error {
	n, lo := bits.OnesCount64(p.units), g*p.M*p.W
	hi := min(cols, lo+p.M*p.W) - 1
	if p.V == 1 && p.W == 1 {
		return fmt.Errorf("nm: row %d, group %d (columns %d to %d) has %d entries, and %v allows %d: %w",
			p.first, g, lo, hi, n, p.Pattern, p.N, ErrPattern)
	}
	return fmt.Errorf("nm: rows %d to %d, group %d (columns %d to %d) have entries in %d units, and %v allows %d: %w",
		p.first, p.first+p.rows-1, g, lo, hi, n, p.Pattern, p.N, ErrPattern)
}

// kept returns the units of a group's slots: those with entries, and the first others up to N. Units
// past the last column serve when nothing else is left.
func (p *Pattern) kept(units uint64) uint64 {
	for n := bits.OnesCount64(units); n < p.N; n++ {
		units |= units + 1 // the lowest zero bit
	}
	return units
}

// fill writes panel i.
func (m *Matrix[T]) fill(a *formats.CSR[T], at *panel, s Shape, i int) {
	values := m.Values[i*s.Columns*m.V:][:s.Columns*m.V]
	index, mask := m.Index[i*s.IndexWords:][:s.IndexWords], m.Mask[i*s.MaskWords:][:s.MaskWords]
	start(at, a, i)
	for g := range s.Groups {
		step(at, a, g)
		kept := m.kept(at.units)
		slot := g * m.N
		for u := kept; u != 0; u &= u - 1 {
			m.setPlace(index, slot, bits.TrailingZeros64(u))
			slot++
		}
		base := g * m.M * m.W
		for r := range at.rows {
			for e := at.lo[r]; e < at.hi[r]; e++ {
				col := int(a.ColIdx[e]) - base
				unit := m.unit(col)
				slot := g*m.N + bits.OnesCount64(kept&(1<<unit-1))
				v := (slot*m.W+col-unit*m.W)*m.V + r
				values[v] = a.Val[e]
				mask[v/32] |= 1 << (v % 32)
			}
		}
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
	s, _ := m.Shape(m.Rows, m.Cols)
	out := m.with(make([]T, s.Panels*s.Columns*m.V))
	out.entries().Set(values)
	return out
}

// entries are none where the matrix is not valid.
func (m *Matrix[T]) entries() entries.Of[T] {
	s, _ := m.Shape(m.Rows, m.Cols)
	return entries.Of[T]{
		Rows: m.Rows, Cols: m.Cols, Panels: s.Panels, Grain: grain(s.Columns * m.V),
		Panel: func(p int, f func(row, col int, v *T)) { m.panel(s, p, f) },
	}
}

// panel calls f for each stored entry of panel p: its row, its column and its value, by ascending column and then row.
func (m *Matrix[T]) panel(s Shape, p int, f func(row, col int, v *T)) {
	values := m.Values[p*s.Columns*m.V:]
	index, mask := m.Index[p*s.IndexWords:][:s.IndexWords], m.Mask[p*s.MaskWords:]
	v := 0
	for slot := range s.Slots {
		col := (slot/m.N*m.M + m.place(index, slot)) * m.W
		for w := range m.W {
			for r := range m.V {
				if mask[v/32]>>(v%32)&1 != 0 {
					f(p*m.V+r, col+w, &values[v])
				}
				v++
			}
		}
	}
}

// with returns the matrix with other slots.
func (m *Matrix[T]) with(values []T) *Matrix[T] {
	out := *m
	out.Values = values
	return &out
}
