// Reproducible mode: its flag, what is reported of it, and the check, which is of every bit.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
)

const reproducible = "reproducible"

// precisions are the words that --p takes, the default first. It is not that of the library, 23: what is computed once
// and reported had better lose nothing.
var precisions = []string{"auto", "15", "23", "31", "47"}

// sums adds to o how the job wants sums formed.
func (j *job) sums(o spmm.Options) (spmm.Options, error) {
	switch {
	case j.mode != reproducible && j.pGiven:
		return o, errors.New("--p is for --mode reproducible")
	case j.mode != reproducible:
		return o, nil
	case j.tune:
		return o, errors.New("--tune is for --mode fast: reproducible mode predicts whether rows or panels are faster")
	}
	o.Mode, o.P = spmm.Reproducible, spmm.AutoP
	if j.p != "auto" {
		p, err := strconv.Atoi(j.p)
		if err != nil {
			return o, err
		}
		o.P = p
	}
	return o, nil
}

// reproducedReport is the report on reproducible mode.
type reproducedReport struct {
	P int `json:"p"`
	// p loses no bit of A or B, and each finite output is rounded once: not with a bias
	CorrectlyRounded bool `json:"correctly_rounded"`
	// Vanished counts the elements other than 0 that p rounds to 0, since others of their row or column are so much
	// larger.
	Vanished vanishedReport `json:"rounded_to_zero"`
}

type vanishedReport struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

func (v vanishedReport) String() string {
	var words []string
	for _, x := range []struct {
		name  string
		count int64
		among string
	}{{"A", v.A, "row"}, {"B", v.B, "column"}} {
		if x.count > 0 {
			words = append(words,
				fmt.Sprintf("elements of %s rounded to 0 by larger ones of their %s: %d", x.name, x.among, x.count))
		}
	}
	return strings.Join(words, "; ")
}

// rounded tells whether the job leaves each sum as it is: no factor changes it and nothing is added.
func (j *job) rounded() bool { return j.alpha == 1 && j.beta == 0 && j.epilogue.biasFile == "" }

// reproduced reports a multiplication with that precision.
func reproduced[T formats.Value, S oracle.Number](j *job, p int, q *operands[T, S]) *reproducedReport {
	rows, cols := rfx.Rows(q.csr()), rfx.Cols(q.b)
	least, lossless := rfx.Auto(rows, cols)
	r := &reproducedReport{P: p, CorrectlyRounded: lossless && p >= int(least) && j.rounded()}
	if !lossless || p < int(least) {
		r.Vanished = vanishedReport{rfx.RowsToZero(q.csr(), rows, rfx.P(p)), rfx.ColsToZero(q.b, cols, rfx.P(p))}
	}
	return r
}

func (r *reproducedReport) String() string {
	s := fmt.Sprintf("p = %d: the same bits on every device", r.P)
	if r.CorrectlyRounded {
		s += ", correctly rounded"
	}
	return s
}

// verifyBits checks every bit of whole rows: a sample of them if one is asked for, unless x has one already.
func verifyBits(ctx context.Context, x *claim[float32], precision int) (*verifyReport, error) {
	p, c := x.problem, x.c
	rows := span(0, p.A.Rows)
	if x.sample > 0 && x.numbers == nil {
		rows = sampleRows(p.A, p.B.Cols)
	}
	if len(rows) < p.A.Rows {
		p.A, p.C = pickRows(p.A, rows), pickDense(p.C, rows)
		p.Epilogue.RowBias = pick(p.Epilogue.RowBias, rows)
	}
	want, err := oracle.Reproducible(ctx, p, precision)
	if err != nil {
		return nil, err
	}
	v := &verifyReport{Checked: int64(len(rows)) * int64(c.Cols), OK: true, Bits: true}
	for i, row := range rows {
		for k := range c.Cols {
			got, w := math.Float32bits(c.At(row, k)), math.Float32bits(want.At(i, k))
			if got != w && v.OK {
				v.OK, v.MaxRatio = false, math.MaxFloat64
				v.worst = fmt.Sprintf("C[%d,%d] is %g (bits %08x), must be %g (bits %08x)", x.row(row), k, c.At(row, k), got,
					want.At(i, k), w)
			}
		}
	}
	return v, nil
}

// span returns the numbers from lo to hi-1.
func span(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = lo + i
	}
	return out
}

// sampleRows returns rows from all over a, as many as sampleProducts pays for.
func sampleRows(a *formats.CSR[float32], cols int) []int {
	each := 1 + float64(a.NNZ())/float64(max(1, a.Rows))*float64(cols)
	n := min(a.Rows, 1+int(sampleProducts/each))
	rows := make([]int, n)
	for i := range rows {
		rows[i] = int(int64(i) * int64(a.Rows) / int64(n))
	}
	return rows
}

// pickRows and pickDense return some rows of a matrix, pick some elements of a vector, nil if there is none.
func pickRows(a *formats.CSR[float32], rows []int) *formats.CSR[float32] {
	out := &formats.CSR[float32]{Rows: len(rows), Cols: a.Cols, RowPtr: []int64{0}}
	for _, i := range rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		out.ColIdx, out.Val = append(out.ColIdx, a.ColIdx[lo:hi]...), append(out.Val, a.Val[lo:hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	return out
}

func pick(v []float32, at []int) []float32 {
	if v == nil {
		return nil
	}
	out := make([]float32, len(at))
	for i, k := range at {
		out[i] = v[k]
	}
	return out
}

func pickDense(c *formats.Dense[float32], rows []int) *formats.Dense[float32] {
	if c == nil {
		return nil
	}
	out := formats.NewDense[float32](len(rows), c.Cols)
	for i, row := range rows {
		for k := range c.Cols {
			out.Set(i, k, c.At(row, k))
		}
	}
	return out
}
