// Graphs.

package demo

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
)

// Graph reads a file of a symmetric matrix, whose pattern is a graph's edges. It returns the matrix with zeros for all
// values, and with the whole diagonal.
func Graph(ctx context.Context, path string) (*formats.CSR[float32], error) {
	m, err := load.File(ctx, path, load.Options{})
	if err != nil {
		return nil, err
	}
	if m.Rows != m.Cols || m.Rows == 0 {
		return nil, fmt.Errorf("%s: a matrix of %d×%d: want a square one", path, m.Rows, m.Cols)
	}
	edges := formats.COO[float32]{Rows: m.Rows, Cols: m.Cols}
	add := func(i int, j int32) {
		edges.Row, edges.Col, edges.Val = append(edges.Row, int32(i)), append(edges.Col, j), append(edges.Val, 0)
	}
	for i := range m.Rows {
		add(i, int32(i))
		for _, j := range m.ColIdx[m.RowPtr[i]:m.RowPtr[i+1]] {
			if int(j) != i {
				add(i, j)
			}
		}
	}
	return edges.ToCSR(formats.SumDuplicates)
}
