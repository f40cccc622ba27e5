// The matrix type and what can be said of it.

package tiledcsr

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

const (
	TileCols  = 16 // columns of a tile: the instruction's K
	MaxHeight = 32 // a column's mask bits lie in one word

	// NoRow in RowIdx: a row of a group that the matrix has no row for.
	NoRow = math.MaxUint32
)

// ErrTooLarge: the matrix has more value slots than 32-bit indices can number.
var ErrTooLarge = fmt.Errorf("%w for tiledcsr", formats.ErrTooLarge)

// Matrix is a sparse matrix in Tiled-CSR. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	Height int // rows of a group: 2, 4, 8, 16 or 32
	Rows   int
	Cols   int

	RowIdx  []uint32
	TilePtr []uint32
	ColIdx  []uint32
	Values  []T
	Mask    []uint32
}

// Groups returns the number of groups of a matrix of this number of rows.
func Groups(rows, height int) int { return slots.Ceil(rows, height) }

// Tiles returns the number of tiles.
func (m *Matrix[T]) Tiles() int { return len(m.ColIdx) / TileCols }

// rows returns the rows of group g, NoRow included.
func (m *Matrix[T]) rows(g int) []uint32 { return m.RowIdx[g*m.Height:][:m.Height] }

// colMask returns the mask bits of column q, counted over all tiles: bit r tells whether row r is a
// stored entry.
func (m *Matrix[T]) colMask(q int) uint32 {
	at := q * m.Height
	return m.Mask[at/32] >> (at % 32) & uint32(1<<m.Height-1)
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return slots.Stored(m.Mask) }

// Stats returns the format's costs: every value of a tile is multiplied, every column of a tile fetches a row of B.
// Fill is the paper's utilisation of the matrix unit.
func (m *Matrix[T]) Stats() formats.Stats {
	s := slots.Stats(m.Values, len(m.RowIdx)+len(m.TilePtr)+len(m.ColIdx)+len(m.Mask), len(m.ColIdx), m.NNZ())
	if len(m.TilePtr) > 1 {
		s.Longest = int64(m.TilePtr[1]) * TileCols // the heaviest group comes first
	}
	return s
}
