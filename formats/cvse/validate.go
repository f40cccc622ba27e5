// Checking arrays that somebody else made.

package cvse

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays. Errors name the array, the panel and the position.
func (m *Matrix[T]) Validate() error {
	if err := m.checkLengths(); err != nil {
		return err
	}
	for p := range len(m.VecPtr) - 1 {
		if err := m.checkPanel(p); err != nil {
			return err
		}
	}
	return panels(m.Align).CheckOrder(m.Order, m.weight)
}

// panels names the parts of the matrix in errors.
func panels(align int) slots.Panels {
	return slots.Panels{Format: name, One: "panel", Of: "vector", Unit: align}
}

func (m *Matrix[T]) checkLengths() error {
	switch {
	case m.V < 1 || m.V > MaxV:
		return fmt.Errorf("cvse: vector length %d: need 1 to %d", m.V, MaxV)
	case m.Align < 1 || m.Align > 1<<16:
		return fmt.Errorf("cvse: alignment %d: need 1 to 65536", m.Align)
	}
	if err := slots.CheckSize(name, m.Rows, m.Cols); err != nil {
		return err
	}
	n, vectors := Panels(m.Rows, m.V), len(m.ColInd)
	if int64(vectors)*int64(m.V) > formats.MaxSlots {
		return fmt.Errorf("%w: %d vectors of %d value slots", ErrTooLarge, vectors, m.V)
	}
	values := vectors * m.V
	switch {
	case len(m.VecPtr) != n+1:
		return fmt.Errorf("cvse: %d vector pointers for %d panels: need %d", len(m.VecPtr), n, n+1)
	case len(m.Order) != n:
		return fmt.Errorf("cvse: an order of %d panels: there are %d", len(m.Order), n)
	case len(m.Values) != values:
		return fmt.Errorf("cvse: %d values for %d vectors of %d", len(m.Values), vectors, m.V)
	case len(m.Mask) != maskWords(values):
		return fmt.Errorf("cvse: %d mask words for %d value slots: need %d", len(m.Mask), values, maskWords(values))
	case values%32 != 0 && m.Mask[len(m.Mask)-1]>>(values%32) != 0:
		return fmt.Errorf("cvse: mask bits after the last of %d value slots", values)
	}
	return panels(m.Align).CheckPointers(m.VecPtr, vectors)
}

// checkPanel checks panel p's vectors: real ones, then fewer than Align of padding.
func (m *Matrix[T]) checkPanel(p int) error {
	start, end := int(m.VecPtr[p]), int(m.VecPtr[p+1])
	rows := min(m.V, m.Rows-p*m.V)
	columns := slots.Columns{Cols: m.Cols}
	for q := start; q < end; q++ {
		col, mask := m.ColInd[q], m.vecMask(q)
		fail := func(what string) error {
			return fmt.Errorf("cvse: panel %d, vector %d (column %d): %s", p, q, col, what)
		}
		if mask>>rows != 0 {
			return fail(fmt.Sprintf("an entry below the last of %d rows", m.Rows))
		}
		if what := columns.Next(col, mask != 0); what != "" {
			return fail(what)
		}
		for r, x := range m.Values[q*m.V:][:m.V] {
			if mask>>r&1 == 0 && x != 0 {
				return fail(fmt.Sprintf("row %d is not stored but its value is not 0", p*m.V+r))
			}
		}
	}
	if columns.Padding >= m.Align {
		return fmt.Errorf("cvse: panel %d has %d vectors of padding: fewer than %d are needed", p, columns.Padding, m.Align)
	}
	return nil
}
