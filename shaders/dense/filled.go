// Sparse matrices as dense ones: they are filled with zeros, and a bit for each element says whether it is an entry.

package dense

import (
	"fmt"
	"math/bits"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// filled is the pattern of a sparse matrix that was filled with zeros. It counts as CSR, because WithValues returns
// CSR.
type filled[T formats.Value] struct {
	*formats.CSR[T]          // without arrays
	stored          []uint32 // bit j%32 of word i·⌈columns/32⌉ + j/32: element (i, j) is an entry
}

// words returns the number of words of a row's bits.
func words(cols int) int { return spec.Ceil(cols, 32) }

// fill packs a matrix that does not store every element.
func fill[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("kernel dense/%s: %w", v.Name, err)
	}
	stats, items, err := measure(a.Rows, a.Cols, a.NNZ(), v)
	if err != nil {
		return nil, err
	}
	ld, w := lda(a.Cols), words(a.Cols)
	data, stored := make([]T, a.Rows*ld), make([]uint32, a.Rows*w)
	spec.Shares(a.Rows, 64, spec.MemoryCores, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			line, mask := data[i*ld:], stored[i*w:]
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				j := a.ColIdx[e]
				line[j] = a.Val[e]
				mask[j>>5] |= 1 << (j & 31)
			}
		}
	})
	return &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Items: items, Stats: stats,
		Format: filled[T]{&formats.CSR[T]{Rows: a.Rows, Cols: a.Cols}, stored},
		Arrays: []spec.Array{spec.NewArray("a", data), spec.NewArray("stored", stored)},
	}, nil
}

// WithValues returns the matrix as CSR, with these values for its entries, by rows.
func (f filled[T]) WithValues(values []T) formats.Encoded {
	a := &formats.CSR[T]{Rows: f.Rows, Cols: f.Cols, RowPtr: make([]int64, f.Rows+1),
		ColIdx: make([]int32, 0, len(values)), Val: values}
	w := words(f.Cols)
	for i := range f.Rows {
		for q, word := range f.stored[i*w : (i+1)*w] {
			for ; word != 0; word &= word - 1 {
				a.ColIdx = append(a.ColIdx, int32(32*q+bits.TrailingZeros32(word)))
			}
		}
		a.RowPtr[i+1] = int64(len(a.ColIdx))
	}
	return a
}

// WithoutValues returns f, which holds none.
func (f filled[T]) WithoutValues() formats.Encoded { return f }

// bitWords returns the number of words of a row in the array of bits; 0 if all elements are entries.
func bitWords(e *spec.Packed) uint32 {
	if _, ok := e.Format.(formats.Sparse); ok {
		return uint32(words(e.Cols))
	}
	return 0
}
