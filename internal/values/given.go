// The order in which the entries of a matrix were given.

package values

import (
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// Given tells in which order the entries of a matrix were given, and keeps the pattern where that takes it.
type Given struct {
	rows, cols int
	ptr        []int64 // nil if not kept
	idx        []int32
	Reordered  bool     // entries were given by columns, those of each by ascending row
	number     []uint32 // then the number that each was given; made when first needed
}

// NewGiven keeps what new values need besides the packed matrix: the pattern too, if whole or reordered. A matrix
// that is reordered shares no memory with the caller's.
func NewGiven(a formats.Encoded, reordered, whole bool) *Given {
	g := &Given{Reordered: reordered}
	g.rows, g.cols = a.Dims()
	if reordered || whole {
		s := a.Sparse()
		g.ptr, g.idx = s.Pattern()
		if s == a && !reordered { // the caller's
			g.ptr, g.idx = slices.Clone(g.ptr), slices.Clone(g.idx)
		}
	}
	return g
}

// numbers returns the number that each entry was given; nil if that is its own.
func (g *Given) numbers() []uint32 {
	if !g.Reordered || g.number != nil {
		return g.number
	}
	next := make([]uint32, g.cols+1)
	for _, c := range g.idx {
		next[c+1]++
	}
	for c := range g.cols {
		next[c+1] += next[c]
	}
	g.number = make([]uint32, len(g.idx))
	for i, c := range g.idx {
		g.number[i] = next[c]
		next[c]++
	}
	return g.number
}

// Sparse returns the matrix with values of a type, in its own order.
func (g *Given) Sparse(t dtype.Type, v Host) formats.Sparse {
	switch t {
	case dtype.F16:
		return &formats.CSR[half.F16]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[half.F16](g, v)}
	case dtype.BF16:
		return &formats.CSR[half.BF16]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[half.BF16](g,
			v)}
	}
	if t == dtype.F64 {
		return &formats.CSR[float64]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[float64](g, v)}
	}
	return &formats.CSR[float32]{Rows: g.rows, Cols: g.cols, RowPtr: g.ptr, ColIdx: g.idx, Val: ordered[float32](g, v)}
}

// Zeros returns the matrix with values of a type that are all zero.
func (g *Given) Zeros(t dtype.Type) formats.Sparse {
	return g.Sparse(t, Host{t, make([]byte, int64(t.Size())*int64(len(g.idx)))})
}

// InOrder returns values in the order of the matrix's entries.
func (g *Given) InOrder(v Host) []byte {
	switch v.Type {
	case dtype.F16:
		return backend.Bytes(ordered[half.F16](g, v))
	case dtype.BF16:
		return backend.Bytes(ordered[half.BF16](g, v))
	}
	return backend.Bytes(ordered[float32](g, v))
}

// ordered returns values converted to T, in the order of the matrix's entries.
func ordered[T formats.Value](g *Given, v Host) []T {
	x := make([]T, v.Len())
	v.convert(backend.Bytes(x), formats.TypeOf[T](), 0)
	number := g.numbers()
	if number == nil {
		return x
	}
	y := make([]T, len(x))
	for i, n := range number {
		y[i] = x[n]
	}
	return y
}
