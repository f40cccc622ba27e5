// The matrix type, and walking through its blocks.

package hrpb

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

const (
	PanelRows = 16 // rows of a panel and of a brick: the paper's TM and brick_m
	BrickCols = 4  // columns of a brick: brick_k
	// MaxBlockCols is the most active columns a block may have.
	MaxBlockCols = 64

	unitWords = 4 // a block takes whole units of 16 bytes
)

// ErrTooLarge: the matrix has more active columns or values than 32-bit indices reach.
var ErrTooLarge = fmt.Errorf("%w for hrpb", formats.ErrTooLarge)

// Matrix is a sparse matrix in Hierarchical Row-Panel-Blocking. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	Rows, Cols int
	BlockCols  int // active columns of a block, a multiple of BrickCols up to MaxBlockCols
	PartBlocks int // panels of more blocks are split; 0: none is
	TeamBlocks int // parts of more blocks are for several workers; 0: none is

	Order int // 1: rows may be in another order than the matrix has them in

	BlockPtr []uint32
	Active   []uint32
	SizePtr  []uint32
	Packed   []uint32
	RowIdx   []uint32
	Parts    []Part
	Splits   []Part

	StripWork *Work // what Work returns where a kernel works from strips, see WithStrips; else nil
}

// Panels returns the number of panels of a matrix of this number of rows.
func Panels(rows int) int { return slots.Ceil(rows, PanelRows) }

// Block is one block, as views of a matrix's arrays.
type Block[T formats.Value] struct {
	Active []uint32 // columns; those of padding repeat the last
	words  []uint32 // the block in Packed
}

// Block returns block q.
func (m *Matrix[T]) Block(q int) Block[T] {
	return Block[T]{
		Active: m.Active[q*m.BlockCols:][:m.BlockCols],
		words:  m.Packed[unitWords*int(m.SizePtr[q]) : unitWords*int(m.SizePtr[q+1])],
	}
}

// Bricks returns the number of bricks.
func (b Block[T]) Bricks() int { return len(b.Active) / BrickCols }

// Pattern returns the pattern of brick i.
func (b Block[T]) Pattern(i int) uint64 {
	return uint64(b.words[2*i]) | uint64(b.words[2*i+1])<<32
}

// Entries returns the number of stored entries.
func (b Block[T]) Entries() int {
	n := 0
	for _, w := range b.words[:2*b.Bricks()] {
		n += bits.OnesCount32(w)
	}
	return n
}

// Values returns the stored entries' values, brick after brick, in the order of their pattern's bits.
func (b Block[T]) Values() []T { return view[T](b.words[2*b.Bricks():])[:b.Entries()] }

// view returns the memory of w as elements.
func view[T formats.Value](w []uint32) []T {
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&w[0])), len(w)*4/size[T]())
}

// size is the bytes of an element.
func size[T formats.Value]() int {
	var t T
	return int(unsafe.Sizeof(t))
}

// Row returns the row of the matrix in a place. Row i of panel p is in place PanelRows·p + i.
func (m *Matrix[T]) Row(place int) int {
	if len(m.RowIdx) == 0 {
		return place
	}
	return int(m.RowIdx[place])
}

// Each calls f for each entry of panel p: its row in the panel, its column and its value. Columns ascend
// within each row.
func (m *Matrix[T]) Each(p int, f func(r int, col uint32, v T)) {
	m.each(p, func(r int, col uint32, v *T) { f(r, col, *v) })
}

// each is Each with the values where they lie.
func (m *Matrix[T]) each(p int, f func(r int, col uint32, v *T)) {
	for q := int(m.BlockPtr[p]); q < int(m.BlockPtr[p+1]); q++ {
		b := m.Block(q)
		values := b.Values()
		for i := range b.Bricks() {
			for w := b.Pattern(i); w != 0; w &= w - 1 {
				bit := bits.TrailingZeros64(w)
				f(bit/BrickCols, b.Active[i*BrickCols+bit%BrickCols], &values[0])
				values = values[1:]
			}
		}
	}
}
