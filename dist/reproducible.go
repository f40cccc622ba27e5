// Reproducible mode: what must be known of all of B, of which each rank holds a share.

package dist

import (
	"context"
	"math"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
)

// reproducible is the precision of products; nil in fast mode.
type reproducible struct {
	bits     int   // spmm.AutoP: to be found for each product
	rows     rfx.P // with AutoP: the least that loses nothing of A's rows, over all ranks
	exact    bool  // with AutoP: rows loses nothing
	used     int   // by the last product
	lossless bool
}

// newReproducible looks at A's rows, if the precision is to be found.
func newReproducible[T formats.Value](c comm.Comm, a *formats.CSR[T], o spmm.Options) (*reproducible, error) {
	if o.Mode != spmm.Reproducible {
		return nil, nil
	}
	m := &reproducible{bits: o.P}
	if o.P == 0 {
		m.bits = int(rfx.P23)
	}
	if o.P != spmm.AutoP {
		return m, nil
	}
	p, exact := rfx.Auto(rfx.Rows(a))
	state := []int64{int64(p), 0}
	if !exact {
		state[1] = 1
	}
	if err := c.AllReduce(state, comm.Max); err != nil {
		return nil, err
	}
	m.rows, m.exact = rfx.P(state[0]), state[1] == 0
	return m, nil
}

// first is the precision to prepare for, 0 in fast mode.
func (m *reproducible) first() int {
	if m == nil {
		return 0
	}
	return m.bits
}

func (m *reproducible) last() (int, bool) {
	if m == nil {
		return 0, false
	}
	return m.used, m.lossless
}

// settle finds the ranges of B's columns over all ranks, and the precision of this product. peaks is a row with elements of
// these ranges.
func settle[T formats.Value](ctx context.Context, m *reproducible, c comm.Comm, b *spmm.Tensor[T]) (bits int, peaks []T, err error) {
	if m == nil {
		return 0, nil, nil
	}
	mine, err := spmm.ColumnRanges(ctx, b)
	if err := comm.Agree(c, err, nil); err != nil {
		return 0, nil, err
	}
	// For each column the three fields of its range, of which the range of all rows has the greatest.
	const field = 1<<10 - 1
	n := len(mine)
	state := make([]int64, 3*n)
	for j, r := range mine {
		state[j], state[n+j], state[2*n+j] = int64(r&field), int64(r>>10&field), int64(r>>20)
	}
	if err := c.AllReduce(state, comm.Max); err != nil {
		return 0, nil, err
	}
	all := make([]rfx.Range, n)
	peaks = make([]T, n)
	for j := range all {
		all[j] = rfx.Range(state[j] | state[n+j]<<10 | state[2*n+j]<<20)
		peaks[j] = peakOf[T](all[j])
	}
	m.used, m.lossless = m.bits, false
	if m.bits == spmm.AutoP {
		p, exact := rfx.Auto(all)
		m.used, m.lossless = int(max(p, m.rows)), exact && m.exact
	}
	return m.used, peaks, nil
}

// peakOf returns an element with the E of a range: a power of two, or the least element with that E where T has no such power.
func peakOf[T formats.Value](r rfx.Range) T {
	if r.Zero() {
		return *new(T)
	}
	most := 127
	if formats.TypeOf[T]() == dtype.F16 {
		most = 15
	}
	x := []float32{float32(math.Ldexp(1, r.E()))}
	if r.E() > most {
		x[0] = float32(math.Ldexp(255, r.E()-8))
	}
	var out [1]T
	formats.ConvertSlice(out[:], x)
	return out[0]
}
