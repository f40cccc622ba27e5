// Checking arrays that somebody else made.

package hrpb

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays. Errors name the array, the panel and the position.
func (m *Matrix[T]) Validate() error {
	if err := m.checkLengths(); err != nil {
		return err
	}
	if err := m.checkRows(); err != nil {
		return err
	}
	for q := range len(m.SizePtr) - 1 {
		if err := m.checkBlock(q); err != nil {
			return err
		}
	}
	for p := range len(m.BlockPtr) - 1 {
		if err := m.checkPanel(p); err != nil {
			return err
		}
	}
	parts, splits := WorkList(m.BlockPtr, m.PartBlocks, m.TeamBlocks)
	if err := checkParts("part", m.Parts, parts); err != nil {
		return err
	}
	return checkParts("split panel", m.Splits, splits)
}

func (m *Matrix[T]) checkLengths() error {
	if err := checkOptions(m.BlockCols, m.PartBlocks, m.TeamBlocks); err != nil {
		return err
	}
	if err := slots.CheckSize(name, m.Rows, m.Cols); err != nil {
		return err
	}
	panels := Panels(m.Rows)
	switch {
	case len(m.BlockPtr) != panels+1:
		return fmt.Errorf("hrpb: %d block pointers for %d panels: need %d", len(m.BlockPtr), panels, panels+1)
	case len(m.SizePtr) == 0:
		return fmt.Errorf("hrpb: 0 size pointers: need at least 1")
	}
	blocks := len(m.SizePtr) - 1
	switch {
	case int64(blocks)*int64(m.BlockCols) > formats.MaxSlots:
		return fmt.Errorf("%w: %d blocks of %d columns", ErrTooLarge, blocks, m.BlockCols)
	case len(m.Active) != blocks*m.BlockCols:
		return fmt.Errorf("hrpb: %d active columns for %d blocks of %d", len(m.Active), blocks, m.BlockCols)
	}
	if err := (slots.Panels{Format: name, One: "panel", Of: "block"}).CheckPointers(m.BlockPtr, blocks); err != nil {
		return err
	}
	if len(m.Packed)%unitWords != 0 {
		return fmt.Errorf("hrpb: %d bytes of blocks, no multiple of 16", 4*len(m.Packed))
	}
	return slots.Panels{Format: name, One: "block", Of: "unit"}.CheckPointers(m.SizePtr, len(m.Packed)/unitWords)
}

// checkRows checks that RowIdx, if there is one, has each row once.
func (m *Matrix[T]) checkRows() error {
	switch {
	case m.Order != 0 && m.Order != 1:
		return fmt.Errorf("hrpb: order %d: need 0 or 1", m.Order)
	case len(m.RowIdx) == 0:
		return nil
	case m.Order == 0:
		return fmt.Errorf("hrpb: %d row indices in a matrix whose rows are in their order", len(m.RowIdx))
	case len(m.RowIdx) != m.Rows:
		return fmt.Errorf("hrpb: %d row indices for %d rows", len(m.RowIdx), m.Rows)
	}
	seen := make([]bool, m.Rows)
	for i, r := range m.RowIdx {
		if int64(r) >= int64(m.Rows) || seen[r] {
			return fmt.Errorf("hrpb: row index %d is %d: need each of %d rows once", i, r, m.Rows)
		}
		seen[r] = true
	}
	return nil
}

// checkBlock checks that block q is as long as its patterns say, and that zeros end it.
func (m *Matrix[T]) checkBlock(q int) error {
	b := m.Block(q)
	have := len(b.words) / unitWords
	if have < blockUnits[T](m.BlockCols, 0) {
		return fmt.Errorf("hrpb: block %d has %d units of 16 bytes: too few for its %d patterns", q, have, b.Bricks())
	}
	if want := blockUnits[T](m.BlockCols, b.Entries()); have != want {
		return fmt.Errorf("hrpb: block %d has %d units of 16 bytes: its %d entries need %d", q, have, b.Entries(), want)
	}
	rest := view[half.F16](b.words[2*b.Bricks():])[b.Entries()*size[T]()/2:]
	if slices.ContainsFunc(rest, func(x half.F16) bool { return x != 0 }) {
		return fmt.Errorf("hrpb: block %d does not end with zeros after its %d entries", q, b.Entries())
	}
	return nil
}

// checkPanel checks panel p's columns: active ones that ascend and hold an entry, then padding that fills
// the last block alone.
func (m *Matrix[T]) checkPanel(p int) error {
	first, end := int(m.BlockPtr[p]), int(m.BlockPtr[p+1])
	rows := min(PanelRows, m.Rows-p*PanelRows)
	columns := slots.Columns{Cols: m.Cols}
	for q := first; q < end; q++ {
		b := m.Block(q)
		for i, col := range b.Active {
			pattern := b.Pattern(i/BrickCols) >> (i % BrickCols) & (^uint64(0) / (1<<BrickCols - 1)) // its column's bits
			what := columns.Next(col, pattern != 0)
			switch {
			case what != "":
			case pattern == 0 && i == 0:
				what = "a block of padding"
			case rows < PanelRows && pattern>>(rows*BrickCols) != 0:
				what = fmt.Sprintf("an entry below the last of %d rows", m.Rows)
			}
			if what != "" {
				return fmt.Errorf("hrpb: panel %d, block %d, active column %d (column %d): %s", p, q, i, col, what)
			}
		}
	}
	return nil
}

// checkParts holds a work list against the one that the blocks make.
func checkParts(what string, have, want []Part) error {
	if len(have) != len(want) {
		return fmt.Errorf("hrpb: %d %ss: need %d", len(have), what, len(want))
	}
	for i := range have {
		if have[i] != want[i] {
			return fmt.Errorf("hrpb: %s %d is %+v, not %+v", what, i, have[i], want[i])
		}
	}
	return nil
}
