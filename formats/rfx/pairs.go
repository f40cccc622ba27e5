// A sparse matrix's strips of 16 rows as pairs of entries, for units that multiply two of every four 8-bit integers.

package rfx

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// The sizes of strips in pairs.
const (
	PairUnit    = 16 // bytes; a segment takes a multiple of them
	blockGroups = StripColumns / 4
	noPlaces    = 0xcc // columns 0 and 3 of both groups

	// Doubled tells in Pairs.Strips that every block of a strip is followed by an extra one.
	Doubled uint32 = 1 << 31
)

// Pairs is a matrix's entries as balanced digits of 8 bits, in strips of StripRows rows. Columns are in groups of four.
// A block has 16 groups, and of each row the first two entries in each group, a pair. A strip has a block for every
// StripColumns columns, and extra blocks for entries that are third or fourth in their group. Where most groups have
// such entries every block is followed by an extra one, of the same groups (a strip that is Doubled); else extra blocks
// come last, and their groups are listed. Segments have up to Blocks blocks, and take
//
//	groups  of extra blocks that come last: 16 numbers of 2 bytes for each block
//	starts  2 bytes for each block: the number of its first pair in the segment; up to a multiple of 16 bytes
//	places  4 bytes for each block and lane of a warp: lane 4g + t has, for row g + 8·(t mod 2) and groups 8·(t/2) to
//	        8·(t/2) + 7, four bits each: the columns in their group of both slots of a pair, the first one in the lower
//	        bits
//	lanes   2 bytes for each block and lane: bit 2r + i of lane 4g + t tells whether there is a pair of row
//	        g + 8·(r mod 2), group 8·(r/2) + 2t + i; the upper byte is the number of the block's pairs in lanes before
//	pairs   2·p.Bytes() bytes each, up to a multiple of 4, in the order of block, lane and bit: the digits of both
//	        slots, the lowest place first; a slot without an entry is 0
//
// in little-endian order, up to a multiple of PairUnit bytes.
type Pairs struct {
	Blocks  int      // of a segment
	Strips  []uint32 // of each strip the number of its first segment, and of its extra blocks that come last, or Doubled
	Offsets []uint32 // of segments, in PairUnit bytes, and the end
	Data    []byte
	Size    int64 // bytes of Data
	Largest int   // bytes of the largest segment
	Count   int64 // of blocks
	Pairs   int64
}

// PackPairs quantises the entries of a, given the ranges of its rows. What is not finite is written as 0. The result
// has no data, and false is returned, if a segment exceeds most bytes, or all of them 2³² units.
func PackPairs[T formats.Value](a *formats.CSR[T], rows []Range, p P, blocks, most int) (*Pairs, bool) {
	s, strips := newPairs(a.RowPtr, a.ColIdx, a.Cols, p, blocks)
	if !s.fits(most) {
		return s, false
	}
	s.Data = make([]byte, s.Size)
	par.Each(len(strips), 4, func(i int) {
		w := pairWriter{s, &strips[i], p.pair(), i, s.bases(i, &strips[i], p)}
		w.heads()
		for row := i * StripRows; row < min(a.Rows, (i+1)*StripRows); row++ {
			unit := p.L(rows[row].E())
			w.each(a.RowPtr, a.ColIdx, row, func(block, group int, e int64, n int) {
				w.place(block, row%StripRows, group, a.ColIdx[e:][:n])
				var x [2]float32
				formats.ConvertSlice(x[:n], a.Val[e:][:n])
				for k, x := range x[:n] {
					if at := w.digits(block, row%StripRows, group, n, k, a.ColIdx[e]); IsFinite(x) {
						putDigits(s.Data[at:], Quantise(x, unit), p)
					}
				}
			})
		}
	})
	return s, true
}

// putDigits writes an entry's balanced digits, two bytes apart.
func putDigits(to []byte, q int64, p P) {
	q = (q + 0x808080808080) ^ 0x808080808080
	for d := range p.Bytes() {
		to[2*d] = byte(q >> (8 * d))
	}
}

// PairPlaces returns the byte of Pairs.Data at which the first digit of each entry is, in their order; the next digit
// is two bytes on. It returns what PackPairs does without data, whose size may not exceed 4 GiB.
func PairPlaces(rowptr []int64, colidx []int32, cols int, p P, blocks, most int) (s *Pairs, places []uint32, ok bool) {
	s, strips := newPairs(rowptr, colidx, cols, p, blocks)
	if !s.fits(most) || s.Size > math.MaxUint32 {
		return s, nil, false
	}
	places = make([]uint32, len(colidx))
	par.Each(len(strips), 4, func(i int) {
		w := pairWriter{s, &strips[i], p.pair(), i, s.bases(i, &strips[i], p)}
		for row := i * StripRows; row < min(len(rowptr)-1, (i+1)*StripRows); row++ {
			w.each(rowptr, colidx, row, func(block, group int, e int64, n int) {
				for k := range n {
					places[e+int64(k)] = uint32(w.digits(block, row%StripRows, group, n, k, colidx[e]))
				}
			})
		}
	})
	return s, places, true
}

// pair returns the bytes of a pair.
func (p P) pair() int { return (2*p.Bytes() + 3) &^ 3 }

// fits tells whether no segment exceeds most bytes, and Offsets hold their places.
func (s *Pairs) fits(most int) bool {
	return s.Largest <= most && s.Size == int64(s.Offsets[len(s.Offsets)-1])*PairUnit
}

// newPairs decides how large everything is.
func newPairs(rowptr []int64, colidx []int32, cols int, p P, blocks int) (*Pairs, []pairStrip) {
	all := (cols + StripColumns - 1) / StripColumns
	s := &Pairs{Blocks: blocks, Offsets: []uint32{0}}
	strips := make([]pairStrip, (len(rowptr)-1+StripRows-1)/StripRows)
	par.Each(len(strips), 4, func(i int) { strips[i] = newPairStrip(rowptr, colidx, all, i) })
	total := int64(0)
	for i := range strips {
		x := &strips[i]
		s.Strips = append(s.Strips, uint32(len(s.Offsets)-1), x.word())
		s.Count += int64(x.blocks())
		for first := 0; first < x.blocks(); {
			n, pairs := x.together(first, blocks), 0
			for b := range n {
				pairs += x.pairs(first + b)
			}
			size := (x.head(first, n) + pairs*p.pair() + PairUnit - 1) / PairUnit
			total += int64(size)
			s.Pairs += int64(pairs)
			s.Offsets = append(s.Offsets, uint32(total))
			s.Largest = max(s.Largest, size*PairUnit)
			first += n
		}
	}
	s.Size = total * PairUnit
	return s, strips
}

// bases returns the byte of Data at which the first pair of each block of strip i is.
func (s *Pairs) bases(i int, x *pairStrip, p P) []int {
	bases := make([]int, x.blocks())
	segment := int(s.Strips[2*i])
	for first := 0; first < len(bases); segment++ {
		n := x.together(first, s.Blocks)
		at := int(s.Offsets[segment])*PairUnit + x.head(first, n)
		for b := first; b < first+n; b++ {
			bases[b] = at
			at += x.pairs(b) * p.pair()
		}
		first += n
	}
	return bases
}

// pairStrip tells which pairs a strip has.
type pairStrip struct {
	regular int      // blocks without a list of groups
	doubled bool     // half of these are extra blocks
	lanes   []uint16 // as in Pairs
	groups  []int32  // of extra blocks that come last, ascending
}

func newPairStrip(rowptr []int64, colidx []int32, regular, strip int) pairStrip {
	x := pairStrip{regular: regular}
	first, last := strip*StripRows, min(len(rowptr)-1, (strip+1)*StripRows)
	for row := first; row < last; row++ {
		cols := colidx[rowptr[row]:rowptr[row+1]]
		EachGroup(cols, func(first, n int) {
			if n > 2 {
				x.groups = append(x.groups, cols[first]/4)
			}
		})
	}
	slices.Sort(x.groups)
	x.groups = slices.Compact(x.groups)
	if x.doubled = 4*len(x.groups) > 3*blockGroups*regular; x.doubled {
		x.groups, x.regular = nil, 2*regular
	}
	x.lanes = make([]uint16, 32*(x.regular+x.extra()))
	for row := first; row < last; row++ {
		x.each(rowptr, colidx, row, func(block, group int, _ int64, _ int) {
			lane, bit := pairOf(row%StripRows, group)
			x.lanes[32*block+lane] |= 1 << bit
		})
	}
	before := 0
	for i, b := range x.lanes {
		if i%32 == 0 {
			before = 0
		}
		x.lanes[i] |= uint16(before) << 8
		before += bits.OnesCount16(b)
	}
	return x
}

// pairOf returns the lane that has the pair of a strip's row in a block's group, and its bit.
func pairOf(row, group int) (lane, bit int) {
	return row%8*4 + group%8/2, (group/8*2+row/8)*2 + group%2
}

// word returns what Pairs.Strips tells of extra blocks.
func (x *pairStrip) word() uint32 {
	if x.doubled {
		return Doubled
	}
	return uint32(x.extra())
}

// blocks returns how many there are, extra how many of these are extra blocks that come last.
func (x *pairStrip) blocks() int { return len(x.lanes) / 32 }
func (x *pairStrip) extra() int  { return (len(x.groups) + blockGroups - 1) / blockGroups }

// pairs returns how many a block has.
func (x *pairStrip) pairs(block int) int {
	last := x.lanes[32*block+31]
	return int(last>>8) + bits.OnesCount16(last&255)
}

// together returns how many blocks from the first one on are in its segment.
func (x *pairStrip) together(first, most int) int {
	if first < x.regular {
		return min(most, x.regular-first)
	}
	return min(most, x.blocks()-first)
}

// head returns the bytes of a segment of n blocks before its pairs.
func (x *pairStrip) head(first, n int) int {
	size := (2*n+PairUnit-1)/PairUnit*PairUnit + 32*(4+2)*n
	if first >= x.regular {
		size += 2 * blockGroups * n
	}
	return size
}

// each calls f for the pairs of a row: the block and the place of its group there, the first entry, and whether there
// are one or two.
func (x *pairStrip) each(rowptr []int64, colidx []int32, row int, f func(block, group int, e int64, n int)) {
	cols := colidx[rowptr[row]:rowptr[row+1]]
	EachGroup(cols, func(first, n int) {
		e, group := rowptr[row]+int64(first), int(cols[first]/4)
		block := group / blockGroups
		if x.doubled {
			block *= 2
		}
		f(block, group%blockGroups, e, min(n, 2))
		switch {
		case n > 2 && x.doubled:
			f(block+1, group%blockGroups, e+2, n-2)
		case n > 2:
			i, _ := slices.BinarySearch(x.groups, int32(group))
			f(x.regular+i/blockGroups, i%blockGroups, e+2, n-2)
		}
	})
}

// pairWriter writes a strip.
type pairWriter struct {
	*Pairs
	*pairStrip
	bytes int // of a pair
	strip int
	bases []int // see Pairs.bases
}

// heads writes what segments begin with. Places are those of groups without a pair.
func (w *pairWriter) heads() {
	segment := w.Strips[2*w.strip]
	for first := 0; first < w.blocks(); segment++ {
		n := w.together(first, w.Blocks)
		to := w.Data[int(w.Offsets[segment])*PairUnit : int(w.Offsets[segment+1])*PairUnit]
		at := 0
		if first >= w.regular {
			from := (first - w.regular) * blockGroups
			for i, g := range w.groups[from:min(len(w.groups), from+n*blockGroups)] {
				binary.LittleEndian.PutUint16(to[2*i:], uint16(g))
			}
			at = 2 * blockGroups * n
		}
		for b := range n {
			binary.LittleEndian.PutUint16(to[at+2*b:], uint16((w.bases[first+b]-w.bases[first])/w.bytes))
		}
		lanes := w.head(first, n) - 32*2*n
		for i := lanes - 32*4*n; i < lanes; i++ {
			to[i] = noPlaces
		}
		for i, x := range w.lanes[32*first : 32*(first+n)] {
			binary.LittleEndian.PutUint16(to[lanes+2*i:], x)
		}
		first += n
	}
}

// place notes the columns of a pair.
func (w *pairWriter) place(block, row, group int, cols []int32) {
	low, high := cols[0]%4, int32(3)
	switch {
	case len(cols) == 2:
		high = cols[1] % 4
	case low == 3:
		low = 0
	}
	first := block - block%w.Blocks
	if block >= w.regular {
		first = block - (block-w.regular)%w.Blocks
	}
	n := w.together(first, w.Blocks)
	at := w.bases[first] - 32*(4+2)*n + 4*(32*(block-first)+row%8*4+group/8*2+row/8) + group%8/2
	w.Data[at] = w.Data[at]&^(15<<(group%2*4)) | byte(low|high<<2)<<(group%2*4)
}

// digits returns the byte of Data at which entry k of a pair of n entries begins. The first is in column col.
func (w *pairWriter) digits(block, row, group, n, k int, col int32) int {
	lane, bit := pairOf(row, group)
	x := w.lanes[32*block+lane]
	at := w.bases[block] + (int(x>>8)+bits.OnesCount16(x&(1<<bit-1)))*w.bytes
	if k > 0 || n == 1 && col%4 == 3 { // the first slot cannot have the last column
		at++
	}
	return at
}
