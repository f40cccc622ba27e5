// A sparse matrix's strips of 16 rows as digits, for units that multiply matrices of 8-bit integers by few columns.

package rfx

import (
	"encoding/binary"
	"math"
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
//	masks   a unit for each block: lane 4g + t has bit 16i + 4b + r for the entry of tile i in row g + 8·(r mod 2) and
//	        column 16·(r/2) + 4t + b
//	digits  those of each lane's entries, in the order of block, i, r and b: p.Bytes() bytes of each, the lowest
//	        first, one behind the other. Unit j has word j of each lane.
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

// place returns the lane that has a column of the strip's row r, and the entry's place among those of the lane in the
// block.
func place(r, col int) (lane, entry int) {
	return r%8*4 + col%16/4, col/32%2*16 + (col/16%2*2+r/8)*4 + col%4
}

// maskBit returns the bit of a mask for an entry's place.
func maskBit(entry int) int { return entry&16 | entry&3<<2 | entry>>2&3 }

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
	values []float32 // of the piece's entries, by block, place and lane
}

// write writes the piece of n blocks from a block on.
func (w *stripWriter[T]) write(piece []byte, strip, block, n int) {
	masks := piece[:n*StripUnit]
	w.masks(masks, strip, block, n)
	digits := piece[n*StripUnit:]
	w.each(masks, n, func(lane, block, entry, at int) {
		q := int64(0)
		if x := w.values[(block*32+entry)*32+lane]; IsFinite(x) {
			q = Quantise(x, w.units[lane/4+entry/4%2*8])
		}
		q = (q + 0x808080808080) ^ 0x808080808080 // balanced digits, in bytes
		for i := range w.p.Bytes() {
			digits[digitAt(lane, at+i)] = byte(q >> (8 * i))
		}
	})
}

// each calls f for the entries of a piece of n blocks, with the number of their first digit among the lane's.
func (w *stripWriter[T]) each(masks []byte, n int, f func(lane, block, entry, at int)) {
	for lane := range 32 {
		at := 0
		for b := range n {
			mask := binary.LittleEndian.Uint32(masks[(b*32+lane)*4:])
			for e := range 32 {
				if mask>>maskBit(e)&1 != 0 {
					f(lane, b, e, at)
					at += w.p.Bytes()
				}
			}
		}
	}
}

// digitAt returns where a lane's digit is among a piece's.
func digitAt(lane, i int) int { return i/4*StripUnit + lane*4 + i%4 }

// Places returns the byte of s.Data at which the first digit of each entry of a is, in their order; the next digit is in
// the next byte of the word, or in the first one of the word StripUnit bytes on. It may not exceed 4 GiB.
func (s *Strips) Places(a *formats.CSR[float32], p P) []uint32 {
	places := make([]uint32, len(a.Val))
	numbers := &formats.CSR[float32]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx,
		Val: make([]float32, len(a.Val))}
	for i := range numbers.Val {
		numbers.Val[i] = math.Float32frombits(uint32(i))
	}
	all := (a.Cols + StripColumns - 1) / StripColumns
	par.Each((a.Rows+StripRows-1)/StripRows, 4, func(i int) {
		w := stripWriter[float32]{a: numbers, p: p, at: stripStart(a, i), values: make([]float32, s.Blocks*32*32)}
		for j := range s.Pieces {
			n, first := min(s.Blocks, all-j*s.Blocks), int(s.Offsets[i*s.Pieces+j])*StripUnit
			masks := make([]byte, n*StripUnit)
			w.masks(masks, i, j*s.Blocks, n)
			w.each(masks, n, func(lane, block, entry, at int) {
				number := math.Float32bits(w.values[(block*32+entry)*32+lane])
				places[number] = uint32(first + n*StripUnit + digitAt(lane, at))
			})
		}
	})
	return places
}

// masks notes the entries of a piece.
func (w *stripWriter[T]) masks(masks []byte, strip, block, n int) {
	for r := range w.at {
		if row := strip*StripRows + r; row < w.a.Rows {
			w.gather(masks, r, w.a.RowPtr[row+1], block, block+n)
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
			lane, e := place(r, col)
			mask := masks[(b*32+lane)*4:]
			binary.LittleEndian.PutUint32(mask, binary.LittleEndian.Uint32(mask)|1<<maskBit(e))
			w.values[(b*32+e)*32+lane] = x
		}
		w.at[r] += int64(n)
	}
}
