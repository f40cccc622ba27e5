// The kernel on the CPU: a workgroup has all columns of its rows.

package quantise

import (
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is how many elements are taken through f32 at a time.
const tile = 512

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	ldq, chunks, rows := int(p.ldq), int(p.chunks), int(p.rows)
	lo := int(at[0]) * rows
	hi := min(lo+rows, int(p.k))
	words := backend.View[uint32](args[1])
	if p.phase == 0 {
		p.scan(args[0], lo, hi, backend.View[rfx.Range](args[1])[(1+int(at[0]))*ldq:][:ldq])
		return
	}
	ranges := make([]rfx.Range, ldq)
	for c := range chunks {
		for j, r := range backend.View[rfx.Range](args[1])[(1+c)*ldq:][:ldq] {
			ranges[j] = ranges[j].Join(r)
		}
	}
	if at[0] == 0 {
		copy(backend.View[rfx.Range](args[1]), ranges)
	}
	bits := rfx.P(p.bits)
	units := make([]float64, ldq)
	for j, r := range ranges {
		units[j] = math.Ldexp(1, -bits.L(r.E()))
	}
	row := ldq * bits.Size() / 4
	values := words[ldq*(1+chunks):]
	if lo < hi && p.n < p.ldq { // the columns behind the last one are zeros
		clear(values[lo*row : hi*row])
	}
	p.each(args[0], lo, hi, func(k, j int, x []float32) {
		pack(values[k*row:][:row], ldq, j, x, units[j:], bits)
	})
}

// scan finds the ranges of the columns in rows lo to hi of b.
func (p *params) scan(b []byte, lo, hi int, ranges []rfx.Range) {
	largest, lowest, special := make([]int32, p.n), make([]int32, p.n), make([]int32, p.n)
	for j := range lowest {
		lowest[j] = simd.NoLowest
	}
	p.each(b, lo, hi, func(_, j int, x []float32) {
		simd.ScanRange(largest[j:], lowest[j:], special[j:], x)
	})
	clear(ranges)
	for j := range largest {
		if special[j] != 0 {
			ranges[j] = rfx.RangeOf(float32(math.Inf(1)))
		}
		if lowest[j] < simd.NoLowest {
			// The largest element's E, and the lowest bit as an element of its own.
			ranges[j] = ranges[j].Join(rfx.RangeOf(math.Float32frombits(uint32(largest[j]))))
			ranges[j] = ranges[j].Join(rfx.RangeOf(float32(math.Ldexp(1, int(lowest[j])-simd.LowestBias))))
		}
	}
}

// each calls f for segments of rows lo to hi of b, columns from j on.
func (p *params) each(b []byte, lo, hi int, f func(k, j int, x []float32)) {
	var buf [tile]float32
	for k := lo; k < hi; k++ {
		for j := 0; j < int(p.n); j += tile {
			n, at := min(tile, int(p.n)-j), k*int(p.ldb)+j
			switch p.elem {
			case include.F16:
				simd.WidenF16(buf[:n], backend.View[half.F16](b)[at:at+n])
			case include.BF16:
				simd.WidenBF16(buf[:n], backend.View[half.BF16](b)[at:at+n])
			default:
				f(k, j, backend.View[float32](b)[at:at+n])
				continue
			}
			f(k, j, buf[:n])
		}
	}
}

// pack writes elements j and on of a row of ldq elements: x times units. What is not finite is written
// as 0.
func pack(row []uint32, ldq, j int, x []float32, units []float64, p rfx.P) {
	switch p {
	case rfx.P15:
		simd.Quantise16(backend.View[int16](backend.Bytes(row))[j:], x, units)
	case rfx.P47:
		q := backend.View[int32](backend.Bytes(row))
		simd.Quantise48(q[j:], q[ldq+j:], x, units)
	default:
		simd.Quantise32(backend.View[int32](backend.Bytes(row))[j:], x, units)
	}
}
