// The matrix that a plan is made for.

package plan

import (
	"sync"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// source is a matrix in the format that it comes in, CSR or another. Its CSR form is decoded when it is first
// needed: a kernel that takes the matrix as it comes needs none. Devices of a group share one.
type source struct {
	formats.Encoded
	decoding sync.Mutex
	decoded  formats.Sparse

	// quantised, if set, is the matrix: Encoded has its values without their scales, as CSR.
	quantised *formats.Quantised

	// of, if set, is the matrix of which this one is some rows.
	of Extent
}

func newSource(a formats.Encoded) *source { return &source{Encoded: a} }

func newQuantisedSource(q *formats.Quantised) *source {
	return &source{Encoded: q.Levels(), quantised: q}
}

// kind is that of a quantised matrix's values, Invalid for any other matrix.
func (s *source) kind() dtype.Type {
	if s.quantised == nil {
		return dtype.Invalid
	}
	return s.quantised.Kind
}

// sampled returns some rows of the matrix, for predictions: of a quantised one with other scales.
func (s *source) sampled() (*source, error) {
	rows := sample(s.csr())
	if s.quantised == nil {
		return &source{Encoded: rows, of: s.of}, nil
	}
	q, _, err := formats.Quantise(rows, s.quantised.Kind)
	if err != nil {
		return nil, err
	}
	return newQuantisedSource(q), nil
}

// pack packs the matrix for a variant, and returns it with elements of the variant's type.
func (s *source) pack(k *spec.Format, v *spec.Variant) (*source, *spec.Packed, error) {
	m := newSource(formats.ConvertTo(s.csr(), v.In))
	if m.quantised = s.quantised; s.quantised != nil {
		e, err := k.EncodeQuantised(s.quantised, v)
		return m, e, err
	}
	if m.of = s.of; s.of != (Extent{}) {
		e, err := k.EncodeShare(m.csr(), v, s.of)
		return m, e, err
	}
	e, err := k.Encode(m.csr(), v)
	return m, e, err
}

// part packs a range of the matrix's rows as the whole matrix was packed.
func (s *source) part(lo, hi int, k *spec.Format, v *spec.Variant, whole *spec.Packed) (*spec.Packed, error) {
	if s.quantised != nil {
		return k.EncodeQuantised(s.quantised.RowRange(lo, hi), v)
	}
	if s.of != (Extent{}) {
		of := s.of
		ptr, _ := s.csr().Pattern()
		of.Offset += ptr[lo]
		return k.EncodeShare(s.csr().RowRange(lo, hi), v, of)
	}
	return k.Part(s.csr().RowRange(lo, hi), v, whole)
}

// csr returns the matrix as CSR.
func (s *source) csr() formats.Sparse {
	s.decoding.Lock()
	defer s.decoding.Unlock()
	if s.decoded == nil {
		s.decoded = s.Sparse()
	}
	return s.decoded
}
