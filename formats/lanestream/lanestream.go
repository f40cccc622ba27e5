// The matrix type, its sizes, and the place of each element in its arrays.

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
	MaxSplits = 32 // streams of a group, at most

	chainWords = 2 // words of 16 positions of a chain in a step, layout Places
	lanes      = Chains / 2
	storedBits = Chains / 32 // words of Stored for a row of values
	ringRows   = 113         // rows of values that a reader's ring has room for: see MaxSegmentRows
)

// Layouts of the mask.
const (
	Places = 0 // a bit for each place
	Pairs  = 1 // two slots for each four neighbouring columns of a row, and which columns they have
)

// ErrTooLarge: the matrix has more mask words or values than 32-bit indices reach.
var ErrTooLarge = fmt.Errorf("%w for lanestream", formats.ErrTooLarge)

// Matrix is a sparse matrix as lane streams. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	Rows, Cols   int
	Layout       int // Places or Pairs
	Splits       int // streams of a group of rows
	SegmentSteps int // steps of a segment: 1, 2 or 4
	Window       int // segments of values that a step may read from

	StreamPtr    []uint32
	SegmentRows  []uint32
	Mask         []uint32
	Values       []T
	Stored       []uint32
	RemainderPtr []uint32
	RemainderCol []uint32
}

// MaxSegmentRows returns the most rows of values that a segment may have, such that window + 1 segments and their masks
// fit in 113 rows of 16-bit values: that is a warp's share of the shared memory of a large multiprocessor.
func MaxSegmentRows(layout, segmentSteps, window int) int {
	return ringRows/(window+1) - maskRows(layout)*segmentSteps
}

// maskRows returns the size of a step's mask, in rows of 16-bit values.
func maskRows(layout int) int { return 2 + layout }

// stepWords returns the mask words of a step: two for each lane, or three.
func stepWords(layout int) int { return lanes * maskRows(layout) }

// Groups returns the number of groups of rows.
func (m *Matrix[T]) Groups() int { return groups(m.Rows) }

func groups(rows int) int { return slots.Ceil(rows, GroupRows) }

// Segments returns the number of segments of a group's columns.
func (m *Matrix[T]) Segments() int { return segments(m.Cols, m.SegmentSteps) }

func segments(cols, steps int) int { return slots.Ceil(cols, StepCols*steps) }

// Slots returns the number of values in streams. In Values those of the COO remainder follow them.
func (m *Matrix[T]) Slots() int { return Chains * int(m.StreamPtr[len(m.StreamPtr)-1]) }

// RingRows returns how many rows of values a reader's ring must have room for, masks included.
func (m *Matrix[T]) RingRows() int {
	most := 0
	for _, n := range m.SegmentRows {
		most = max(most, int(n))
	}
	return (m.Window + 1) * (most + maskRows(m.Layout)*m.SegmentSteps)
}

// Shape is the figures of a matrix that a kernel needs, besides its size.
type Shape struct {
	Groups, Splits         int // of rows; streams of a group
	Segments, SegmentSteps int // of a group; steps of a segment
	Layout                 int // Places or Pairs
	RingRows               int // see Matrix.RingRows
	Window                 int // segments of values that a step may read from
}

// Shape returns the matrix's shape.
func (m *Matrix[T]) Shape() Shape {
	return Shape{Groups: m.Groups(), Splits: m.Splits, Segments: m.Segments(), SegmentSteps: m.SegmentSteps,
		Layout: m.Layout, RingRows: m.RingRows(), Window: m.Window}
}

// LongestSegment returns the most rows of values that a segment of any stream has.
func (m *Matrix[T]) LongestSegment() int {
	most := uint32(0)
	for _, n := range m.SegmentRows {
		most = max(most, n)
	}
	return int(most)
}

// FirstSegment returns the first segment of a split. Split q has segments FirstSegment(q) to FirstSegment(q+1) - 1.
func (m *Matrix[T]) FirstSegment(split int) int { return m.Segments() * split / m.Splits }

// Place returns the row in the group (0 to 63) and the column in the step (0 to 31) of position i (0 to 15) of word w
// (0 or 1) of a chain (0 to 63), in layout Places.
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

// raw is the type of an element's bits.
type raw interface{ uint16 | uint32 }

// rawOf returns elements as their bits, in the same memory. U has the size of T.
func rawOf[U raw, T formats.Value](x []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// words are a chain's bits of the mask, 16 for each of a segment's words.
type words [8]uint16

// of sets w to a chain's words of a segment of n steps. mask begins with that segment.
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

// isStored reports whether Values[i] is an entry.
func (m *Matrix[T]) isStored(i int) bool { return m.Stored[i/32]>>(i%32)&1 != 0 }

func (w *words) count(n int) int {
	c := 0
	for _, x := range w[:n] {
		c += bits.OnesCount16(x)
	}
	return c
}

// limits returns how many rows a chain must have taken, at the least and at the most, at the end of segment j of a
// stream of count segments. The last `back` rows that were taken may be read again in the next segment.
func limits(j, count, segmentRows, window, rows, back int) (least, most int) {
	if j+1 < count {
		least = min(segmentRows*(j+1)+back, rows)
	}
	return least, min(segmentRows*(j+window), rows)
}
