// The kernel on the CPU: a workgroup has all columns of its rows.

package quantise

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is how many elements are taken through f32 at a time.
const tile = 512

type params struct{ phase, k, n, ldb, ldq, elem, precision, chunks, rows int }

func readParams(b []byte) (p params) {
	for i, f := range [...]*int{&p.phase, &p.k, &p.n, &p.ldb, &p.ldq, &p.elem, &p.precision, &p.chunks, &p.rows} {
		*f = int(spec.ParamU(b, i))
	}
	return p
}

func group(args [][]byte, block []byte, at [3]uint32) {
	p := readParams(block)
	words := backend.View[uint32](args[1])
	lo := int(at[0]) * p.rows
	hi := min(lo+p.rows, p.k)
	if p.phase == 0 {
		part := backend.View[rfx.Range](args[1])[(1+int(at[0]))*p.ldq:][:p.ldq]
		clear(part)
		p.each(args[0], lo, hi, func(_, j int, x []float32) {
			for i, x := range x {
				part[j+i] = part[j+i].Join(rfx.RangeOf(x))
			}
		})
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
	units := make([]int, p.ldq)
	for j, r := range ranges {
		units[j] = rfx.P(p.precision).L(r.E())
	}
	rows := words[p.ldq*(1+p.chunks):]
	row := p.ldq * rfx.P(p.precision).Size() / 4
	if lo < hi {
		clear(rows[lo*row : hi*row])
	}
	p.each(args[0], lo, hi, func(k, j int, x []float32) {
		pack(rows[k*row:][:row], p.ldq, j, x, units[j:], rfx.P(p.precision))
	})
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

// pack writes elements j and on of a row of ldq elements: x, in units of 2^units. What is not finite is
// written as 0.
func pack(row []uint32, ldq, j int, x []float32, units []int, p rfx.P) {
	for i, x := range x {
		q := int64(0)
		if rfx.IsFinite(x) {
			q = rfx.Quantise(x, units[i])
		}
		at := j + i
		if p != rfx.P47 {
			p.Put(backend.Bytes(row)[at*p.Size():], q)
			continue
		}
		var d [2]int32
		rfx.Digits(d[:], q, 24)
		row[at], row[ldq+at] = uint32(d[0]), uint32(d[1])
	}
}
