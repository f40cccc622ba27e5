// The matrix that a plan is made for.

package plan

import "github.com/spmmrun/spmm/formats"

// source is a matrix in the format that it comes in, CSR or another. Its CSR form is decoded when it is first
// needed: a kernel that takes the matrix as it comes needs none.
type source struct {
	formats.Encoded
	decoded formats.Sparse
}

func newSource(a formats.Encoded) *source { return &source{Encoded: a} }

// csr returns the matrix as CSR.
func (s *source) csr() formats.Sparse {
	if s.decoded == nil {
		s.decoded = s.Sparse()
	}
	return s.decoded
}
