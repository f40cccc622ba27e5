// The pattern, the matrix type and what can be said of them.

package nm

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Limits of a pattern: a group's units are the bits of a word, and a panel's rows are few.
const (
	MaxM = 64
	MaxV = 256
	MaxW = 64
)

// ErrPattern: the matrix does not obey the pattern, or any.
var ErrPattern = errors.New("not an N:M matrix")

// ErrTooLarge: the matrix has more value slots than 32-bit indices can number.
var ErrTooLarge = fmt.Errorf("%w for nm", formats.ErrTooLarge)

// Pattern says that of every M neighbouring units of V rows by W columns at most N hold entries.
type Pattern struct {
	N, M int // 1 ≤ N ≤ M, 2 ≤ M ≤ MaxM
	V, W int // 1 to MaxV, 1 to MaxW
}

// String names a pattern: "2:4", "2:4 of 32×1 vectors", "2:4 of 16×16 blocks".
func (p Pattern) String() string {
	s := fmt.Sprintf("%d:%d", p.N, p.M)
	switch {
	case p.W > 1:
		return fmt.Sprintf("%s of %d×%d blocks", s, p.V, p.W)
	case p.V > 1:
		return fmt.Sprintf("%s of %d×1 vectors", s, p.V)
	}
	return s
}

// Bits returns the bits of a unit's place in its group.
func (p Pattern) Bits() int { return bits.Len(uint(p.M - 1)) }

func (p Pattern) check() error {
	if p.N < 1 || p.N > p.M || p.M < 2 || p.M > MaxM || p.V < 1 || p.V > MaxV || p.W < 1 || p.W > MaxW {
		return fmt.Errorf("nm: pattern %d:%d of %d×%d units: need 1 ≤ N ≤ M, M from 2 to %d, and units of at most %d×%d",
			p.N, p.M, p.V, p.W, MaxM, MaxV, MaxW)
	}
	return nil
}

// Matrix is a sparse matrix that obeys a pattern. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	Pattern
	Rows, Cols int

	Values []T
	Index  []uint32
	Mask   []uint32
}

// Shape has the sizes of a matrix's arrays in a pattern.
type Shape struct {
	Panels     int // of V rows
	Groups     int // of M·W columns, in a panel
	Slots      int // units kept, in a panel
	Columns    int // condensed columns of a panel
	IndexWords int // of a panel
	MaskWords  int // of a panel
}

// Shape returns the sizes for a matrix of rows × cols. The error wraps ErrTooLarge if it has more than formats.MaxSlots
// values.
func (p Pattern) Shape(rows, cols int) (Shape, error) {
	if err := p.check(); err != nil {
		return Shape{}, err
	}
	if err := slots.CheckSize(name, rows, cols); err != nil {
		return Shape{}, err
	}
	s := Shape{Panels: slots.Ceil(rows, p.V), Groups: slots.Ceil(cols, p.M*p.W)}
	columns := int64(s.Groups) * int64(p.N*p.W) // at most 2³², and so 2⁴⁰ for a panel's values
	if most := formats.MaxSlots / max(1, int64(s.Panels)); columns > formats.MaxSlots || columns*int64(p.V) > most &&
		s.Panels > 0 {
		return Shape{}, fmt.Errorf("%w: %d×%d as %v has more than %d values", ErrTooLarge, rows, cols, p,
			int64(formats.MaxSlots))
	}
	s.Slots = s.Groups * p.N
	s.Columns = int(columns)
	s.IndexWords = slots.Ceil(s.Slots*p.Bits(), 32)
	s.MaskWords = slots.Ceil(s.Columns*p.V, 32)
	return s, nil
}

// place returns the place in its group of panel words' slot s.
func (p Pattern) place(words []uint32, s int) int {
	q := p.Bits()
	at := s * q
	x := uint64(words[at/32])
	if at%32+q > 32 {
		x |= uint64(words[at/32+1]) << 32
	}
	return int(x >> (at % 32) & (1<<q - 1))
}

// setPlace writes it where zeros were.
func (p Pattern) setPlace(words []uint32, s, place int) {
	q := p.Bits()
	at := s * q
	x := uint64(place) << (at % 32)
	words[at/32] |= uint32(x)
	if at%32+q > 32 {
		words[at/32+1] |= uint32(x >> 32)
	}
}

// Obeys returns the matrix's pattern.
func (m *Matrix[T]) Obeys() Pattern { return m.Pattern }

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return slots.Stored(m.Mask) }

// Stats returns the format's costs: every value is multiplied, every condensed column of a panel fetches a row of B.
func (m *Matrix[T]) Stats() formats.Stats {
	return slots.Stats(m.Values, len(m.Index)+len(m.Mask), len(m.Values)/m.V, m.NNZ())
}

// Kept returns the matrix's column for each of panel p's condensed columns. In the last group they may be past the
// matrix. m must be valid.
func (m *Matrix[T]) Kept(p int) []int {
	s, err := m.Shape(m.Rows, m.Cols)
	if err != nil {
		return nil
	}
	index := m.Index[p*s.IndexWords:][:s.IndexWords]
	cols := make([]int, 0, s.Columns)
	for slot := range s.Slots {
		first := (slot/m.N*m.M + m.place(index, slot)) * m.W
		for w := range m.W {
			cols = append(cols, first+w)
		}
	}
	return cols
}
