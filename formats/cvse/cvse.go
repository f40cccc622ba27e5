// The matrix type and what can be said of it.

package cvse

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// MaxV is the largest vector length: a vector's mask bits fit one word.
const MaxV = 32

// ErrTooLarge: the matrix has more value slots than 32-bit indices can number.
var ErrTooLarge = fmt.Errorf("%w for cvse", formats.ErrTooLarge)

// Matrix is a sparse matrix in Sparse Vector Compression. The package comment describes the arrays.
type Matrix[T formats.Value] struct {
	V     int // rows of a panel, 1 to MaxV
	Align int // each panel's vectors are padded to a multiple of it
	Rows  int
	Cols  int

	VecPtr []uint32
	ColInd []uint32
	Values []T
	Mask   []uint32
	Order  []uint32
}

// Panels returns the number of panels of a matrix of this number of rows.
func Panels(rows, v int) int { return slots.Ceil(rows, v) }

// maskWords returns the length of Mask for a number of value slots.
func maskWords(slots int) int { return (slots + 31) / 32 }

// vecMask returns the mask bits of vector p: bit r tells whether row r is a stored entry.
func (m *Matrix[T]) vecMask(p int) uint32 {
	at := p * m.V
	w, sh := at/32, uint(at%32)
	x := uint64(m.Mask[w])
	if int(sh)+m.V > 32 {
		x |= uint64(m.Mask[w+1]) << 32
	}
	return uint32(x>>sh) & (1<<m.V - 1)
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return slots.Stored(m.Mask) }

// Stats returns the format's costs: every slot of a vector is multiplied, every vector fetches a row of B.
func (m *Matrix[T]) Stats() formats.Stats {
	s := slots.Stats(m.Values, len(m.VecPtr)+len(m.ColInd)+len(m.Mask)+len(m.Order), len(m.ColInd), m.NNZ())
	if len(m.Order) > 0 { // the heaviest panel comes first
		s.Longest = int64(m.VecPtr[m.Order[0]+1] - m.VecPtr[m.Order[0]])
	}
	return s
}
