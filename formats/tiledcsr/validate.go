// Checking arrays that somebody else made.

package tiledcsr

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays. Errors name the array, the group and the position.
func (m *Matrix[T]) Validate() error {
	if err := m.checkLengths(); err != nil {
		return err
	}
	if err := m.checkTilePtr(); err != nil {
		return err
	}
	if err := m.checkRows(); err != nil {
		return err
	}
	for g := range len(m.TilePtr) - 1 {
		if err := m.checkGroup(g); err != nil {
			return err
		}
	}
	return nil
}

func (m *Matrix[T]) checkLengths() error {
	if err := checkHeight(m.Height); err != nil {
		return err
	}
	if err := slots.CheckSize(name, m.Rows, m.Cols); err != nil {
		return err
	}
	if int64(len(m.ColIdx))*int64(m.Height) > formats.MaxSlots {
		return fmt.Errorf("%w: %d columns of %d value slots", ErrTooLarge, len(m.ColIdx), m.Height)
	}
	groups, values := Groups(m.Rows, m.Height), len(m.ColIdx)*m.Height
	switch {
	case len(m.TilePtr) != groups+1:
		return fmt.Errorf("tiledcsr: %d tile pointers for %d groups: need %d", len(m.TilePtr), groups, groups+1)
	case len(m.RowIdx) != groups*m.Height:
		return fmt.Errorf("tiledcsr: %d row numbers for %d groups of %d: need %d", len(m.RowIdx), groups, m.Height,
			groups*m.Height)
	case len(m.ColIdx)%TileCols != 0:
		return fmt.Errorf("tiledcsr: %d columns: need %d a tile", len(m.ColIdx), TileCols)
	case len(m.Values) != values:
		return fmt.Errorf("tiledcsr: %d values for %d columns of %d", len(m.Values), len(m.ColIdx), m.Height)
	case len(m.Mask) != values/32:
		return fmt.Errorf("tiledcsr: %d mask words for %d value slots: need %d", len(m.Mask), values, values/32)
	}
	return nil
}

func (m *Matrix[T]) checkTilePtr() error {
	if err := (slots.Panels{Format: name, One: "group", Of: "tile"}).CheckPointers(m.TilePtr, m.Tiles()); err != nil {
		return err
	}
	before := int64(math.MaxInt64)
	for g := range len(m.TilePtr) - 1 {
		tiles := int64(m.TilePtr[g+1]) - int64(m.TilePtr[g])
		if tiles > before {
			return fmt.Errorf("tiledcsr: group %d (%d tiles) comes before group %d (%d)", g-1, before, g, tiles)
		}
		before = tiles
	}
	return nil
}

// checkRows checks that RowIdx has every row once.
func (m *Matrix[T]) checkRows() error {
	seen := make([]bool, m.Rows)
	missing := len(m.RowIdx) - m.Rows
	for i, row := range m.RowIdx {
		fail := func(what string) error {
			return fmt.Errorf("tiledcsr: group %d, row %d: %s", i/m.Height, i%m.Height, what)
		}
		first := i%m.Height == 0
		switch {
		case row == NoRow && missing == 0:
			return fail(fmt.Sprintf("one row too few for a matrix of %d", m.Rows))
		case row == NoRow:
			missing--
		case int64(row) >= int64(m.Rows):
			return fail(fmt.Sprintf("row %d of a matrix of %d", row, m.Rows))
		case seen[row]:
			return fail(fmt.Sprintf("row %d comes twice", row))
		case !first && row <= m.RowIdx[i-1]:
			return fail(fmt.Sprintf("row %d after row %d", row, m.RowIdx[i-1]))
		default:
			seen[row] = true
		}
		if row == NoRow && first {
			return fail("a group without rows")
		}
	}
	return nil
}

// checkGroup checks group g's tiles: columns that hold something, then less than a tile of padding.
func (m *Matrix[T]) checkGroup(g int) error {
	start, end := int(m.TilePtr[g])*TileCols, int(m.TilePtr[g+1])*TileCols
	rows := m.rows(g)
	var exist uint32 // rows of the group
	for r, row := range rows {
		if row != NoRow {
			exist |= 1 << r
		}
	}
	columns := slots.Columns{Cols: m.Cols}
	for q := start; q < end; q++ {
		col, mask := m.ColIdx[q], m.colMask(q)
		fail := func(what string) error {
			return fmt.Errorf("tiledcsr: group %d, tile %d, place %d (column %d): %s", g, q/TileCols, q%TileCols, col, what)
		}
		if mask&^exist != 0 {
			return fail("an entry in a row that does not exist")
		}
		if what := columns.Next(col, mask != 0); what != "" {
			return fail(what)
		}
		for r, x := range m.Values[q*m.Height:][:m.Height] {
			if mask>>r&1 == 0 && x != 0 {
				return fail(fmt.Sprintf("row %d of the group is not stored but its value is not 0", r))
			}
		}
	}
	if columns.Padding >= TileCols {
		return fmt.Errorf("tiledcsr: group %d has %d columns of padding: fewer than %d are needed", g, columns.Padding, TileCols)
	}
	return nil
}
