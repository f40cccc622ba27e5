// The rows of a share, cut into those that can be multiplied before anything has come from other ranks and the rest.

package dist

import (
	"context"
	"errors"

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

	b *formats.Dense[T]       // with the last row, where B is not as it comes
	c *formats.Dense[float32] // where rows of C do not follow each other
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
		if begin == end || int(a.ColIdx[begin]) >= lo && int(a.ColIdx[end-1]) < hi {
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

// multiply computes the part's rows of c from its B. b is the rank's own rows for the inner part, and has room for the last
// row for the outer one.
func (q *part[T]) multiply(ctx context.Context, bits int, peaks []T, alpha float32, b *formats.Dense[T], beta float32, c *formats.Dense[float32]) error {
	if err := q.prepare(ctx, bits); err != nil {
		return err
	}
	if q.ranged {
		if b.Rows != q.a.Cols {
			if q.b == nil || q.b.Cols != b.Cols {
				q.b = formats.NewDense[T](q.a.Cols, b.Cols)
			}
			copy(q.b.Data, b.Data[:b.Rows*b.Cols])
			b = q.b
		}
		copy(b.Line(b.Rows-1), peaks)
	}
	out := c
	scattered := q.rows != nil
	if scattered {
		if q.c == nil || q.c.Cols != c.Cols {
			q.c = formats.NewDense[float32](q.a.Rows, c.Cols)
		}
		out = q.c
		if beta != 0 {
			copyRows(q.rows, func(at int, row int32) { copy(out.Line(at), c.Line(int(row))) })
		}
	}
	if _, err := spmm.Multiply(ctx, q.current, alpha, b, beta, out); err != nil {
		return err
	}
	if scattered {
		copyRows(q.rows, func(at int, row int32) { copy(c.Line(int(row)), out.Line(at)) })
	}
	return nil
}

func (q *part[T]) close() error {
	var errs []error
	for _, p := range q.plans {
		errs = append(errs, p.Close())
	}
	q.plans = nil
	return errors.Join(errs...)
}
