// Checking arrays that somebody else made.

package cvse

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
)

// Validate checks that the arrays are what the package comment says. It trusts nothing: a matrix
// that passes can be decoded and multiplied without touching memory outside its arrays. Errors name
// the array, the panel and the position.
func (m *Matrix[T]) Validate() error {
	if err := m.checkLengths(); err != nil {
		return err
	}
	for p := range len(m.VecPtr) - 1 {
		if err := m.checkPanel(p); err != nil {
			return err
		}
	}
	return m.checkOrder()
}

func (m *Matrix[T]) checkLengths() error {
	switch {
	case m.V < 1 || m.V > MaxV:
		return fmt.Errorf("cvse: vector length %d: need 1 to %d", m.V, MaxV)
	case m.Align < 1 || m.Align > 1<<16:
		return fmt.Errorf("cvse: alignment %d: need 1 to 65536", m.Align)
	case m.Rows < 0 || m.Rows > math.MaxInt32 || m.Cols < 0 || m.Cols > math.MaxInt32:
		return fmt.Errorf("cvse: a matrix of %d×%d", m.Rows, m.Cols)
	}
	panels, vectors := Panels(m.Rows, m.V), len(m.ColInd)
	if int64(vectors)*int64(m.V) > formats.MaxSlots {
		return fmt.Errorf("%w: %d vectors of %d value slots", ErrTooLarge, vectors, m.V)
	}
	slots := vectors * m.V
	switch {
	case len(m.VecPtr) != panels+1:
		return fmt.Errorf("cvse: %d vector pointers for %d panels: need %d", len(m.VecPtr), panels, panels+1)
	case len(m.Order) != panels:
		return fmt.Errorf("cvse: an order of %d panels: there are %d", len(m.Order), panels)
	case len(m.Values) != slots:
		return fmt.Errorf("cvse: %d values for %d vectors of %d", len(m.Values), vectors, m.V)
	case len(m.Mask) != maskWords(slots):
		return fmt.Errorf("cvse: %d mask words for %d value slots: need %d", len(m.Mask), slots, maskWords(slots))
	case slots%32 != 0 && m.Mask[len(m.Mask)-1]>>(slots%32) != 0:
		return fmt.Errorf("cvse: mask bits after the last of %d value slots", slots)
	case m.VecPtr[0] != 0:
		return fmt.Errorf("cvse: panel 0 starts at vector %d", m.VecPtr[0])
	case int64(m.VecPtr[panels]) != int64(vectors):
		return fmt.Errorf("cvse: the panels end at vector %d of %d", m.VecPtr[panels], vectors)
	}
	for p := range panels {
		if m.VecPtr[p+1] < m.VecPtr[p] {
			return fmt.Errorf("cvse: panel %d ends at vector %d, before its start %d", p, m.VecPtr[p+1], m.VecPtr[p])
		}
		if m.VecPtr[p+1]%uint32(m.Align) != 0 {
			return fmt.Errorf("cvse: panel %d ends at vector %d, no multiple of %d", p, m.VecPtr[p+1], m.Align)
		}
	}
	return nil
}

// checkPanel checks panel p's vectors: real ones, then fewer than Align of padding.
func (m *Matrix[T]) checkPanel(p int) error {
	start, end := int(m.VecPtr[p]), int(m.VecPtr[p+1])
	rows := min(m.V, m.Rows-p*m.V)
	last, pads := -1, 0
	for q := start; q < end; q++ {
		col, mask := int(m.ColInd[q]), m.vecMask(q)
		fail := func(what string) error {
			return fmt.Errorf("cvse: panel %d, vector %d (column %d): %s", p, q, col, what)
		}
		switch {
		case col >= m.Cols:
			return fail(fmt.Sprintf("the matrix has %d columns", m.Cols))
		case mask>>rows != 0:
			return fail(fmt.Sprintf("an entry below the last of %d rows", m.Rows))
		case mask == 0 && col != last:
			return fail(fmt.Sprintf("no entry, and padding would repeat column %d", last))
		case mask == 0:
			pads++
		case pads > 0:
			return fail("an entry after padding")
		case col <= last:
			return fail(fmt.Sprintf("not after column %d", last))
		}
		last = col
		for r, x := range m.Values[q*m.V:][:m.V] {
			if mask>>r&1 == 0 && x != 0 {
				return fail(fmt.Sprintf("row %d is not stored but its value is not 0", p*m.V+r))
			}
		}
	}
	if pads >= m.Align {
		return fmt.Errorf("cvse: panel %d has %d vectors of padding: fewer than %d are needed", p, pads, m.Align)
	}
	return nil
}

func (m *Matrix[T]) checkOrder() error {
	weight := func(p uint32) uint32 { return m.VecPtr[p+1] - m.VecPtr[p] }
	for i, p := range m.Order {
		if int64(p) >= int64(len(m.Order)) {
			return fmt.Errorf("cvse: order names panel %d at %d: there are %d", p, i, len(m.Order))
		}
		if i == 0 {
			continue
		}
		// Strictly falling by weight, then rising by number: so no panel can come twice.
		o := m.Order[i-1]
		if weight(o) < weight(p) || weight(o) == weight(p) && o >= p {
			return fmt.Errorf("cvse: order has panel %d (%d vectors) before panel %d (%d), at %d", o, weight(o), p, weight(p), i)
		}
	}
	return nil
}
