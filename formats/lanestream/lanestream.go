// The matrix type, its sizes, and where things are in it.

package lanestream

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Sizes of the format.
const (
	GroupRows = 64 // rows of a group: four tiles of mma.m16n8k16
	StepCols  = 32 // columns of a step: two tiles
	Chains    = 64 // values of a row: two for each of 32 lanes
	MaxParts  = 32 // streams of a group, at most

	chainWords = 2 // words of 16 positions of a chain in a step, layout Places
	lanes      = Chains / 2
	storedBits = Chains / 32 // words of Stored for a row of values
	ringRows   = 113         // rows of values that a reader's ring has room for, see MaxPieceRows
)

// Layouts: what the mask says.
const (
	Places = 0 // a bit for each place
	Pairs  = 1 // two slots for each four neighbouring columns of a row, and which columns they have
)

// ErrTooLarge: the matrix has more mask words or values than 32-bit indices reach.
var ErrTooLarge = fmt.Errorf("%w for lanestream", formats.ErrTooLarge)

// Matrix is a sparse matrix as lane streams. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	Rows, Cols int
	Layout     int // Places or Pairs
	Parts      int // streams of a group of rows
	PieceSteps int // steps of a segment: 1, 2 or 4
	Window     int // segments of values that a step may read from

	StreamPtr []uint32
	PieceRows []uint32
	Mask      []uint32
	Values    []T
	Stored    []uint32
	RestPtr   []uint32
	RestCol   []uint32
}

// MaxPieceRows returns the most rows of values that a segment may have: Window + 1 segments and their masks fit in 113
// rows of 16-bit values, a warp's share of the shared memory of a large multiprocessor.
func MaxPieceRows(layout, pieceSteps, window int) int {
	return ringRows/(window+1) - maskRows(layout)*pieceSteps
}

// maskRows is the size of a step's mask in rows of 16-bit values.
func maskRows(layout int) int { return 2 + layout }

// stepWords returns the mask words of a step: two for each lane, or three.
func stepWords(layout int) int { return lanes * maskRows(layout) }

// Groups returns the number of groups of rows.
func (m *Matrix[T]) Groups() int { return groups(m.Rows) }

func groups(rows int) int { return slots.Ceil(rows, GroupRows) }

// Pieces returns the number of segments of a group's columns.
func (m *Matrix[T]) Pieces() int { return pieces(m.Cols, m.PieceSteps) }

func pieces(cols, steps int) int { return slots.Ceil(cols, StepCols*steps) }

// Slots returns the number of values of streams. The remainder's follow.
func (m *Matrix[T]) Slots() int { return Chains * int(m.StreamPtr[len(m.StreamPtr)-1]) }

// RingRows returns the rows of values that a reader's ring needs room for.
func (m *Matrix[T]) RingRows() int {
	most := 0
	for _, n := range m.PieceRows {
		most = max(most, int(n))
	}
	return (m.Window + 1) * (most + maskRows(m.Layout)*m.PieceSteps)
}

// Shape describes a matrix to a kernel, besides its size.
type Shape struct {
	Groups, Parts      int // of rows; streams of a group
	Pieces, PieceSteps int // of a group; steps of a segment
	Layout             int // Places or Pairs
	RingRows           int // see Matrix.RingRows
	Window             int // segments of values that a step may read from
}

// Shape returns the matrix's shape.
func (m *Matrix[T]) Shape() Shape {
	return Shape{Groups: m.Groups(), Parts: m.Parts, Pieces: m.Pieces(), PieceSteps: m.PieceSteps, Layout: m.Layout,
		RingRows: m.RingRows(), Window: m.Window}
}

// LongestPiece returns the most rows of values that a segment of any stream has.
func (m *Matrix[T]) LongestPiece() int {
	most := uint32(0)
	for _, n := range m.PieceRows {
		most = max(most, n)
	}
	return int(most)
}

// FirstPiece returns the first segment of a part: part q has the segments from FirstPiece(q) to FirstPiece(q+1) - 1.
func (m *Matrix[T]) FirstPiece(part int) int { return m.Pieces() * part / m.Parts }

// Place returns the place, within a group and a step, of position i (0 to 15) of a chain's word w (0 or 1). Layout
// Places.
func Place(chain, w, i int) (row, col int) {
	lane, half := chain/2, chain%2
	row = 16*(i>>2) + 8*(i&1) + lane/4
	col = 16*w + 8*(i>>1&1) + 4*half + lane%4
	return row, col
}

// position is the inverse of Place.
func position(row, col int) (chain, w, i int) {
	chain = 2*(4*(row%8)+col%4) + col>>2&1
	return chain, col / 16, row>>3&1 | col>>3&1<<1 | row>>4<<2
}

// raw is the bits of an element.
type raw interface{ uint16 | uint32 }

// rawOf returns the memory of elements as their bits. U has the size of T.
func rawOf[U raw, T formats.Value](x []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// words are a chain's positions, 16 bits for each of a segment's words.
type words [8]uint16

// of takes a chain's words of a segment of n steps from the mask.
func (w *words) of(mask []uint32, chain, n int) {
	for s := range n {
		for i := range chainWords {
			w[chainWords*s+i] = uint16(gather(mask[stepWords(Places)*s+chain/2*chainWords+i] >> (chain % 2)))
		}
	}
}

// gather packs the even bits of x into its lower half; spread is its inverse.
func gather(x uint32) uint32 {
	x &= 0x55555555
	x = (x | x>>1) & 0x33333333
	x = (x | x>>2) & 0x0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff
	return (x | x>>8) & 0xffff
}

func spread(x uint32) uint32 {
	x = (x | x<<8) & 0x00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f
	x = (x | x<<2) & 0x33333333
	return (x | x<<1) & 0x55555555
}

// isStored tells whether value i of Values is an entry.
func (m *Matrix[T]) isStored(i int) bool { return m.Stored[i/32]>>(i%32)&1 != 0 }

func (w *words) count(n int) int {
	c := 0
	for _, x := range w[:n] {
		c += bits.OnesCount16(x)
	}
	return c
}

// limits returns the rows that a chain must have reached at the end of segment j of a stream, and those it may have.
// The last `back` rows may still be read after it.
func limits(j, count, pieceRows, window, rows, back int) (least, most int) {
	if j+1 < count {
		least = min(pieceRows*(j+1)+back, rows)
	}
	return least, min(pieceRows*(j+window), rows)
}
