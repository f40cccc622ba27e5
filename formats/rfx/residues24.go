// Residues of a 2:4 matrix: two of every four columns, as sparse matrix units take them, and a remainder.

package rfx

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Remaining is set in a Sparse24's place of an entry that is in the remainder; the other bits are its number there.
const Remaining = 1 << 31

// Sparse24 says where the entries of a matrix lie in planes that have room for two of every four columns, in pairs of
// slots. A plane has, for each 128 columns, for each 64 rows, their 64 slots of each row: the 16-byte chunks of all
// rows one after the other. Behind the planes there is a word of places for each 32 columns of a row: for each four
// columns, from the lowest bits on, two bits for each slot. Places ascend; an empty slot has one, too. The words are by
// 256 columns, then 64 rows, then in the order of the instruction, then by 64 columns.
type Sparse24 struct {
	Planes
	At        []uint32 // of each entry, its byte in a plane, or Remaining and its number in the remainder
	Words     []uint32 // places
	Remainder []int64  // where each row's entries in the remainder begin, and their number
}

// Size returns the bytes of a plane.
func (s *Sparse24) Size() int { return s.Planes.size() / 2 }

// slot returns the byte in a plane of a slot of a row.
func (s *Sparse24) slot(row, slot int) int {
	in := slot % 64
	return (slot/64*s.Rows+row/64*64)*64 + in/16*1024 + row%64*16 + in%16
}

// word returns the word of a row's places that has those of a group of four columns.
func (s *Sparse24) word(row, group int) int {
	lane := row%64/16*32 + row%8*4 + group%16/8*2 + row%16/8
	return ((group/64*(s.Rows/64)+row/64)*128+lane)*4 + group/16%4
}

// WordsOf returns how many words of places a matrix of rows×cols has.
func WordsOf(rows, cols int) int { return (cols + 255) / 256 * rows * 8 }

// NewSparse24 gives each entry of a matrix in compressed rows its place in planes of l. The columns of a row ascend.
// l's rows are a multiple of 64, and a plane is smaller than Remaining.
func NewSparse24(rowptr []int64, colidx []int32, l Planes) *Sparse24 {
	s := &Sparse24{Planes: l, At: make([]uint32, len(colidx)), Words: make([]uint32, WordsOf(l.Rows, l.Cols)),
		Remainder: make([]int64, len(rowptr))}
	for i := range s.Words {
		s.Words[i] = 0x44444444 // places 0 and 1
	}
	for i := range len(rowptr) - 1 {
		count := s.Remainder[i]
		EachGroup(colidx[rowptr[i]:rowptr[i+1]], func(first, n int) {
			entry := int(rowptr[i]) + first
			group := int(colidx[entry]) / 4
			places := s.place(i, group, colidx[entry:entry+min(2, n)], s.At[entry:])
			at, shift := s.word(i, group), group%8*4
			s.Words[at] = s.Words[at]&^(15<<shift) | places<<shift
			for j := 2; j < n; j++ {
				s.At[entry+j] = Remaining | uint32(count)
				count++
			}
		})
		s.Remainder[i+1] = count
	}
	return s
}

// place gives one entry or two of a group their slots, and returns the places of both slots.
func (s *Sparse24) place(row, group int, cols []int32, at []uint32) uint32 {
	low := uint32(cols[0] % 4)
	switch {
	case len(cols) == 2:
		at[0], at[1] = uint32(s.slot(row, 2*group)), uint32(s.slot(row, 2*group+1))
		return low | uint32(cols[1]%4)<<2
	case low == 3:
		at[0] = uint32(s.slot(row, 2*group+1))
		return 0 | 3<<2
	}
	at[0] = uint32(s.slot(row, 2*group))
	return low | 3<<2
}

// EachGroup calls f for each four columns that a row has entries in, given the first of these and how many there are.
func EachGroup(cols []int32, f func(first, n int)) {
	for first := 0; first < len(cols); {
		n := 1
		for first+n < len(cols) && cols[first+n]/4 == cols[first]/4 {
			n++
		}
		f(first, n)
		first += n
	}
}

// Pack24 quantises a's entries at p, given the ranges of its rows. It returns the n planes, whose bytes are part's, and
// behind them the words of places; and the integers of the remainder. What is not finite is 0.
func Pack24[T formats.Value](s *Sparse24, a *formats.CSR[T], rows []Range, p P, n int,
	part func(q int64, i int) int8) (planes []byte, remainder []int64) {
	planes = make([]byte, s.Size()*n, s.Size()*n+4*len(s.Words))
	remainder = make([]int64, s.Remainder[a.Rows])
	par.Rows(a.RowPtr, 1<<12, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			unit := p.L(rows[i].E())
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				var x [1]float32
				formats.ConvertSlice(x[:], a.Val[e:e+1])
				if !IsFinite(x[0]) || x[0] == 0 {
					continue
				}
				q, at := Quantise(x[0], unit), s.At[e]
				if at&Remaining != 0 {
					remainder[at&^Remaining] = q
					continue
				}
				for m := range n {
					planes[int(at)+m*s.Size()] = byte(part(q, m))
				}
			}
		}
	})
	for _, w := range s.Words {
		planes = append(planes, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return planes, remainder
}
