// The kernel on the CPU: a workgroup takes a part apart into rows again, some blocks at a time, and
// multiplies each row's entries with package simd. Slots that hold nothing are never multiplied, so
// that sparse bricks cost no more than CSR.

package hrpb

import (
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuCols   = 256 // columns of a workgroup: the sums of its 16 rows stay in the first-level cache
	cpuBlock  = 16  // active columns of a block
	cpuChunk  = 16  // blocks that are taken apart at a time
	cpuWorker = 64  // parts at a time: a panel is split only where it would keep one core busy after the others are done
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		vs = append(vs, &spec.Variant{
			Name: "cpu_" + t.String(), In: t, Code: backend.CodeGo, Func: cpuFunc(t), Local: [3]uint32{1, 1, 1},
			Consts: []spec.Const{{Name: "BLOCK", ID: -1, Value: cpuBlock}, {Name: "WORKERS", ID: -1, Value: cpuWorker}, {Name: "COLS", ID: -1, Value: cpuCols}},
			Out:    []dtype.Type{dtype.F16, dtype.BF16},
		})
	}
	return vs
}

func cpuFunc(t dtype.Type) backend.GroupFunc {
	switch t {
	case dtype.F16:
		return cpuGroup(simd.RowF16)
	case dtype.BF16:
		return cpuGroup(simd.RowBF16)
	}
	return cpuGroup(simd.RowF32)
}

// params is the parameter block, read.
type params struct {
	phase, items, parts, longest, rows, n, ldb, ldc, ldp, ctype, width, fours, twos int
	alpha, beta                                                                     float32
}

func readParams(b []byte) (p params) {
	fields := [...]*int{&p.phase, &p.items, &p.parts, &p.longest, &p.rows, &p.n, &p.ldb, &p.ldc, &p.ldp, &p.ctype, &p.width, &p.fours, &p.twos}
	for i, f := range fields {
		*f = int(spec.ParamU(b, i))
	}
	p.alpha, p.beta = spec.ParamF(b, len(fields)), spec.ParamF(b, len(fields)+1)
	return p
}

// scratch is the entries of some blocks by row, and sums.
type scratch[T formats.Value] struct {
	len  [hrpb.PanelRows]int
	cols [hrpb.PanelRows][cpuChunk * cpuBlock]uint32
	vals [hrpb.PanelRows][cpuChunk * cpuBlock]T
	acc  [hrpb.PanelRows][cpuCols]float32
	row  [cpuCols]float32 // sums of a chunk, or a row of C on its way from and to 16 bits
}

// cpuGroup returns the function of one workgroup, given the inner loop for T.
func cpuGroup[T formats.Value](row func(acc []float32, vals []T, cols []uint32, b []T, ldb int)) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(scratch[T]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := readParams(block)
		item := int(at[0]) + int(at[2])*p.width
		if item >= p.items {
			return
		}
		s := pool.Get().(*scratch[T])
		defer pool.Put(s)
		j := int(at[1]) * cpuCols
		n := min(cpuCols, p.n-j)
		padded := (n + simd.Width - 1) / simd.Width * simd.Width
		part := backend.View[float32](args[6])
		work := backend.View[uint32](args[0])
		rows := func(panel int) int { return min(hrpb.PanelRows, p.rows-panel*hrpb.PanelRows) }
		if p.phase == 1 {
			w := work[4*(p.parts+item):]
			panel, slot, slots := int(w[0]), int(w[3]), (int(w[2]-w[1])+p.longest-1)/p.longest
			for r := range rows(panel) {
				acc := s.acc[r][:padded]
				clear(acc)
				for i := range slots {
					simd.Axpby(acc, part[((slot+i)*hrpb.PanelRows+r)*p.ldp+j:][:padded], 1, 1)
				}
				p.store(args[5], panel*hrpb.PanelRows+r, j, acc[:n], s.row[:n])
			}
			return
		}
		w := work[4*item:]
		panel, slot := int(w[0]), w[3]
		m := blocks[T]{active: backend.View[uint32](args[1]), sizes: backend.View[uint32](args[2]), packed: args[3]}
		b := backend.View[T](args[4])
		for q, first := int(w[1]), true; first || q < int(w[2]); q, first = q+cpuChunk, false {
			m.unpack(s, q, min(q+cpuChunk, int(w[2])))
			for r := range rows(panel) {
				cols, vals, acc := s.cols[r][:s.len[r]], s.vals[r][:s.len[r]], s.acc[r][:padded]
				switch {
				case first:
					row(acc, vals, cols, b[j:], p.ldb)
				case len(cols) > 0:
					row(s.row[:padded], vals, cols, b[j:], p.ldb)
					simd.Axpby(acc, s.row[:padded], 1, 1)
				}
			}
		}
		for r := range rows(panel) {
			if slot != hrpb.NoSlot {
				copy(part[(int(slot)*hrpb.PanelRows+r)*p.ldp+j:][:padded], s.acc[r][:padded])
			} else {
				p.store(args[5], panel*hrpb.PanelRows+r, j, s.acc[r][:n], s.row[:n])
			}
		}
	}
}

// blocks is the format's arrays.
type blocks[T formats.Value] struct {
	active, sizes []uint32
	packed        []byte
}

// unpack puts the entries of blocks first to last-1 in s, by row.
func (m *blocks[T]) unpack(s *scratch[T], first, last int) {
	const bricks = cpuBlock / hrpb.BrickCols
	clear(s.len[:])
	for q := first; q < last; q++ {
		from := m.packed[16*int(m.sizes[q]) : 16*int(m.sizes[q+1])]
		patterns, values := backend.View[uint64](from)[:bricks], backend.View[T](from[8*bricks:])
		cols := m.active[q*cpuBlock:][:cpuBlock]
		k := 0
		for i, w := range patterns {
			for ; w != 0; w &= w - 1 {
				bit := bits.TrailingZeros64(w)
				r := bit / hrpb.BrickCols % hrpb.PanelRows
				at := s.len[r]
				s.cols[r][at], s.vals[r][at] = cols[i*hrpb.BrickCols+bit%hrpb.BrickCols], values[k]
				s.len[r]++
				k++
			}
		}
	}
}

// store writes alpha·acc + beta·C to row r of C from column j. tmp is as long as acc.
func (p *params) store(c []byte, r, j int, acc, tmp []float32) {
	at, n := r*p.ldc+j, len(acc)
	switch p.ctype {
	case include.F16:
		storeHalf(backend.View[half.F16](c)[at:at+n], acc, tmp, p, simd.WidenF16, simd.NarrowF16)
	case include.BF16:
		storeHalf(backend.View[half.BF16](c)[at:at+n], acc, tmp, p, simd.WidenBF16, simd.NarrowBF16)
	default:
		simd.Axpby(backend.View[float32](c)[at:at+n], acc, p.alpha, p.beta)
	}
}

func storeHalf[T formats.Value](c []T, acc, tmp []float32, p *params, widen func([]float32, []T), narrow func([]T, []float32)) {
	if p.beta != 0 {
		widen(tmp, c)
	}
	simd.Axpby(tmp, acc, p.alpha, p.beta)
	narrow(c, tmp)
}
