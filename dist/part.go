// The rows of a share, cut into those that can be multiplied before anything has come from other ranks and the others.

package dist

import (
	"context"
	"errors"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/rowcopy"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
)

// part is some rows of a share, and the rows of B that they are multiplied by.
type part struct {
	a     formats.Sparse // a CSR; its columns are rows of the part's B, and if ranged no entry needs the last row
	nnz   int64
	count int     // rows
	all   bool    // it has all rows of the share
	first int     // else the first of its rows, which follow each other
	rows  []int32 // or, where this is not nil, its rows

	ranged  bool // B's last row has the largest elements of B's columns over all ranks
	dev     *device.Device
	work    work.Work // but for P, which prepare sets
	form    work.Form
	plans   map[rfx.P]*plan.Plan // by precision of reproducible mode, 0 in fast mode
	current *plan.Plan           // of them the one that was prepared or used last; nil: none

	rowList *rowcopy.List  // rows, on the device
	b       *tensor.Tensor // B with the last row, where it is not as it comes
	c       *tensor.Tensor // where rows of C do not follow each other
	bias    *tensor.Tensor // the elements of these rows
}

// split cuts the share into an inner part, if it is worth it, and outer ones, and plans the exchange of the rows that
// the outer ones meet. In runs, the rows of each part follow each other: then they are summed as within the matrix on
// GPUs too (work.Extent.Offset).
func split[T formats.Value](p *Plan, a *formats.CSR[T], how Exchange, runs bool) error {
	lo, hi := p.held.Range(p.c.Rank())
	inner, entries := rowsWithin(a, lo, hi)
	if runs {
		inner, entries = longestRun(a, inner)
	}
	outer := others(a.Rows, inner)
	ranged := p.mode != nil && p.c.Size() > 1
	// By themselves, inner rows have their own launch and their own copy of B.
	const worth = 4
	if len(outer) > 0 && entries < a.NNZ()/worth {
		inner, outer = nil, others(a.Rows, nil)
	}
	if inner != nil {
		own := newColumns(a.Cols)
		own.addRange(lo, hi)
		p.inner = newPart(a, inner, own.counted(), ranged)
	}
	met := newColumns(a.Cols)
	for _, i := range outer {
		for _, j := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
			met.add(int(j))
		}
	}
	x, err := newExchange(p.c, p.held, met.counted(), how)
	if err != nil {
		return err
	}
	p.x = x
	p.local = comm.End(x.received) + 1
	if inner != nil && len(outer) == 0 {
		return nil
	}
	if x.gather {
		met = newColumns(a.Cols)
		met.addRange(0, a.Cols)
		met.counted()
	}
	sets := [][]int32{outer}
	if runs {
		sets = inRuns(outer)
	}
	for _, rows := range sets {
		p.outer = append(p.outer, newPart(a, rows, met, ranged))
	}
	_, p.local = p.outer[0].a.Dims()
	p.own, p.at = met.list(lo, hi), met.position(lo)
	return nil
}

// others returns the numbers below n that are not among rows, which ascend.
func others(n int, rows []int32) []int32 {
	out := make([]int32, 0, n-len(rows))
	for i := range int32(n) {
		if len(rows) > 0 && rows[0] == i {
			rows = rows[1:]
			continue
		}
		out = append(out, i)
	}
	return out
}

// inRuns cuts ascending rows into those that follow each other; of no rows that is one run.
func inRuns(rows []int32) [][]int32 {
	var out [][]int32
	begin := 0
	for i := range rows {
		if i+1 == len(rows) || rows[i+1] != rows[i]+1 {
			out = append(out, rows[begin:i+1])
			begin = i + 1
		}
	}
	if out == nil {
		out = append(out, rows)
	}
	return out
}

// longestRun returns those of the rows that follow each other and have the most entries, and how many.
func longestRun[T formats.Value](a *formats.CSR[T], rows []int32) (run []int32, entries int64) {
	run = []int32{}
	for _, r := range inRuns(rows) {
		if len(r) == 0 {
			continue
		}
		if n := a.RowPtr[r[len(r)-1]+1] - a.RowPtr[r[0]]; n > entries || len(run) == 0 {
			run, entries = r, n
		}
	}
	return run, entries
}

// rowsWithin returns a's rows that have columns from lo to hi alone, and their entries.
func rowsWithin[T formats.Value](a *formats.CSR[T], lo, hi int) (inner []int32, entries int64) {
	inner = []int32{}
	for i := range a.Rows {
		begin, end := a.RowPtr[i], a.RowPtr[i+1]
		out := func(j int32) bool { return int(j) < lo || int(j) >= hi }
		if !slices.ContainsFunc(a.ColIdx[begin:end], out) {
			inner = append(inner, int32(i))
			entries += end - begin
		}
	}
	return inner, entries
}

// newPart takes rows of a share, with columns numbered within a set of B's rows.
func newPart[T formats.Value](a *formats.CSR[T], rows []int32, of *columns, ranged bool) *part {
	q := &part{count: len(rows), all: len(rows) == a.Rows, ranged: ranged, plans: map[rfx.P]*plan.Plan{}}
	out := &formats.CSR[T]{Rows: len(rows), Cols: of.count, RowPtr: make([]int64, 1, len(rows)+1)}
	if ranged {
		out.Cols++
	}
	for _, i := range rows {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		for _, j := range a.ColIdx[lo:hi] {
			out.ColIdx = append(out.ColIdx, int32(of.position(int(j))))
		}
		out.Val = append(out.Val, a.Val[lo:hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	}
	if len(rows) > 0 {
		if q.first = int(rows[0]); int(rows[len(rows)-1]) != q.first+len(rows)-1 {
			q.rows = rows
		}
	}
	q.a, q.nnz = out, out.NNZ()
	return q
}

// gather makes vals, the values of a share, whose rows begin at rowPtr, those of a part's matrix.
func gather[T formats.Value](a *formats.CSR[T], q *part, rowPtr []int64, vals []T) values.Host {
	for i := range a.Rows {
		row := q.first + i
		if q.rows != nil {
			row = int(q.rows[i])
		}
		copy(a.Val[a.RowPtr[i]:a.RowPtr[i+1]], vals[rowPtr[row]:])
	}
	return values.Host{Type: a.Type(), Data: bytesOf(a.Val)}
}

// setValues replaces the values of all plans that there are; later ones take them from a.
func (q *part) setValues(ctx context.Context, v values.Host) error {
	var errs []error
	for _, m := range q.plans {
		errs = append(errs, m.SetHostValues(ctx, v))
	}
	return errors.Join(errs...)
}

// prepare makes the plan for a precision of reproducible mode, 0 in fast mode; with AutoP the first product does that.
func (q *part) prepare(ctx context.Context, p rfx.P) error {
	if p == work.AutoP {
		return nil
	}
	if m := q.plans[p]; m != nil {
		q.current = m
		return nil
	}
	w := q.work
	w.P = p
	m, err := plan.New(ctx, q.dev, q.a, w, q.form)
	if err != nil {
		return err
	}
	q.plans[p], q.current = m, m
	return nil
}

func (q *part) info() spmm.PlanInfo {
	if q.current == nil {
		return spmm.PlanInfo{}
	}
	return q.current.Describe()
}

// place brings the part to the device, for a precision if that is known.
func (q *part) place(ctx context.Context, p rfx.P) (err error) {
	if q.rows != nil {
		if q.rowList, err = rowcopy.NewList(ctx, q.dev, q.rows); err != nil {
			return err
		}
	}
	return q.prepare(ctx, p)
}

// from copies the part's rows out of the share's, and to copies them back.
func (q *part) from() rowcopy.Rows {
	if q.rows != nil {
		return rowcopy.Rows{From: q.rowList}
	}
	return rowcopy.Rows{Count: q.count, Src: q.first}
}

func (q *part) to() rowcopy.Rows {
	if q.rows != nil {
		return rowcopy.Rows{To: q.rowList}
	}
	return rowcopy.Rows{Count: q.count, Dst: q.first}
}

// reserve allocates what products with n columns take. private tells that the part has a B of its own.
func (q *part) reserve(n int, t dtype.Type, private bool) (err error) {
	if err := closeTensors(&q.b, &q.c, &q.bias); err != nil {
		return err
	}
	if private {
		_, rows := q.a.Dims()
		if q.b, err = newTensor(q.dev, rows, n, t); err != nil {
			return err
		}
	}
	if !q.all {
		if q.bias, err = newTensor(q.dev, q.count, 1, dtype.F32); err != nil {
			return err
		}
		q.c, err = newTensor(q.dev, q.count, n, dtype.F32)
	}
	return err
}

// start begins to compute the part's rows of C from its B: b, or the part's own copy of it.
func (q *part) start(ctx context.Context, x product, b *tensor.Tensor) (s started, err error) {
	if err := q.prepare(ctx, x.p); err != nil {
		return nil, err
	}
	copied := func(to, from *tensor.Tensor, which rowcopy.Rows) {
		if err == nil {
			err = s.and(rowcopy.Start(ctx, q.dev, to, from, which))
		}
	}
	if q.b != nil {
		copied(q.b, b, rowcopy.Rows{Count: b.Rows})
		b = q.b
	}
	c, e := x.c, x.epilogue
	if !q.all {
		if bias, _ := tensor.One(e.RowBias); bias != nil {
			copied(q.bias, bias, q.from())
			e.RowBias = q.bias
		}
		if x.beta != 0 {
			copied(q.c, c, q.from())
		}
		c = q.c
	}
	if err == nil {
		err = s.and(q.current.Start(ctx, x.alpha, b, x.beta, c, e))
	}
	if !q.all {
		copied(x.c, c, q.to())
	}
	return s, err
}

func (q *part) close() error {
	var errs []error
	for _, m := range q.plans {
		errs = append(errs, m.Close())
	}
	q.plans = nil
	if q.rowList != nil {
		errs = append(errs, q.rowList.Close())
	}
	q.rowList = nil
	return errors.Join(append(errs, closeTensors(&q.b, &q.c, &q.bias))...)
}
