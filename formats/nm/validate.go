// Checking arrays that somebody else made.

package nm

import (
	"fmt"
	"math/bits"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays. Errors name the array, the panel and the slot.
func (m *Matrix[T]) Validate() error {
	s, err := m.Shape(m.Rows, m.Cols)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name             string
		have, each, want int
	}{
		{"values", len(m.Values), s.Columns * m.V, s.Panels * s.Columns * m.V},
		{"index words", len(m.Index), s.IndexWords, s.Panels * s.IndexWords},
		{"mask words", len(m.Mask), s.MaskWords, s.Panels * s.MaskWords},
	} {
		if x.have != x.want {
			return fmt.Errorf("nm: %d %s for %d panels of %d: need %d", x.have, x.name, s.Panels, x.each, x.want)
		}
	}
	for p := range s.Panels {
		if err := m.checkPanel(s, p); err != nil {
			return err
		}
	}
	return nil
}

func (m *Matrix[T]) checkPanel(s Shape, p int) error {
	index, mask := m.Index[p*s.IndexWords:][:s.IndexWords], m.Mask[p*s.MaskWords:][:s.MaskWords]
	if tail(index, s.Slots*m.Bits()) || tail(mask, s.Columns*m.V) {
		return fmt.Errorf("nm: panel %d: bits after the last of %d slots", p, s.Slots)
	}
	values := m.Values[p*s.Columns*m.V:][:s.Columns*m.V]
	rows := min(m.V, m.Rows-p*m.V)
	for g := range s.Groups {
		var kept, used uint64
		for n := range m.N {
			slot := g*m.N + n
			place := m.place(index, slot)
			fail := func(what string, args ...any) error {
				return fmt.Errorf("nm: panel %d, group %d, slot %d (place %d): %s", p, g, slot, place, fmt.Sprintf(what, args...))
			}
			switch {
			case place >= m.M:
				return fail("a group has %d units", m.M)
			case kept>>place != 0:
				return fail("not after the slot before")
			}
			kept |= 1 << place
			stored, what := m.checkUnit(values, mask, slot, (g*m.M+place)*m.W, rows)
			if what != "" {
				return fail("%s", what)
			}
			if stored {
				used |= 1 << place
			}
		}
		if kept != m.kept(used) {
			return fmt.Errorf("nm: panel %d, group %d: %d units hold entries, and the ones added to them are not the first others",
				p, g, bits.OnesCount64(used))
		}
	}
	return nil
}

// checkUnit reports whether a slot, whose unit starts at column col, holds an entry, and what is wrong.
func (m *Matrix[T]) checkUnit(values []T, mask []uint32, slot, col, rows int) (stored bool, what string) {
	for w := range m.W {
		for r := range m.V {
			v := (slot*m.W+w)*m.V + r
			switch bit := mask[v/32]>>(v%32)&1 != 0; {
			case bit && r >= rows:
				return false, fmt.Sprintf("an entry below the last of %d rows", m.Rows)
			case bit && col+w >= m.Cols:
				return false, fmt.Sprintf("an entry in column %d of %d", col+w, m.Cols)
			case bit:
				stored = true
			case values[v] != 0:
				return false, fmt.Sprintf("row %d of column %d is not stored but its value is not 0", r, w)
			}
		}
	}
	return stored, ""
}

// tail reports whether there are bits set after the first n.
func tail(words []uint32, n int) bool { return n%32 != 0 && words[len(words)-1]>>(n%32) != 0 }
