// From CSR to the two parts and back.

package sparse24r

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/nm"
)

// grain is the entries that a core takes at least.
const grain = 1 << 14

// Encode packs a. It uses all cores and takes time proportional to the entries and to half of the matrix's size. A
// matrix of more than formats.MaxSlots slots is ErrTooLarge of formats.
func Encode[T formats.Value](a *formats.CSR[T]) (*Matrix[T], error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if _, err := nm.Sparse24.Shape(a.Rows, a.Cols); err != nil {
		return nil, err
	}
	p, r := split(a)
	pairs, err := nm.Encode(p, nm.Sparse24)
	if err != nil {
		return nil, err
	}
	remainder, err := cvse.Encode(r, cvse.Options{V: PanelRows, Align: PanelRows})
	if err != nil {
		return nil, err
	}
	return &Matrix[T]{Rows: a.Rows, Cols: a.Cols, Pairs: *pairs, Remainder: *remainder}, nil
}

// split returns the parts of a valid matrix.
func split[T formats.Value](a *formats.CSR[T]) (pairs, remainder *formats.CSR[T]) {
	pairs = &formats.CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: make([]int64, a.Rows+1)}
	remainder = &formats.CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: make([]int64, a.Rows+1)}
	rows(a, func(i int) {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			if exceeds(a, i, e) {
				remainder.RowPtr[i+1]++
			}
		}
	})
	for i := range a.Rows {
		remainder.RowPtr[i+1] += remainder.RowPtr[i]
		pairs.RowPtr[i+1] = a.RowPtr[i+1] - remainder.RowPtr[i+1]
	}
	for _, m := range []*formats.CSR[T]{pairs, remainder} {
		n := m.RowPtr[a.Rows]
		m.ColIdx, m.Val = make([]int32, n), make([]T, n)
	}
	rows(a, func(i int) {
		next := [2]int64{pairs.RowPtr[i], remainder.RowPtr[i]}
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			m, at := pairs, &next[0]
			if exceeds(a, i, e) {
				m, at = remainder, &next[1]
			}
			m.ColIdx[*at], m.Val[*at] = a.ColIdx[e], a.Val[e]
			*at++
		}
	})
	return pairs, remainder
}

// exceeds reports whether entry e of row i has two entries of its group before it.
func exceeds[T formats.Value](a *formats.CSR[T], i int, e int64) bool {
	return e-pair >= a.RowPtr[i] && a.ColIdx[e-pair]/group == a.ColIdx[e]/group
}

// rows calls f for each row of a matrix. It uses all cores.
func rows[T formats.Value](a *formats.CSR[T], f func(i int)) {
	par.Rows(a.RowPtr, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}

// Decode returns the matrix that was encoded, stored zeros included. m must be valid.
func (m *Matrix[T]) Decode() *formats.CSR[T] {
	pairs, remainder := m.Pairs.Decode(), m.Remainder.Decode()
	a := &formats.CSR[T]{Rows: m.Rows, Cols: m.Cols, RowPtr: make([]int64, m.Rows+1)}
	for i := range a.RowPtr {
		a.RowPtr[i] = pairs.RowPtr[i] + remainder.RowPtr[i]
	}
	nnz := a.RowPtr[m.Rows]
	a.ColIdx, a.Val = make([]int32, nnz), make([]T, nnz)
	rows(a, func(i int) {
		p, r := pairs.RowPtr[i], remainder.RowPtr[i]
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			from, at := pairs, &p
			if p == pairs.RowPtr[i+1] || r < remainder.RowPtr[i+1] && remainder.ColIdx[r] < pairs.ColIdx[p] {
				from, at = remainder, &r
			}
			a.ColIdx[e], a.Val[e] = from.ColIdx[*at], from.Val[*at]
			*at++
		}
	})
	return a
}

// WithoutValues returns the matrix without its values. The result is not valid; it is only for WithValues. It shares
// all other arrays.
func (m *Matrix[T]) WithoutValues() formats.Encoded {
	out := *m
	out.Pairs.Values, out.Remainder.Values = nil, nil
	return &out
}

// WithValues returns the matrix with other values in the same places, in the order of Decode. It shares all other
// arrays. There must be NNZ values.
func (m *Matrix[T]) WithValues(values []T) formats.Encoded {
	out := *m
	if s, err := nm.Sparse24.Shape(m.Rows, m.Cols); err == nil { // values of any kind, to decode
		out.Pairs.Values, out.Remainder.Values = make([]T, s.Panels*s.Columns), make([]T, len(m.Remainder.ColInd)*PanelRows)
	}
	a := out.Decode()
	a.Val = values
	pairs, remainder := split(a)
	out.Pairs = *m.Pairs.WithValues(pairs.Val).(*nm.Matrix[T])
	out.Remainder = *m.Remainder.WithValues(remainder.Val).(*cvse.Matrix[T])
	return &out
}
