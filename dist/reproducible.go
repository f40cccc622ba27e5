// Reproducible mode: what must be known of all of B, of which each rank holds a share.

package dist

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
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

// settle finds the largest finite element of each column of B over all ranks, and the precision of this product.
func settle[T formats.Value](m *reproducible, c comm.Comm, b *formats.Dense[T]) (bits int, peaks []T, err error) {
	if m == nil {
		return 0, nil, nil
	}
	// For each column the largest magnitude, as bits; with AutoP then the field of its range that tells the lowest bit.
	n := b.Cols
	state := make([]int64, n, 2*n)
	largest(b, state)
	if m.bits == spmm.AutoP {
		for _, r := range rfx.Cols(b) {
			state = append(state, int64(r>>10&0x3ff))
		}
	}
	if err := c.AllReduce(state, comm.Max); err != nil {
		return 0, nil, err
	}
	peaks = make([]T, n)
	for j := range peaks {
		peaks[j] = fromBits[T](state[j])
	}
	m.used, m.lossless = m.bits, false
	if m.bits == spmm.AutoP {
		ranges := make([]rfx.Range, n)
		for j, x := range float32s(peaks) {
			ranges[j] = rfx.RangeOf(x).Join(rfx.Range(state[n+j] << 10))
		}
		p, exact := rfx.Auto(ranges)
		m.used, m.lossless = int(max(p, m.rows)), exact && m.exact
	}
	return m.used, peaks, nil
}

// largest leaves the largest finite magnitude of each column in most, as bits of its element type, which order as magnitudes
// do.
func largest[T formats.Value](b *formats.Dense[T], most []int64) {
	var mu sync.Mutex
	parallel(b.Rows, func(lo, hi int) {
		part := make([]uint32, b.Cols)
		for i := lo; i < hi; i++ {
			switch row := any(b.Line(i)).(type) {
			case []float32:
				for j, x := range row {
					if m := magnitude32(x); m > part[j] && m < 0x7f800000 {
						part[j] = m
					}
				}
			case []half.F16:
				for j, x := range row {
					if m := uint32(x & 0x7fff); m > part[j] && m < 0x7c00 {
						part[j] = m
					}
				}
			case []half.BF16:
				for j, x := range row {
					if m := uint32(x & 0x7fff); m > part[j] && m < 0x7f80 {
						part[j] = m
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for j, m := range part {
			most[j] = max(most[j], int64(m))
		}
	})
}

func magnitude32(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// fromBits is the element with these bits.
func fromBits[T formats.Value](bits int64) (x T) {
	switch p := any(&x).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(bits))
	case *half.F16:
		*p = half.F16(bits)
	case *half.BF16:
		*p = half.BF16(bits)
	}
	return x
}

func float32s[T formats.Value](s []T) []float32 {
	out := make([]float32, len(s))
	formats.ConvertSlice(out, s)
	return out
}
