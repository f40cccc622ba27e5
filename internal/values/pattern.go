// The pattern of a matrix on a device, entry by entry.

package values

import (
	"context"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/resident"
)

// Pattern returns the line and the place in it of each entry, in the order in which the entries were given: row and
// column, or column and row where they were given by columns (Given.Reordered). Lines ascend.
// m is not looked at if g keeps the pattern.
func Pattern(ctx context.Context, m *resident.Matrix, g *Given) (lines, places []uint32, err error) {
	if g.Reordered {
		lines, places = g.byColumns()
		return lines, places, nil
	}
	if g.ptr != nil {
		lines, places = entriesOf(lines, places, g.ptr, g.idx, 0)
		return lines, places, nil
	}
	for i := range m.Parts {
		ptr, idx, err := partPattern(ctx, m, &m.Parts[i])
		if err != nil {
			return nil, nil, err
		}
		lines, places = entriesOf(lines, places, ptr, idx, i*m.RowBlock)
	}
	if int64(len(lines)) > math.MaxUint32 {
		return nil, nil, fmt.Errorf("a pattern of %d entries: at most %d are possible: %w", len(lines),
			int64(math.MaxUint32), backend.ErrUnsupported)
	}
	return lines, places, nil
}

// entriesOf appends the entries of rows, which are numbered from first on.
func entriesOf(lines, places []uint32, ptr []int64, idx []int32, first int) ([]uint32, []uint32) {
	for r := range len(ptr) - 1 {
		for _, c := range idx[ptr[r]:ptr[r+1]] {
			lines, places = append(lines, uint32(first+r)), append(places, uint32(c))
		}
	}
	return lines, places
}

// byColumns returns Pattern for entries that were given by columns.
func (g *Given) byColumns() (lines, places []uint32) {
	number := g.numbers()
	lines, places = make([]uint32, len(g.idx)), make([]uint32, len(g.idx))
	for r := range len(g.ptr) - 1 {
		for i := g.ptr[r]; i < g.ptr[r+1]; i++ {
			lines[number[i]], places[number[i]] = uint32(g.idx[i]), uint32(r)
		}
	}
	return lines, places
}

// partPattern returns where the rows of a part begin, and the columns of its entries. It decodes the packed matrix, or
// reads both back from the device for a format that has no matrix of its own.
func partPattern(ctx context.Context, m *resident.Matrix, pt *resident.Part) ([]int64, []int32, error) {
	if packed, ok := pt.Data.Format.(formats.Encoded); ok {
		whole, err := withZeros(packed, m.Operand, pt.Data.NNZ)
		if err != nil {
			return nil, nil, err
		}
		ptr, idx := whole.Sparse().Pattern()
		return ptr, idx, nil
	}
	begins := make([]uint32, pt.Data.Rows+1)
	if err := pt.Buffers[m.Kernel.Arg("rowptr")].Read(ctx, 0, backend.Bytes(begins)); err != nil {
		return nil, nil, err
	}
	ptr := make([]int64, len(begins))
	for i, b := range begins {
		ptr[i] = int64(b)
	}
	idx := make([]int32, ptr[len(ptr)-1])
	if len(idx) == 0 {
		return ptr, idx, nil
	}
	return ptr, idx, pt.Buffers[m.Kernel.Arg("colidx")].Read(ctx, 0, backend.Bytes(idx))
}

// withZeros returns a packed matrix whose n values are zero.
func withZeros(packed formats.Encoded, t dtype.Type, n int64) (formats.Encoded, error) {
	switch t {
	case dtype.F16:
		return withValues(packed, make([]half.F16, n))
	case dtype.BF16:
		return withValues(packed, make([]half.BF16, n))
	case dtype.F64:
		return withValues(packed, make([]float64, n))
	}
	return withValues(packed, make([]float32, n))
}
