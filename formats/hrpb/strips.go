// Strips: the rows of a panel by a few, each kept as column vectors, for kernels that multiply without matrix units.

package hrpb

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// StripRows is the rows of a strip.
const StripRows = 4

const (
	// stripAlign is the vectors that kernels take at once: a strip has a multiple of them.
	stripAlign = 4
	// longestStrip is the fewest vectors above which a strip is cut, and stripPieces about how many strips keep a large
	// GPU busy.
	longestStrip, stripPieces = 64, 4096
)

// Strips is a matrix as strips of rows that lie together in panels: strip s is places StripRows·s to StripRows·(s+1)
// (see Row). It is made of vectors of StripRows values, one for each column in which the strip has entries, in
// ascending order but for padding.
type Strips[T formats.Value] struct {
	// Columns has a word for each vector: its column, and from bit 32-StripRows on a bit for each of its values that is an
	// entry. The word of padding is 0.
	Columns []uint32
	Values  []T // StripRows for each vector; 0 where there is no entry
	// Parts is the work list: what the word Panel means is a strip, and First and Last are vectors, multiples of 4. Strips
	// of more than Longest vectors are cut as panels are, and listed in Splits. The longest come first.
	Parts, Splits []Part
	Longest       int
	Slots         int // of the workspace, StripRows rows each
}

// Strips returns the matrix as strips. The error wraps ErrTooLarge if it has more columns than 32-StripRows bits can
// number.
func (m *Matrix[T]) Strips() (*Strips[T], error) {
	if m.Cols > 1<<(32-StripRows) {
		return nil, fmt.Errorf("hrpb: strips of a matrix of %d columns: %w", m.Cols, ErrTooLarge)
	}
	s := &Strips[T]{}
	ptr := m.countVectors()
	vectors := ptr[len(ptr)-1]
	if vectors > 1<<31 {
		return nil, fmt.Errorf("hrpb: %d vectors of strips: %w", vectors, ErrTooLarge)
	}
	s.Columns, s.Values = make([]uint32, vectors), make([]T, StripRows*vectors)
	const perPanel = PanelRows / StripRows
	par.Range(len(m.BlockPtr)-1, 64, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			s.fill(m, p, ptr[p*perPanel:])
		}
	})
	s.Longest = max(longestStrip, (int(vectors)/stripPieces+stripAlign-1)/stripAlign*stripAlign)
	s.list((m.Rows+StripRows-1)/StripRows, ptr)
	return s, nil
}

// WithStrips returns the matrix with the work list of its strips in place of that of its panels: Work then describes
// that, and RowIdx follows it. It shares the arrays.
func (m *Matrix[T]) WithStrips(s *Strips[T]) *Matrix[T] {
	out := *m
	out.StripWork = &Work{Parts: len(s.Parts), Splits: len(s.Splits), Slots: s.Slots, PartBlocks: s.Longest}
	if len(m.RowIdx) > 0 {
		out.StripWork.Places = 4 * (len(s.Parts) + len(s.Splits))
	}
	return &out
}

// countVectors returns where the vectors of each strip start, those of padding counted.
func (m *Matrix[T]) countVectors() []int64 {
	const perPanel, stripBits = PanelRows / StripRows, BrickCols * StripRows
	panels := len(m.BlockPtr) - 1
	ptr := make([]int64, panels*perPanel+1)
	par.Range(panels, 64, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			counts := ptr[1+p*perPanel:][:perPanel]
			for q := int(m.BlockPtr[p]); q < int(m.BlockPtr[p+1]); q++ {
				b := m.Block(q)
				for i := range b.Bricks() {
					for s, w := 0, b.Pattern(i); w != 0; s, w = s+1, w>>stripBits {
						counts[s] += int64(bits.OnesCount64(columns(w & (1<<stripBits - 1))))
					}
				}
			}
			for s, n := range counts {
				counts[s] = (n + stripAlign - 1) / stripAlign * stripAlign
			}
		}
	})
	for i := range ptr[1:] {
		ptr[i+1] += ptr[i]
	}
	return ptr
}

// fill writes the vectors of a panel's strips, which start at ptr.
func (s *Strips[T]) fill(m *Matrix[T], p int, ptr []int64) {
	at := [PanelRows / StripRows]int64(ptr)
	for q := int(m.BlockPtr[p]); q < int(m.BlockPtr[p+1]); q++ {
		b := m.Block(q)
		values := b.Values()
		for i := range b.Bricks() {
			var place [PanelRows / StripRows][BrickCols]int64 // of the brick's vectors, plus 1
			for w := b.Pattern(i); w != 0; w &= w - 1 {
				bit := bits.TrailingZeros64(w)
				strip, row, c := bit/BrickCols/StripRows, bit/BrickCols%StripRows, bit%BrickCols
				if place[strip][c] == 0 {
					at[strip]++
					place[strip][c] = at[strip]
				}
				v := place[strip][c] - 1
				s.Columns[v] |= b.Active[i*BrickCols+c] | 1<<(32-StripRows+row)
				s.Values[v*StripRows+int64(row)] = values[0]
				values = values[1:]
			}
		}
	}
}

// list makes the work list of this number of strips.
func (s *Strips[T]) list(strips int, ptr []int64) {
	for i := range strips {
		first, last := uint32(ptr[i]), uint32(ptr[i+1])
		n := splitIn(last-first, s.Longest)
		if n == 1 {
			s.Parts = append(s.Parts, Part{uint32(i), first, last, NoSlot})
			continue
		}
		s.Splits = append(s.Splits, Part{uint32(i), first, last, uint32(s.Slots)})
		for j := range n {
			from, to := share((last-first)/stripAlign, j, n), share((last-first)/stripAlign, j+1, n)
			s.Parts = append(s.Parts, Part{uint32(i), first + stripAlign*from, first + stripAlign*to, uint32(s.Slots)})
			s.Slots++
		}
	}
	const short = 16 // vectors, about which order does not matter
	class := func(p Part) int { return bits.Len32((p.Last - p.First) / short) }
	slices.SortStableFunc(s.Parts, func(x, y Part) int { return cmp.Compare(class(y), class(x)) })
}
