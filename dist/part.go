// The rows of a share, cut into those that can be multiplied before anything has come from other ranks and the rest.

package dist

import (
	"context"
	"errors"
	"slices"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// part is some rows of a share, and the rows of B that they are multiplied by.
type part[T formats.Value] struct {
	a    *formats.CSR[T] // its columns are rows of the part's B, the last of which is met by no entry where ranged is set
	nnz  int64
	rows []int32 // of the share; nil: all
	own  []int32 // own rows of B that are in the part's B, ascending, from row at on; nil in the inner part, which has all
	at   int

	ranged  bool // B's last row has the largest elements of B's columns over all ranks
	dev     *spmm.Device
	options spmm.Options
	plans   map[int]*spmm.Plan // by precision of reproducible mode, 0 in fast mode
	current *spmm.Plan         // of them the one that was prepared or used last; nil: none

	rowList *spmm.RowList         // rows, on the device; nil: all
	ownList *spmm.RowList         // own
	b       *spmm.Tensor[T]       // B with the last row, where it is not as it comes
	c       *spmm.Tensor[float32] // where rows of C do not follow each other
	bias    *spmm.Tensor[float32] // the elements of these rows
}

// split cuts the share into an inner part, if it is worth it, and an outer one, and plans the exchange of the rows that the
// outer one meets.
func (p *Plan[T]) split(a *formats.CSR[T], how Exchange) error {
	lo, hi := p.held.Range(p.c.Rank())
	inner, outer, entries := rowsWithin(a, lo, hi)
	ranged := p.mode != nil && p.c.Size() > 1
	// By themselves, inner rows have their own launch and their own copy of B.
	const worth = 4
	if len(outer) > 0 && entries < a.NNZ()/worth {
		inner, outer = nil, nil
	}
	if len(outer) == 0 && inner != nil {
		outer = []int32{}
	}
	if inner != nil {
		own := newColumns(a.Cols)
		own.addRange(lo, hi)
		p.inner = newPart(a, inner, own.counted(), ranged)
		p.inner.own = nil
	}
	met := newColumns(a.Cols)
	if inner == nil || len(outer) > 0 {
		each(a, outer, inner == nil, func(i int) {
			for _, j := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				met.add(int(j))
			}
		})
	}
	met.counted()
	x, err := newExchange(p.c, p.held, met, how)
	if err != nil {
		return err
	}
	p.x = x
	if inner != nil && len(outer) == 0 {
		return nil
	}
	if x.gather {
		met = newColumns(a.Cols)
		met.addRange(0, a.Cols)
		met.counted()
	}
	if inner == nil {
		outer = nil
	}
	p.outer = newPart(a, outer, met, ranged)
	p.outer.own, p.outer.at = met.list(lo, hi), met.position(lo)
	return nil
}

// rowsWithin sorts a's rows into those that have columns from lo to hi alone, and the others, and returns the entries of the
// former.
func rowsWithin[T formats.Value](a *formats.CSR[T], lo, hi int) (inner, outer []int32, entries int64) {
	inner, outer = []int32{}, []int32{}
	for i := range a.Rows {
		begin, end := a.RowPtr[i], a.RowPtr[i+1]
		out := func(j int32) bool { return int(j) < lo || int(j) >= hi }
		if !slices.ContainsFunc(a.ColIdx[begin:end], out) {
			inner = append(inner, int32(i))
			entries += end - begin
		} else {
			outer = append(outer, int32(i))
		}
	}
	return inner, outer, entries
}

// each calls f for the rows, or for all.
func each[T formats.Value](a *formats.CSR[T], rows []int32, all bool, f func(i int)) {
	if all {
		for i := range a.Rows {
			f(i)
		}
		return
	}
	for _, i := range rows {
		f(int(i))
	}
}

// newPart takes rows of a share (nil: all), with columns numbered within a set of B's rows.
func newPart[T formats.Value](a *formats.CSR[T], rows []int32, of *columns, ranged bool) *part[T] {
	q := &part[T]{rows: rows, ranged: ranged, plans: map[int]*spmm.Plan{}}
	n := a.Rows
	if rows != nil {
		n = len(rows)
	}
	out := &formats.CSR[T]{Rows: n, Cols: of.count, RowPtr: make([]int64, 1, n+1)}
	if ranged {
		out.Cols++
	}
	each(a, rows, rows == nil, func(i int) {
		lo, hi := a.RowPtr[i], a.RowPtr[i+1]
		for _, j := range a.ColIdx[lo:hi] {
			out.ColIdx = append(out.ColIdx, int32(of.position(int(j))))
		}
		out.Val = append(out.Val, a.Val[lo:hi]...)
		out.RowPtr = append(out.RowPtr, int64(len(out.Val)))
	})
	if n == a.Rows {
		q.rows = nil
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

// place brings to the device which rows the part has, and which own rows its B.
func (q *part[T]) place(ctx context.Context) (err error) {
	if q.rows != nil {
		if q.rowList, err = spmm.NewRowList(ctx, q.dev, q.rows); err != nil {
			return err
		}
	}
	if q.own != nil {
		q.ownList, err = spmm.NewRowList(ctx, q.dev, q.own)
	}
	return err
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
	if q.rows != nil {
		if q.bias, err = spmm.NewTensor[float32](q.dev, len(q.rows), 1, false); err != nil {
			return err
		}
		q.c, err = spmm.NewTensor[float32](q.dev, len(q.rows), n, false)
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
	if q.rows == nil {
		return s, s.and(q.current.Start(ctx, alpha, b, beta, c, e...))
	}
	if len(e) == 1 && e[0].RowBias != nil {
		if err := s.and(spmm.CopyRows(ctx, q.bias, e[0].RowBias, spmm.RowCopy{From: q.rowList})); err != nil {
			return nil, err
		}
		mine := e[0]
		mine.RowBias = q.bias
		e = []spmm.Epilogue{mine}
	}
	if beta != 0 {
		if err := s.and(spmm.CopyRows(ctx, q.c, c, spmm.RowCopy{From: q.rowList})); err != nil {
			return nil, err
		}
	}
	if err := s.and(q.current.Start(ctx, alpha, b, beta, q.c, e...)); err != nil {
		return nil, err
	}
	return s, s.and(spmm.CopyRows(ctx, c, q.c, spmm.RowCopy{To: q.rowList}))
}

func (q *part[T]) close() error {
	var errs []error
	for _, p := range q.plans {
		errs = append(errs, p.Close())
	}
	q.plans = nil
	for _, l := range []*spmm.RowList{q.rowList, q.ownList} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	q.rowList, q.ownList = nil, nil
	return errors.Join(append(errs, q.release())...)
}
