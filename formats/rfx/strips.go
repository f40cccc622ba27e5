// A sparse matrix's strips of 16 rows as digits, for units that multiply matrices of 8-bit integers by few columns.

package rfx

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// The sizes of strips. A block is what a warp's 32 lanes have one word of mask each for: two tiles of 32 columns.
const (
	StripRows    = 16
	StripColumns = 64  // of a block
	StripUnit    = 128 // bytes: a word for each lane
)

// Strips is a matrix's entries as balanced digits of 8 bits, in strips of StripRows rows, which are cut into
// pieces of Blocks blocks. A piece has, in units of StripUnit bytes,
//
//	masks   a unit for each block: lane 4g + t has bit 16i + 4r + b for the entry of tile i in row g + 8·(r mod 2) and
//	        column 16·(r/2) + 4t + b
//	digits  those of each lane's entries, in the order of the bits: p.Bytes() bytes of each, the lowest first, one
//	        behind the other. Unit j has word j of each lane.
//
// The last piece of a strip has as many blocks as there are left.
type Strips struct {
	Blocks  int
	Pieces  int      // of a strip
	Offsets []uint32 // unit of each strip's pieces, and the end
	Data    []byte
	Largest int // bytes of the largest piece
}

// PackStrips quantises the entries of a, given the ranges of its rows. What is not finite is written as 0. The result
// has no data, and false is returned, if a piece exceeds most bytes, or all of them 2³² units.
func PackStrips[T formats.Value](a *formats.CSR[T], rows []Range, p P, blocks, most int) (*Strips, bool) {
	all := (a.Cols + StripColumns - 1) / StripColumns
	s := &Strips{Blocks: blocks, Pieces: (all + blocks - 1) / blocks}
	strips := (a.Rows + StripRows - 1) / StripRows
	sizes := make([]int, strips*s.Pieces)
	par.Each(strips, 4, func(i int) {
		at := stripStart(a, i)
		for j := range s.Pieces {
			sizes[i*s.Pieces+j] = min(blocks, all-j*blocks) + (mostOfLane(a, &at, i, (j+1)*blocks)*p.Bytes()+3)/4
		}
	})
	s.Offsets = make([]uint32, len(sizes)+1)
	total := int64(0)
	for i, n := range sizes {
		total += int64(n)
		s.Offsets[i+1] = uint32(total)
		s.Largest = max(s.Largest, n*StripUnit)
	}
	if s.Largest > most || total != int64(s.Offsets[len(sizes)]) {
		return s, false
	}
	s.Data = make([]byte, total*StripUnit)
	par.Each(strips, 4, func(i int) {
		w := stripWriter[T]{a: a, p: p, at: stripStart(a, i), values: make([]float32, blocks*32*32)}
		for r := range w.units {
			if row := i*StripRows + r; row < a.Rows {
				w.units[r] = p.L(rows[row].E())
			}
		}
		for j := range s.Pieces {
			first, last := s.Offsets[i*s.Pieces+j], s.Offsets[i*s.Pieces+j+1]
			w.write(s.Data[int(first)*StripUnit:int(last)*StripUnit], i, j*blocks, min(blocks, all-j*blocks))
		}
	})
	return s, true
}

// stripStart returns the first entries of a strip's rows.
func stripStart[T formats.Value](a *formats.CSR[T], strip int) (at [StripRows]int64) {
	for r := range at {
		if row := strip*StripRows + r; row < a.Rows {
			at[r] = a.RowPtr[row]
		}
	}
	return at
}

// place returns the lane that has a column of the strip's row r, and the bit of its mask.
func place(r, col int) (lane, bit int) {
	return r%8*4 + col%16/4, col/32%2*16 + (col/16%2*2+r/8)*4 + col%4
}

// mostOfLane returns the most entries that a lane has before a block, from the entries `at` on, which it moves there.
func mostOfLane[T formats.Value](a *formats.CSR[T], at *[StripRows]int64, strip, block int) int {
	var counts [32]int
	for r := range at {
		row := strip*StripRows + r
		if row >= a.Rows {
			break
		}
		for ; at[r] < a.RowPtr[row+1] && int(a.ColIdx[at[r]]) < block*StripColumns; at[r]++ {
			lane, _ := place(r, int(a.ColIdx[at[r]]))
			counts[lane]++
		}
	}
	return slices.Max(counts[:])
}

// stripWriter writes the pieces of a strip.
type stripWriter[T formats.Value] struct {
	a      *formats.CSR[T]
	p      P
	at     [StripRows]int64 // the next entries
	units  [StripRows]int
	values []float32 // of the piece's entries, by block, bit and lane
}

// write writes the piece of n blocks from a block on.
func (w *stripWriter[T]) write(piece []byte, strip, block, n int) {
	masks := piece[:n*StripUnit]
	for r := range w.at {
		if row := strip*StripRows + r; row < w.a.Rows {
			w.gather(masks, r, w.a.RowPtr[row+1], block, block+n)
		}
	}
	digits := piece[n*StripUnit:]
	for lane := range 32 {
		next := 0
		for b := range n {
			for mask := binary.LittleEndian.Uint32(masks[(b*32+lane)*4:]); mask != 0; mask &= mask - 1 {
				bit := bits.TrailingZeros32(mask)
				q := int64(0)
				if x := w.values[(b*32+bit)*32+lane]; IsFinite(x) {
					q = Quantise(x, w.units[lane/4+bit/4%2*8])
				}
				q = (q + 0x808080808080) ^ 0x808080808080 // balanced digits, in bytes
				for range w.p.Bytes() {
					digits[next/4*StripUnit+lane*4+next%4] = byte(q)
					q >>= 8
					next++
				}
			}
		}
	}
}

// gather notes a row's entries before the block last, in the masks and by their values.
func (w *stripWriter[T]) gather(masks []byte, r int, end int64, first, last int) {
	var buf [256]float32
	for {
		n := 0
		for ; n < len(buf) && w.at[r]+int64(n) < end && int(w.a.ColIdx[w.at[r]+int64(n)]) < last*StripColumns; n++ {
		}
		if n == 0 {
			return
		}
		formats.ConvertSlice(buf[:n], w.a.Val[w.at[r]:][:n])
		for i, x := range buf[:n] {
			col := int(w.a.ColIdx[w.at[r]+int64(i)])
			b := col/StripColumns - first
			lane, bit := place(r, col)
			mask := masks[(b*32+lane)*4:]
			binary.LittleEndian.PutUint32(mask, binary.LittleEndian.Uint32(mask)|1<<bit)
			w.values[(b*32+bit)*32+lane] = x
		}
		w.at[r] += int64(n)
	}
}
