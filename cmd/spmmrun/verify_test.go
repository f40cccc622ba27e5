// A wrong output is named by its row within the job's C, also where some rows are checked.

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

func TestClaim(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 2, Cols: 1, RowPtr: []int64{0, 1, 2}, ColIdx: []int32{0, 0}, Val: []float32{3, 5}}
	b := &formats.Dense[float32]{Rows: 1, Cols: 2, LD: 2, Data: []float32{1, 2}}
	for _, tt := range []struct {
		bits    int
		numbers []int
		c       []float32
		worst   string // "": all is right
	}{
		{0, nil, []float32{3, 6, 5, 10}, ""},
		{23, []int{5, 9}, []float32{3, 6, 5, 10}, ""},
		{0, nil, []float32{3, 6, 5, 11}, "C[1,1]"},
		{0, []int{5, 9}, []float32{3, 6, 5, 11}, "C[9,1]"},
		{23, nil, []float32{3, 7, 5, 10}, "C[0,1]"},
		{23, []int{5, 9}, []float32{3, 6, 4, 10}, "C[9,0]"},
	} {
		x := claim[float32]{
			problem: oracle.Problem{A: a, B: b, Alpha: 1, Compute: dtype.F32, Out: dtype.F32}, numbers: tt.numbers,
			c: &formats.Dense[float32]{Rows: 2, Cols: 2, LD: 2, Data: tt.c},
		}
		v, err := x.verify(context.Background(), tt.bits)
		if err != nil {
			t.Fatal(err)
		}
		if v.OK != (tt.worst == "") || v.Checked != 4 || v.Bits != (tt.bits != 0) || !strings.Contains(v.worst, tt.worst) {
			t.Errorf("%d bits, rows %v, C %v: %+v, worst %q, want %q", tt.bits, tt.numbers, tt.c, v, v.worst, tt.worst)
		}
	}
}
