// Checking arrays that somebody else made.

package jigsaw

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays. Errors name the array and the place.
func (m *Matrix[T]) Validate() error {
	if err := m.checkLengths(); err != nil {
		return err
	}
	for b := range m.Blocks() {
		if err := m.checkBlock(b); err != nil {
			return err
		}
	}
	for s := range m.Strips() {
		for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
			if err := m.checkStep(s, int(n)); err != nil {
				return err
			}
		}
		if err := m.checkSpan(s); err != nil {
			return err
		}
		if err := m.checkRows(s); err != nil {
			return err
		}
	}
	return slots.Panels{Format: name, One: "block", Of: "step"}.CheckOrder(m.Order, m.weight)
}

func (m *Matrix[T]) checkLengths() error {
	switch {
	case m.BlockTile < StripRows || m.BlockTile > MaxBlock || m.BlockTile%StripRows != 0:
		return fmt.Errorf("jigsaw: blocks of %d rows: need a multiple of %d up to %d", m.BlockTile, StripRows, MaxBlock)
	case m.Span < 0 || m.Span > 0 && m.Span < StepCols || m.Span > spanMax:
		return fmt.Errorf("jigsaw: a span of %d positions: need 0 or %d to %d", m.Span, StepCols, spanMax)
	}
	if err := slots.CheckSize(name, m.Rows, m.Cols); err != nil {
		return err
	}
	n := blocks(m.Rows, m.BlockTile)
	strips, steps := n*m.stripsOf(), len(m.Values)/StepSlots
	for _, array := range []struct {
		name      string
		has, want int
	}{
		{"block pointers", len(m.BlockPtr), n + 1},
		{"step pointers", len(m.StepPtr), strips + 1},
		{"values", len(m.Values), steps * StepSlots},
		{"column positions", len(m.BlockColIdx), steps * StepCols},
		{"metadata words", len(m.Metadata), steps * metaWords},
		{"mask words", len(m.Mask), steps * maskWords},
		{"blocks in order", len(m.Order), n},
	} {
		if array.has != array.want {
			return fmt.Errorf("jigsaw: %d %s for %d blocks, %d strips and %d steps: need %d", array.has, array.name, n, strips, steps, array.want)
		}
	}
	if max(len(m.Values), len(m.ColIdx)) > formats.MaxSlots {
		return fmt.Errorf("%w: %d value slots, %d columns", ErrTooLarge, len(m.Values), len(m.ColIdx))
	}
	blocks := slots.Panels{Format: name, One: "block", Of: "column"}
	if err := blocks.CheckPointers(m.BlockPtr, len(m.ColIdx)); err != nil {
		return err
	}
	return slots.Panels{Format: name, One: "strip", Of: "step", Unit: 2}.CheckPointers(m.StepPtr, steps)
}

func (m *Matrix[T]) checkBlock(b int) error {
	last := int64(-1)
	for i := m.BlockPtr[b]; i < m.BlockPtr[b+1]; i++ {
		c := int64(m.ColIdx[i])
		if c <= last || c >= int64(m.Cols) {
			return fmt.Errorf("jigsaw: block %d, column %d at %d: not after %d, or not one of %d columns", b, c, i, last, m.Cols)
		}
		last = c
	}
	return nil
}

// checkStep checks the indices of step n, which is in strip s, and that what is not stored is 0.
func (m *Matrix[T]) checkStep(s, n int) error {
	cols := len(m.columns(s))
	for k, pos := range m.BlockColIdx[n*StepCols:][:StepCols] {
		if int64(pos) >= int64(cols) {
			return fmt.Errorf("jigsaw: strip %d, step %d: place %d has position %d of %d", s, n, k, pos, cols)
		}
	}
	for i := range StepSlots {
		x := slotAt(i)
		if m.Mask[n*maskWords+i/32]>>(i%32)&1 == 0 {
			if m.Values[n*StepSlots+i] != 0 {
				return fmt.Errorf("jigsaw: strip %d, step %d: slot %d is not stored but its value is not 0", s, n, i)
			}
		} else if s*StripRows+x.r >= m.Rows {
			return fmt.Errorf("jigsaw: strip %d, step %d: slot %d is below the last of %d rows", s, n, i, m.Rows)
		}
		if x.e == 1 && m.column(n, slot{x.r, x.t, x.q, 0}) >= m.column(n, x) {
			return fmt.Errorf("jigsaw: strip %d, step %d: the metadata of row %d, tile %d, quad %d do not ascend", s, n, x.r, x.t, x.q)
		}
	}
	return nil
}

// checkSpan checks strip s from its end, where the least position yet to come is known.
func (m *Matrix[T]) checkSpan(s int) error {
	if m.Span == 0 {
		return nil
	}
	least := uint32(math.MaxUint32)
	for n := int(m.StepPtr[s+1]) - 1; n >= int(m.StepPtr[s]); n-- {
		var most uint32
		for _, pos := range m.BlockColIdx[n*StepCols:][:StepCols] {
			least, most = min(least, pos), max(most, pos)
		}
		if int64(most)-int64(least) >= int64(m.Span) {
			return fmt.Errorf("jigsaw: strip %d, step %d: position %d with %d yet to come, a span of %d", s, n, most, least, m.Span)
		}
	}
	return nil
}

// checkRows checks that no entry of strip s is stored twice.
func (m *Matrix[T]) checkRows(s int) error {
	for r, row := range m.rows(s) {
		for i := 1; i < len(row); i++ {
			if row[i].pos == row[i-1].pos {
				return fmt.Errorf("jigsaw: row %d has column %d twice", s*StripRows+r, m.columns(s)[row[i].pos])
			}
		}
	}
	return nil
}
