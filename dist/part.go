// The rows of a share, cut into those that can be multiplied before anything has come from other ranks and the rest.

package dist

import (
	"context"
	"errors"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
)

// part is some rows of a share, and the rows of B that they are multiplied by.
type part[T formats.Value] struct {
	a     *formats.CSR[T] // its columns are rows of the part's B, the last of which is met by no entry where ranged is set
	nnz   int64
	all   bool    // it has all rows of the share
	first int     // else the first of its rows, which follow each other
	rows  []int32 // or, where this is not nil, its rows

	ranged  bool // B's last row has the largest elements of B's columns over all ranks
	dev     *spmm.Device
	options spmm.Options
	plans   map[int]*spmm.Plan // by precision of reproducible mode, 0 in fast mode
	current *spmm.Plan         // of them the one that was prepared or used last; nil: none

	rowList *spmm.RowList         // rows, on the device
	b       *spmm.Tensor[T]       // B with the last row, where it is not as it comes
	c       *spmm.Tensor[float32] // where rows of C do not follow each other
	bias    *spmm.Tensor[float32] // the elements of these rows
}

// split cuts the share into an inner part, if it is worth it, and outer ones, and plans the exchange of the rows that the
// outer ones meet. In runs, the rows of each part follow each other: then they are summed as within the matrix on GPUs too
// (spmm.Extent.Offset).
func (p *Plan[T]) split(a *formats.CSR[T], how Exchange, runs bool) error {
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
	p.local = p.outer[0].a.Cols
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
func newPart[T formats.Value](a *formats.CSR[T], rows []int32, of *columns, ranged bool) *part[T] {
	q := &part[T]{all: len(rows) == a.Rows, ranged: ranged, plans: map[int]*spmm.Plan{}}
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

// prepare makes the plan for a precision of reproducible mode, 0 in fast mode; with AutoP the first product does that.
func (q *part[T]) prepare(ctx context.Context, bits int) error {
	if bits == spmm.AutoP {
		return nil
	}
	if p := q.plans[bits]; p != nil {
		q.current = p
		return nil
	}
	o := q.options
	o.P = bits
	p, err := spmm.Prepare(ctx, q.dev, q.a, o)
	if err != nil {
		return err
	}
	q.plans[bits], q.current = p, p
	return nil
}

func (q *part[T]) info() spmm.PlanInfo {
	if q.current == nil {
		return spmm.PlanInfo{}
	}
	return q.current.Info()
}

// place brings to the device which rows the part has.
func (q *part[T]) place(ctx context.Context) (err error) {
	if q.rows != nil {
		q.rowList, err = spmm.NewRowList(ctx, q.dev, q.rows)
	}
	return err
}

// from is the copy of the part's rows out of the share's, to the copy back.
func (q *part[T]) from() spmm.RowCopy {
	if q.rows != nil {
		return spmm.RowCopy{From: q.rowList}
	}
	return spmm.RowCopy{Count: q.a.Rows, Src: q.first}
}

func (q *part[T]) to() spmm.RowCopy {
	if q.rows != nil {
		return spmm.RowCopy{To: q.rowList}
	}
	return spmm.RowCopy{Count: q.a.Rows, Dst: q.first}
}

// reserve allocates what products with n columns take. private tells that the part has a B of its own.
func (q *part[T]) reserve(n int, private bool) (err error) {
	if err := q.release(); err != nil {
		return err
	}
	if private {
		if q.b, err = spmm.NewTensor[T](q.dev, q.a.Cols, n, false); err != nil {
			return err
		}
	}
	if !q.all {
		if q.bias, err = spmm.NewTensor[float32](q.dev, q.a.Rows, 1, false); err != nil {
			return err
		}
		q.c, err = spmm.NewTensor[float32](q.dev, q.a.Rows, n, false)
	}
	return err
}

// release frees what reserve has allocated.
func (q *part[T]) release() error {
	var errs []error
	if q.b != nil {
		errs = append(errs, q.b.Close())
	}
	for _, t := range []*spmm.Tensor[float32]{q.c, q.bias} {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	q.b, q.c, q.bias = nil, nil, nil
	return errors.Join(errs...)
}

// started is work on the device that is under way.
type started []*spmm.Pending

// and adds work that has begun.
func (s *started) and(p *spmm.Pending, err error) error {
	if err == nil {
		*s = append(*s, p)
	}
	return err
}

// wait returns when all is done.
func (s started) wait(ctx context.Context) error {
	for _, p := range s {
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start begins to compute the part's rows of c from its B: b, or the part's own copy of it.
func (q *part[T]) start(ctx context.Context, bits int, alpha float32, b *spmm.Tensor[T], beta float32, c *spmm.Tensor[float32], e ...spmm.Epilogue) (s started, err error) {
	if err := q.prepare(ctx, bits); err != nil {
		return nil, err
	}
	if q.b != nil {
		rows, _ := b.Dims()
		if err := s.and(spmm.CopyRows(ctx, q.b, b, spmm.RowCopy{Count: rows})); err != nil {
			return nil, err
		}
		b = q.b
	}
	if q.all {
		return s, s.and(q.current.Start(ctx, float64(alpha), b, float64(beta), c, e...))
	}
	if len(e) == 1 && e[0].RowBias != nil {
		if err := s.and(spmm.CopyRows(ctx, q.bias, e[0].RowBias, q.from())); err != nil {
			return nil, err
		}
		mine := e[0]
		mine.RowBias = q.bias
		e = []spmm.Epilogue{mine}
	}
	if beta != 0 {
		if err := s.and(spmm.CopyRows(ctx, q.c, c, q.from())); err != nil {
			return nil, err
		}
	}
	if err := s.and(q.current.Start(ctx, float64(alpha), b, float64(beta), q.c, e...)); err != nil {
		return nil, err
	}
	return s, s.and(spmm.CopyRows(ctx, c, q.c, q.to()))
}

func (q *part[T]) close() error {
	var errs []error
	for _, p := range q.plans {
		errs = append(errs, p.Close())
	}
	q.plans = nil
	if q.rowList != nil {
		errs = append(errs, q.rowList.Close())
	}
	q.rowList = nil
	return errors.Join(append(errs, q.release())...)
}
