// Reproducible mode: what must be known of all of B, whose rows the ranks share.

package dist

import (
	"context"
	"math"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	fixed "github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/work"
)

// reproducible is the precision of products; nil in fast mode.
type reproducible struct {
	p        rfx.P // work.AutoP: to be found for each product
	rows     rfx.P // with AutoP: the least that loses nothing of A's rows, over all ranks
	exact    bool  // with AutoP: rows loses nothing
	used     rfx.P // by the last product
	lossless bool
}

// newReproducible returns the mode for precision p, 0 for fast mode, and a share whose rows have these ranges.
func newReproducible(c comm.Comm, rows []rfx.Range, p rfx.P) (*reproducible, error) {
	if p == 0 {
		return nil, nil
	}
	m := &reproducible{p: p}
	return m, m.see(c, rows)
}

// see finds the precision that the ranges of A's rows take, if it is to be found.
func (m *reproducible) see(c comm.Comm, rows []rfx.Range) error {
	if m == nil || m.p != work.AutoP {
		return nil
	}
	p, exact := rfx.Auto(rows)
	state := []int64{int64(p), 0}
	if !exact {
		state[1] = 1
	}
	err := c.AllReduce(state, comm.Max)
	m.rows, m.exact = rfx.P(state[0]), state[1] == 0
	return err
}

// first is the precision to prepare for, 0 in fast mode.
func (m *reproducible) first() rfx.P {
	if m == nil {
		return 0
	}
	return m.p
}

func (m *reproducible) last() (int, bool) {
	if m == nil {
		return 0, false
	}
	return int(m.used), m.lossless
}

// elementBytes returns the most bytes that an element of B takes in fixed point; 0 in fast mode.
func (m *reproducible) elementBytes() int64 {
	switch {
	case m == nil:
		return 0
	case m.p == work.AutoP:
		return int64(rfx.P47.Size())
	}
	return int64(m.p.Size())
}

// settle finds the ranges of B's columns over all ranks, and the precision of this product. peaks has an element of
// each of these ranges.
func (m *reproducible) settle(ctx context.Context, c comm.Comm, dev *device.Device, b *tensor.Tensor) (p rfx.P,
	peaks []float32, err error) {
	if m == nil {
		return 0, nil, nil
	}
	mine, err := fixed.ColumnRanges(ctx, dev, b)
	if err := comm.Agree(c, err, nil); err != nil {
		return 0, nil, err
	}
	// For each column the three fields of its range. The range of all rows has the greatest of each.
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
	peaks = make([]float32, n)
	for j := range all {
		all[j] = rfx.Range(state[j] | state[n+j]<<10 | state[2*n+j]<<20)
		peaks[j] = peakOf(all[j], b.Type)
	}
	m.used, m.lossless = m.p, false
	if m.p == work.AutoP {
		q, exact := rfx.Auto(all)
		m.used, m.lossless = max(q, m.rows), exact && m.exact
	}
	return m.used, peaks, nil
}

// peakOf returns a number with the E of a range that is an element of type t: a power of two, or where t has no such
// power the least element with that E.
func peakOf(r rfx.Range, t dtype.Type) float32 {
	most := 127
	if t == dtype.F16 {
		most = 15
	}
	switch {
	case r.Zero():
		return 0
	case r.E() > most:
		return float32(math.Ldexp(255, r.E()-8))
	}
	return float32(math.Ldexp(1, r.E()))
}

// elementsOf returns numbers as elements of type t.
func elementsOf(x []float32, t dtype.Type) []byte {
	switch t {
	case dtype.F16:
		return convert[half.F16](x)
	case dtype.BF16:
		return convert[half.BF16](x)
	}
	return bytesOf(x)
}

func convert[T formats.Value](x []float32) []byte {
	out := make([]T, len(x))
	formats.ConvertSlice(out, x)
	return bytesOf(out)
}
