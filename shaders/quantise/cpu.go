// The kernel on the CPU: a workgroup has all columns of its rows.

package quantise

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Elements of 16 bits are converted to f32 in tiles, which fit the first-level cache.
const (
	tileRows    = 64
	tileColumns = 64
)

// scratch holds the ranges of a workgroup's columns, and a tile as f32.
type scratch struct {
	largest, lowest, special []int32
	first, second            []float32 // a unit's inverse is their product
	inverse                  []float64 // the same
	tile                     [tileRows * tileColumns]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// grow returns s with n elements, which may hold anything.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	lo := int(at[0] * p.rows)
	hi := min(lo+int(p.rows), int(p.k))
	words, ldq := backend.View[uint32](args[1]), int(p.ldq)
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if p.phase == 0 {
		chunk := Layout{K: int(p.k)}.chunk()
		first := lo / chunk
		parts := words[(1+first)*ldq : (1+min(first+int(p.rows)/chunk, int(p.chunks)))*ldq]
		s.find(&p, args[0], lo, hi, parts[:ldq])
		clear(parts[ldq:])
		return
	}
	ranges := make([]uint32, ldq)
	for c := range int(p.chunks) {
		simd.JoinRanges(ranges, words[(1+c)*ldq:][:ldq])
	}
	if at[0] == 0 {
		copy(words, ranges)
	}
	s.scale(&p, ranges)
	s.quantise(&p, args[0], lo, hi, words[ldq*(1+int(p.chunks)):])
}

// find finds the ranges of the columns in rows lo to hi of b, the lowest bits only for choosing p (see Ranges).
func (s *scratch) find(p *params, b []byte, lo, hi int, ranges []uint32) {
	n, whole := int(p.n), p.bits == 0
	s.largest, s.lowest, s.special = grow(s.largest, n), grow(s.lowest, n), grow(s.special, n)
	clear(s.largest)
	clear(s.special)
	for j := range s.lowest {
		s.lowest[j] = simd.NoLowest
	}
	s.tiles(p, b, lo, hi, func(_, rows, j, cols int, x []float32, ld int) {
		if whole {
			simd.ScanColumns(s.largest[j:j+cols], s.lowest[j:j+cols], s.special[j:j+cols], x, ld, rows)
		} else {
			simd.LargestColumns(s.largest[j:j+cols], s.special[j:j+cols], x, ld, rows)
		}
	})
	clear(ranges)
	for j, m := range s.largest {
		var r rfx.Range
		if s.special[j] != 0 {
			r = rfx.RangeOf(float32(math.Inf(1)))
		}
		switch largest := math.Float32frombits(uint32(m)); {
		case m == 0:
		case whole:
			r = r.Join(rfx.RangeFrom(largest, int(s.lowest[j])-simd.LowestBias))
		default:
			r = r.Join(rfx.RangeTo(largest))
		}
		ranges[j] = uint32(r)
	}
}

// scale finds the columns' units.
func (s *scratch) scale(p *params, ranges []uint32) {
	n := int(p.n)
	s.first, s.second, s.inverse = grow(s.first, n), grow(s.second, n), grow(s.inverse, n)
	for j, r := range ranges[:n] {
		e := -rfx.P(p.bits).L(rfx.Range(r).E())
		first := min(e, 127) // what a float32 may be
		s.first[j], s.second[j], s.inverse[j] = power(first), power(e-first), math.Ldexp(1, e)
	}
}

// power returns 2^e for an e of normal numbers.
func power(e int) float32 { return math.Float32frombits(uint32(127+e) << 23) }

// quantise writes rows lo to hi of b in fixed point.
func (s *scratch) quantise(p *params, b []byte, lo, hi int, words []uint32) {
	ldq, bits := int(p.ldq), rfx.P(p.bits)
	row := ldq * bits.Size() / 4
	if lo < hi && p.n < p.ldq { // the columns behind the last one are zeros
		clear(words[lo*row : hi*row])
	}
	q := backend.Bytes(words)
	s.tiles(p, b, lo, hi, func(k, rows, j, cols int, x []float32, ld int) {
		first, second := s.first[j:j+cols], s.second[j:j+cols]
		switch bits {
		case rfx.P15:
			simd.Quantise16(backend.View[int16](q)[k*ldq+j:], ldq, x, ld, rows, first, second)
		case rfx.P47:
			for i := range rows {
				out := backend.View[int32](q)[2*(k+i)*ldq+j:]
				simd.Quantise48(out, out[ldq:], x[i*ld:][:cols], s.inverse[j:])
			}
		default:
			simd.Quantise32(backend.View[int32](q)[k*ldq+j:], ldq, x, ld, rows, first, second)
		}
	})
}

// tiles calls f for tiles of rows lo to hi of b as f32: from row k and column j on, ld apart.
func (s *scratch) tiles(p *params, b []byte, lo, hi int, f func(k, rows, j, cols int, x []float32, ld int)) {
	n, ldb := int(p.n), int(p.ldb)
	if lo >= hi {
		return
	}
	if p.elem == include.F32 {
		f(lo, hi-lo, 0, n, backend.View[float32](b)[lo*ldb:], ldb)
		return
	}
	for k := lo; k < hi; k += tileRows {
		rows := min(tileRows, hi-k)
		for j := 0; j < n; j += tileColumns {
			cols, at := min(tileColumns, n-j), k*ldb+j
			if p.elem == include.F16 {
				simd.WidenLinesF16(s.tile[:], tileColumns, backend.View[half.F16](b)[at:], ldb, rows, cols)
			} else {
				simd.WidenLinesBF16(s.tile[:], tileColumns, backend.View[half.BF16](b)[at:], ldb, rows, cols)
			}
			f(k, rows, j, cols, s.tile[:], tileColumns)
		}
	}
}
