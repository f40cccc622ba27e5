// What a job makes of its matrix before it multiplies.

package main

import (
	"context"
	"io"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// counted counts how often a matrix is decoded.
type counted struct {
	formats.Encoded
	decoded int
}

func (c *counted) Sparse() formats.Sparse {
	c.decoded++
	return c.Encoded.Sparse()
}

// A matrix in f16 is not decoded before something needs its entries, and then once.
func TestOperandsDecodeLate(t *testing.T) {
	a := &counted{Encoded: &formats.CSR[half.F16]{Rows: 2, Cols: 3, RowPtr: []int64{0, 1, 1}, ColIdx: []int32{2},
		Val: []half.F16{half.F16From(5)}}}
	q, err := newOperands[half.F16, float32](context.Background(), &job{cols: 4}, spmm.Info{}, matrixRead{a: a},
		newProgress(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	if a.decoded != 0 || q.rows != 2 || q.b.Rows != 3 || q.b.Cols != 4 {
		t.Errorf("decoded %d times, %d rows of A, B is %d×%d", a.decoded, q.rows, q.b.Rows, q.b.Cols)
	}
	if q.csr().NNZ() != 1 || q.csr().Rows != 2 || a.decoded != 1 {
		t.Errorf("decoded %d times", a.decoded)
	}
}
