// The matrix type and what can be said of it.

package jigsaw

import (
	"fmt"
	"math/bits"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// The sizes that the instruction mma.m16n8k32 has in this format.
const (
	StripRows = 16             // rows of a strip
	TileCols  = 16             // columns of a tile (the paper's MMA_TILE)
	StepCols  = 2 * TileCols   // columns of a step
	StepSlots = 16 * 16        // value slots of a step: half of its places
	maskWords = StepSlots / 32 // of a step
	metaWords = StepSlots / 16 // of a step
	quads     = TileCols / 4   // of a tile
	MaxBlock  = 64 * StripRows // largest BlockTile
	spanMax   = 1 << 16
)

// ErrTooLarge: the matrix has more value slots than 32-bit indices can number.
var ErrTooLarge = fmt.Errorf("%w for jigsaw", formats.ErrTooLarge)

// Matrix is a sparse matrix in Jigsaw's format. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	BlockTile int // rows of a block, a multiple of 16
	Span      int // bound of positions used together; 0: none
	Rows      int
	Cols      int

	BlockPtr    []uint32
	ColIdx      []uint32
	StepPtr     []uint32
	BlockColIdx []uint32
	Metadata    []uint32
	Values      []T
	Mask        []uint32
	Order       []uint32

	// Retried counts the columns that Encode put back because the search found no order for the tile it
	// had chosen them for (the paper's reorder retry). It is not part of the format.
	Retried int64
}

// Blocks returns the number of blocks.
func (m *Matrix[T]) Blocks() int { return len(m.BlockPtr) - 1 }

// Strips returns the number of strips, those below the last row included.
func (m *Matrix[T]) Strips() int { return len(m.StepPtr) - 1 }

// Steps returns the number of steps.
func (m *Matrix[T]) Steps() int { return len(m.Mask) / maskWords }

// blocks returns the number of blocks of rows rows.
func blocks(rows, blockTile int) int { return slots.Ceil(rows, blockTile) }

// stripsOf returns the number of strips in a block.
func (m *Matrix[T]) stripsOf() int { return m.BlockTile / StripRows }

// columns returns the column list of the block that strip s is in.
func (m *Matrix[T]) columns(s int) []uint32 {
	p := s / m.stripsOf()
	return m.ColIdx[m.BlockPtr[p]:m.BlockPtr[p+1]]
}

// A slot is a place for a value: entry e of row r of the strip in quad q of tile t.
type slot struct{ r, t, q, e int }

// slotAt returns slot i of a step, 0 ≤ i < StepSlots.
func slotAt(i int) slot {
	lane := i / 8
	return slot{r: lane/4 + 8*(i>>1&1), t: i >> 2 & 1, q: lane % 4, e: i & 1}
}

// index is the inverse of slotAt.
func (s slot) index() int { return 8*(4*(s.r%8)+s.q) + 4*s.t + 2*(s.r/8) + s.e }

// place returns the metadata word of step n that a slot's column is in, and its bits there.
func (s slot) place(n int) (word int, shift uint) {
	return 2*metaWords*(n/2) + 4*(s.r%8) + 2*(n%2) + s.t, uint(16*(s.r/8) + 4*s.q + 2*s.e)
}

// column returns the column of step n, 0 to 31, that a slot's value is in.
func (m *Matrix[T]) column(n int, s slot) int {
	word, shift := s.place(n)
	return TileCols*s.t + 4*s.q + int(m.Metadata[word]>>shift&3)
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return slots.Stored(m.Mask) }

// Stats returns the format's costs: every slot is multiplied, and each block fetches the rows of B that its list names.
func (m *Matrix[T]) Stats() formats.Stats {
	words := len(m.BlockPtr) + len(m.ColIdx) + len(m.StepPtr) + len(m.BlockColIdx) + len(m.Metadata) + len(m.Mask) +
		len(m.Order)
	return slots.Stats(m.Values, words, len(m.ColIdx), m.NNZ())
}

// Reordering describes how well the columns of blocks went into tiles.
type Reordering struct {
	Tiles     int64 // tiles with columns
	Columns   int64 // columns in them; 16 a tile if none is left empty
	Retried   int64 // columns put back for want of an order
	Conflicts int64 // columns of a group of eight that share a bank with another of the group, of 8 banks
}

// Reordering returns how well the columns went into tiles.
func (m *Matrix[T]) Reordering() Reordering {
	r := Reordering{Retried: m.Retried}
	for n := range m.Steps() {
		used := m.used(n)
		for t := range 2 {
			if tile := used >> (TileCols * t) & 0xffff; tile != 0 {
				r.Tiles++
				r.Columns += int64(bits.OnesCount32(tile))
			}
		}
		for o := 0; o < StepCols; o += 8 {
			banks := map[uint32]bool{}
			for k := o; k < o+8; k++ {
				if used>>k&1 == 0 {
					continue
				}
				bank := m.BlockColIdx[n*StepCols+k] % banksOfShared
				if banks[bank] {
					r.Conflicts++
				}
				banks[bank] = true
			}
		}
	}
	return r
}

// used returns the columns of step n that have entries, a bit each.
func (m *Matrix[T]) used(n int) uint32 {
	var used uint32
	for w, word := range m.Mask[n*maskWords:][:maskWords] {
		for ; word != 0; word &= word - 1 {
			used |= 1 << m.column(n, slotAt(32*w+bits.TrailingZeros32(word)))
		}
	}
	return used
}
