// The kernel on the CPU: a workgroup has all columns of its rows.

package quantise

import (
	"math"
	mathbits "math/bits"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is how many elements are taken through f32 at a time.
const tile = 512

type params struct{ phase, k, n, ldb, ldq, elem, bits, chunks, rows int }

func readParams(b []byte) (p params) {
	for i, f := range [...]*int{&p.phase, &p.k, &p.n, &p.ldb, &p.ldq, &p.elem, &p.bits, &p.chunks, &p.rows} {
		*f = int(spec.ParamU(b, i))
	}
	return p
}

func group(args [][]byte, block []byte, at [3]uint32) {
	p := readParams(block)
	lo := int(at[0]) * p.rows
	hi := min(lo+p.rows, p.k)
	words := backend.View[uint32](args[1])
	if p.phase == 0 {
		p.scan(args[0], lo, hi, backend.View[rfx.Range](args[1])[(1+int(at[0]))*p.ldq:][:p.ldq])
		return
	}
	ranges := make([]rfx.Range, p.ldq)
	for c := range p.chunks {
		for j, r := range backend.View[rfx.Range](args[1])[(1+c)*p.ldq:][:p.ldq] {
			ranges[j] = ranges[j].Join(r)
		}
	}
	if at[0] == 0 {
		copy(backend.View[rfx.Range](args[1]), ranges)
	}
	bits := rfx.P(p.bits)
	units := make([]float64, p.ldq)
	for j, r := range ranges {
		units[j] = math.Ldexp(1, -bits.L(r.E()))
	}
	row := p.ldq * bits.Size() / 4
	rows := words[p.ldq*(1+p.chunks):]
	if lo < hi {
		clear(rows[lo*row : hi*row])
	}
	p.each(args[0], lo, hi, func(k, j int, x []float32) {
		pack(rows[k*row:][:row], p.ldq, j, x, units[j:], bits)
	})
}

// scan finds the ranges of the columns in rows lo to hi of b.
func (p *params) scan(b []byte, lo, hi int, ranges []rfx.Range) {
	largest := make([]uint32, p.n) // magnitude, as bits
	lowest := make([]int32, p.n)   // exponent of the lowest bit, + 149 and counted down from none
	wild := make([]rfx.Range, p.n) // of what is not finite
	const none = 1 << 10
	for j := range lowest {
		lowest[j] = none
	}
	p.each(b, lo, hi, func(_, j int, x []float32) {
		largest, lowest := largest[j:][:len(x)], lowest[j:][:len(x)]
		for i, x := range x {
			m := math.Float32bits(x) & 0x7fffffff
			if m-1 >= 0x7f800000-1 { // zero, or not finite
				wild[j+i] = wild[j+i].Join(rfx.RangeOf(x))
				continue
			}
			largest[i] = max(largest[i], m)
			e, f := m>>23, m&0x7fffff
			if e == 0 {
				e = 1
			} else {
				f |= 1 << 23
			}
			lowest[i] = min(lowest[i], int32(e)-1+int32(mathbits.TrailingZeros32(f)))
		}
	})
	clear(ranges)
	for j := range largest {
		ranges[j] = wild[j]
		if lowest[j] < none {
			// The largest element's E, and the lowest bit as an element of its own.
			ranges[j] = ranges[j].Join(rfx.RangeOf(math.Float32frombits(largest[j])))
			ranges[j] = ranges[j].Join(rfx.RangeOf(float32(math.Ldexp(1, int(lowest[j])-149))))
		}
	}
}

// each calls f for pieces of rows lo to hi of b, columns from j on.
func (p *params) each(b []byte, lo, hi int, f func(k, j int, x []float32)) {
	var buf [tile]float32
	for k := lo; k < hi; k++ {
		for j := 0; j < p.n; j += tile {
			x := buf[:min(tile, p.n-j)]
			at := k*p.ldb + j
			switch p.elem {
			case include.F16:
				formats.ConvertSlice(x, backend.View[half.F16](b)[at:at+len(x)])
			case include.BF16:
				formats.ConvertSlice(x, backend.View[half.BF16](b)[at:at+len(x)])
			default:
				copy(x, backend.View[float32](b)[at:])
			}
			f(k, j, x)
		}
	}
}

// pack writes elements j and on of a row of ldq elements: x times units. What is not finite is written
// as 0.
func pack(row []uint32, ldq, j int, x []float32, units []float64, p rfx.P) {
	units = units[:len(x)]
	switch p {
	case rfx.P15:
		out := backend.View[int16](backend.Bytes(row))[j:][:len(x)]
		for i, x := range x {
			out[i] = int16(quantise(x, units[i]))
		}
	case rfx.P47:
		var d [2]int32
		for i, x := range x {
			rfx.Digits(d[:], quantise(x, units[i]), 24)
			row[j+i], row[ldq+j+i] = uint32(d[0]), uint32(d[1])
		}
	default:
		out := row[j:][:len(x)]
		for i, x := range x {
			out[i] = uint32(quantise(x, units[i]))
		}
	}
}

// quantise is rfx.Quantise, given 2^−l: the product is exact, and adding 1.5·2⁵² rounds it to an integer,
// ties to even, that can be read off the sum's last bits.
func quantise(x float32, unit float64) int64 {
	const magic = 0x1.8p52
	if !rfx.IsFinite(x) {
		return 0
	}
	return int64(math.Float64bits(float64(x)*unit+magic)) - int64(math.Float64bits(magic))
}
