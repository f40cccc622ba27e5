// From a spec to a matrix. Rows that share their columns form a group (a panel, or a row of blocks),
// and columns that are taken together a unit (a block's width; else one column).

package gen

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// CSR makes the matrix of a spec, within the default limits.
func CSR(spec string) (*formats.CSR[float32], error) {
	s, err := Parse(spec, 0)
	if err != nil {
		return nil, err
	}
	return s.Generate(context.Background(), formats.Limits{})
}

// Generate makes the matrix. It returns an error, before it allocates memory for entries, if the matrix is beyond the
// limits, and an error if ctx is done.
func (s *Spec) Generate(ctx context.Context, lim formats.Limits) (*formats.CSR[float32], error) {
	if err := s.Fits(lim); err != nil {
		return nil, err
	}
	return s.GenerateRows(ctx, lim, 0, s.Rows)
}

// Fits returns an error if the matrix is estimated to be beyond the limits. It generates nothing. Generate calls it
// first.
func (s *Spec) Fits(lim formats.Limits) error {
	err := lim.CheckDims(int64(s.Rows), int64(s.Cols))
	if err == nil {
		err = newPattern(s).refuse(lim)
	}
	return s.named(err)
}

// named puts the kind before an error.
func (s *Spec) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%s: %w", Prefix, s.Kind, err)
}

// GenerateRows makes rows lo to hi-1 of the matrix, the same as in Generate's result, without making the others. The
// limits are for these rows, which are counted first. Fits tells sooner whether all rows together exceed limits.
func (s *Spec) GenerateRows(ctx context.Context, lim formats.Limits, lo, hi int) (*formats.CSR[float32], error) {
	if lo < 0 || lo > hi || hi > s.Rows {
		return nil, fmt.Errorf("%s%s: rows %d to %d of %d", Prefix, s.Kind, lo, hi, s.Rows)
	}
	a, err := s.generate(ctx, lim, lo, hi)
	return a, s.named(err)
}

func (s *Spec) generate(ctx context.Context, lim formats.Limits, first, last int) (*formats.CSR[float32], error) {
	rows := last - first
	if err := lim.CheckDims(int64(rows), int64(s.Cols)); err != nil {
		return nil, err
	}
	p := newPattern(s)
	p.first, p.last = first, last
	if s.Kind == "powerlaw" {
		p.ratio = p.scaleLengths(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := lim.WithDefaults().Check(int64(rows), int64(s.Cols), 0); err != nil { // the row pointers alone
		return nil, err
	}
	a := &formats.CSR[float32]{Rows: rows, Cols: s.Cols, RowPtr: make([]int64, rows+1)}
	p.countAll(ctx, a.RowPtr)
	rowptr.Starts(a.RowPtr)
	if err := ctx.Err(); err != nil { // some rows are not counted
		return nil, err
	}
	nnz := a.RowPtr[rows]
	if err := lim.Check(int64(rows), int64(s.Cols), nnz); err != nil {
		return nil, err
	}
	a.ColIdx, a.Val = make([]int32, nnz), make([]float32, nnz)
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) { p.fill(ctx, a, lo, hi) })
	return a, ctx.Err()
}

// stride is the number of rows between looks at the context.
const stride = 1 << 10

// countAll counts the entries of every row that is made, on several goroutines. Once ctx is done the remaining rows are
// left out.
func (p *pattern) countAll(ctx context.Context, counts []int64) {
	begin := p.first / p.height
	par.Range((p.last+p.height-1)/p.height-begin, 1<<12, func(lo, hi int) {
		var k picker
		for g := begin + lo; g < begin+hi; g++ {
			if g%stride == 0 && ctx.Err() != nil {
				return
			}
			n := p.entries(g, &k)
			for i := max(p.first, g*p.height); i < min(p.last, (g+1)*p.height); i++ {
				counts[i-p.first] = int64(n)
			}
		}
	})
}

// entries returns the entries in each row of group g.
func (p *pattern) entries(g int, k *picker) int {
	if p.Kind == "rmat" { // what is drawn twice is one entry
		return len(p.pick(g, k))
	}
	n := p.count(g)
	cut := p.units*p.width - p.Cols // columns that the last unit lacks
	if n == 0 || cut == 0 {
		return n * p.width
	}
	if u := p.pick(g, k); int(u[n-1]) == p.units-1 {
		return n*p.width - cut
	}
	return n * p.width
}

// fill makes rows lo to hi of a, whose first row is the pattern's p.first.
func (p *pattern) fill(ctx context.Context, a *formats.CSR[float32], lo, hi int) {
	var k picker
	var units []int32
	values := newStream(p.Seed, streamEntry)
	for i := p.first + lo; i < p.first+hi; i++ {
		if i%stride == 0 && ctx.Err() != nil {
			return
		}
		if i == p.first+lo || i%p.height == 0 {
			units = p.pick(i/p.height, &k)
		}
		at := a.RowPtr[i-p.first]
		for _, u := range units {
			for j := int(u) * p.width; j < min(p.Cols, (int(u)+1)*p.width); j++ {
				a.ColIdx[at], a.Val[at] = int32(j), p.Values.entry(values, i, j)
				at++
			}
		}
	}
}
