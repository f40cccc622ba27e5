// The matrix type, its costs, and its validation.

package sparse24r

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/nm"
)

// PanelRows is the number of rows of a panel of the remainder. The number of its vectors is a multiple of it, too.
const PanelRows = 16

const (
	group = 4 // columns
	pair  = 2 // entries of a group that Pairs takes
)

// Matrix is a sparse matrix as the sum of Pairs and Remainder. The package comment describes them.
type Matrix[T formats.Value] struct {
	Rows, Cols int
	Pairs      nm.Matrix[T]
	Remainder  cvse.Matrix[T]
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return m.Pairs.NNZ() + m.Remainder.NNZ() }

// Stats returns the sum of both matrices' costs.
func (m *Matrix[T]) Stats() formats.Stats {
	s, r := m.Pairs.Stats(), m.Remainder.Stats()
	s.StoredBytes += r.StoredBytes
	s.Slots += r.Slots
	s.MACs += r.MACs
	s.Gathers += r.Gathers
	s.Longest = r.Longest
	if s.Slots > 0 {
		s.Fill = float64(m.NNZ()) / float64(s.Slots)
	}
	return s
}

// Details returns the share of entries that are in the remainder, and the number of its vectors.
func (m *Matrix[T]) Details() []formats.Detail {
	var part float64
	if n := m.NNZ(); n > 0 {
		part = float64(m.Remainder.NNZ()) / float64(n)
	}
	return []formats.Detail{{Name: "share of entries in the remainder", Value: part},
		{Name: "vectors of the remainder", Value: float64(len(m.Remainder.ColInd))}}
}

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays.
func (m *Matrix[T]) Validate() error {
	pairs, remainder := &m.Pairs, &m.Remainder
	switch {
	case pairs.Rows != m.Rows || pairs.Cols != m.Cols || remainder.Rows != m.Rows || remainder.Cols != m.Cols:
		return fmt.Errorf("sparse24r: pairs of %d×%d and a remainder of %d×%d in a matrix of %d×%d", pairs.Rows, pairs.Cols,
			remainder.Rows, remainder.Cols, m.Rows, m.Cols)
	case pairs.Pattern != nm.Sparse24:
		return fmt.Errorf("sparse24r: pairs of %v, not %v", pairs.Pattern, nm.Sparse24)
	case remainder.V != PanelRows || remainder.Align != PanelRows:
		return fmt.Errorf("sparse24r: a remainder of %d rows a panel, padded to %d vectors, not %d and %d", remainder.V,
			remainder.Align, PanelRows, PanelRows)
	}
	if err := pairs.Validate(); err != nil {
		return fmt.Errorf("sparse24r: pairs: %w", err)
	}
	if err := remainder.Validate(); err != nil {
		return fmt.Errorf("sparse24r: remainder: %w", err)
	}
	return checkSplit(pairs.Decode(), remainder.Decode())
}

// checkSplit checks that each entry of the remainder has two entries of pairs before it in its group.
func checkSplit[T formats.Value](pairs, remainder *formats.CSR[T]) error {
	for i := range pairs.Rows {
		cols := pairs.ColIdx[pairs.RowPtr[i]:pairs.RowPtr[i+1]]
		for _, c := range remainder.ColIdx[remainder.RowPtr[i]:remainder.RowPtr[i+1]] {
			for len(cols) > 0 && cols[0]/group < c/group {
				cols = cols[1:]
			}
			if len(cols) < pair || cols[pair-1]/group != c/group || cols[pair-1] >= c {
				return fmt.Errorf("sparse24r: row %d, column %d is in the remainder, and not two entries of its group stand before it", i, c)
			}
		}
	}
	return nil
}
