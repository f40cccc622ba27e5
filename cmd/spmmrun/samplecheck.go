// Checking sampled products against exact arithmetic.

package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// sampledProduct is a sampled product with its results.
type sampledProduct[S oracle.Number] struct {
	a         *formats.CSR[S]
	x, y      *formats.Dense[S]
	s         []S
	scaled    bool // by a's values
	precision dtype.Type
}

// verify checks all results, or a sample at equal distances. In reproducible mode every bit must be right.
func (q *sampledProduct[S]) verify(ctx context.Context, how string, mode *reproducedReport) (*verifyReport, error) {
	v := &verifyReport{Mode: how, OK: true, Bits: mode != nil}
	step, nnz, i := int64(1), q.a.NNZ(), 0
	if how == "sample" {
		step += int64(float64(nnz) * float64(q.x.Cols) / sampleProducts)
	}
	for e := int64(0); e < nnz; e += step {
		for q.a.RowPtr[i+1] <= e {
			i++
		}
		ratio, err := q.ratio(ctx, int(e), i, mode)
		if err != nil {
			return nil, err
		}
		v.Checked++
		v.MaxRatio = max(v.MaxRatio, ratio)
		if ratio > 1 && v.OK {
			v.OK, v.worst = false, fmt.Sprintf("entry %d, (%d, %d), is %v", e, i, q.a.ColIdx[e], q.s[e])
		}
	}
	v.MaxRatio = finite(v.MaxRatio)
	return v, nil
}

// ratio is the error of entry e, in row i, over its bound; in reproducible mode 0, or an infinity if a bit is wrong.
func (q *sampledProduct[S]) ratio(ctx context.Context, e, i int, mode *reproducedReport) (float64, error) {
	problem := q.alone(e, i)
	if mode != nil {
		p := oracle.Problem{A: formats.Convert[float32](problem.A), B: formats.ConvertDense[float32](problem.B),
			Alpha: problem.Alpha}
		c, err := oracle.Reproducible(ctx, p, mode.P)
		if err == nil && float64(c.Data[0]) != float64(q.s[e]) && !(c.Data[0] != c.Data[0] && q.s[e] != q.s[e]) {
			return math.Inf(1), nil
		}
		return 0, err
	}
	r, err := oracle.Check(ctx, problem, &formats.Dense[S]{Rows: 1, Cols: 1, LD: 1, Data: q.s[e : e+1]}, 0)
	if err == nil && !r.OK() {
		return math.Inf(1), nil
	}
	return r.MaxRatio, err
}

// alone is the dot product of entry e, in row i, as a product of a row and a column.
func (q *sampledProduct[S]) alone(e, i int) oracle.ProblemOf[S] {
	k := q.x.Cols
	p := oracle.ProblemOf[S]{Alpha: 1, Compute: q.precision, Splits: 8,
		A: &formats.CSR[S]{Rows: 1, Cols: k, RowPtr: []int64{0, int64(k)}, ColIdx: make([]int32, k), Val: q.x.Line(i)},
		B: &formats.Dense[S]{Rows: k, Cols: 1, LD: 1, Data: q.y.Line(int(q.a.ColIdx[e]))}}
	for j := range k {
		p.A.ColIdx[j] = int32(j)
	}
	if q.scaled {
		p.Alpha = float64(q.a.Val[e])
	}
	return p
}
