// The matrix type and what can be said of it.

package sparse24r

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/nm"
)

// PanelRows is the rows of a panel of the remainder, and the multiple that its vectors are padded to.
const PanelRows = 16

const (
	group = 4 // columns
	pair  = 2 // entries of a group that Pairs takes
)

// Matrix is a sparse matrix as the sum of two. The package comment describes them.
type Matrix[T formats.Value] struct {
	Rows, Cols int
	Pairs      nm.Matrix[T]
	Rest       cvse.Matrix[T]
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 { return m.Pairs.NNZ() + m.Rest.NNZ() }

// Stats adds up what both matrices cost.
func (m *Matrix[T]) Stats() formats.Stats {
	s, r := m.Pairs.Stats(), m.Rest.Stats()
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

// Details tells how much of the matrix exceeds 2:4.
func (m *Matrix[T]) Details() []formats.Detail {
	var part float64
	if n := m.NNZ(); n > 0 {
		part = float64(m.Rest.NNZ()) / float64(n)
	}
	return []formats.Detail{{Name: "part of the entries in the remainder", Value: part},
		{Name: "vectors of the remainder", Value: float64(len(m.Rest.ColInd))}}
}

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be decoded and
// multiplied without touching memory outside its arrays.
func (m *Matrix[T]) Validate() error {
	pairs, rest := &m.Pairs, &m.Rest
	switch {
	case pairs.Rows != m.Rows || pairs.Cols != m.Cols || rest.Rows != m.Rows || rest.Cols != m.Cols:
		return fmt.Errorf("sparse24r: parts of %d×%d and %d×%d of a matrix of %d×%d", pairs.Rows, pairs.Cols, rest.Rows,
			rest.Cols, m.Rows, m.Cols)
	case pairs.Pattern != nm.Sparse24:
		return fmt.Errorf("sparse24r: pairs of %v, not %v", pairs.Pattern, nm.Sparse24)
	case rest.V != PanelRows || rest.Align != PanelRows:
		return fmt.Errorf("sparse24r: a remainder of %d rows a panel, padded to %d vectors, not %d and %d", rest.V, rest.Align, PanelRows, PanelRows)
	}
	if err := pairs.Validate(); err != nil {
		return fmt.Errorf("sparse24r: pairs: %w", err)
	}
	if err := rest.Validate(); err != nil {
		return fmt.Errorf("sparse24r: remainder: %w", err)
	}
	return checkSplit(pairs.Decode(), rest.Decode())
}

// checkSplit tells whether each entry of the remainder has two entries of pairs before it in its group.
func checkSplit[T formats.Value](pairs, rest *formats.CSR[T]) error {
	for i := range pairs.Rows {
		cols := pairs.ColIdx[pairs.RowPtr[i]:pairs.RowPtr[i+1]]
		for _, c := range rest.ColIdx[rest.RowPtr[i]:rest.RowPtr[i+1]] {
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
