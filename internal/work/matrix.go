// The matrix to multiply with.

package work

import (
	"sync"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Matrix is a matrix in the format that it comes in, CSR or another. Its CSR form is decoded when it is first needed: a
// kernel that takes the matrix as it comes needs none. Several devices share one Matrix.
type Matrix struct {
	formats.Encoded
	decoding sync.Mutex
	decoded  formats.Sparse

	// quantised, if set, is the matrix: Encoded has its values without their scales, as CSR.
	quantised *formats.Quantised

	// of, if set, is a larger matrix that this one is some rows of.
	of Extent
}

// NewMatrix returns a matrix as it is.
func NewMatrix(a formats.Encoded) *Matrix { return &Matrix{Encoded: a} }

// NewQuantised returns a quantised matrix.
func NewQuantised(q *formats.Quantised) *Matrix {
	return &Matrix{Encoded: q.Levels(), quantised: q}
}

// Kind is that of a quantised matrix's values, Invalid for any other matrix.
func (m *Matrix) Kind() dtype.Type {
	if m.quantised == nil {
		return dtype.Invalid
	}
	return m.quantised.Kind
}

// Sampled returns some rows of the matrix, for predictions: of a quantised one with other scales.
func (m *Matrix) Sampled() (*Matrix, error) { return m.SampledTo(LargeSample) }

// SampledTo is Sampled with about that many entries, or with the fewest that a group of rows has. The rows are packed
// as within the matrix, where a format can: how csr divides rows depends on all of them.
func (m *Matrix) SampledTo(entries int64) (*Matrix, error) {
	rows := Sample(m.CSR(), entries)
	if m.quantised == nil {
		of := m.of
		if of == (Extent{}) && rows.NNZ() < m.NNZ() {
			of = m.Extent()
		}
		return &Matrix{Encoded: rows, of: of}, nil
	}
	q, _, err := formats.Quantise(rows, m.quantised.Kind)
	if err != nil {
		return nil, err
	}
	return NewQuantised(q), nil
}

// IsDecoded tells whether the CSR form is there.
func (m *Matrix) IsDecoded() bool {
	m.decoding.Lock()
	defer m.decoding.Unlock()
	return m.decoded != nil
}

// Rows returns a range of the matrix's rows, as a matrix of its own.
func (m *Matrix) Rows(lo, hi int) *Matrix {
	if m.quantised != nil {
		return NewQuantised(m.quantised.RowRange(lo, hi))
	}
	return NewMatrix(m.CSR().RowRange(lo, hi))
}

// RowsWithin returns a range of the matrix's rows, to be summed as within the matrix, which has that extent.
func (m *Matrix) RowsWithin(lo, hi int, whole Extent) *Matrix {
	ptr, _ := m.CSR().Pattern()
	whole.Offset = ptr[lo]
	return &Matrix{Encoded: m.CSR().RowRange(lo, hi), of: whole}
}

// Extent returns the size of the matrix.
func (m *Matrix) Extent() Extent {
	rows, cols := m.Dims()
	ptr, _ := m.CSR().Pattern()
	return NewExtent(rows, cols, ptr)
}

// IsPart tells whether the matrix is some rows of a larger one, within which they are summed.
func (m *Matrix) IsPart() bool { return m.of != (Extent{}) }

// CSR returns the matrix as CSR.
func (m *Matrix) CSR() formats.Sparse {
	m.decoding.Lock()
	defer m.decoding.Unlock()
	if m.decoded == nil {
		m.decoded = m.Sparse()
	}
	return m.decoded
}
