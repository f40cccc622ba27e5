// The kernel on the CPU: a workgroup is a run of rows, or of fours of entries, which have words of their own.

package requantise

import (
	"sort"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	rows := backend.View[uint32](args[2])
	number := at[0] + at[2]*p.width
	if p.phase == 0 {
		for i := number * p.per; i < min(p.count, (number+1)*p.per); i++ {
			var r rfx.Range
			for e := rows[2*i]; e < rows[2*i+2]; e++ {
				r = r.Join(rfx.RangeOf(host.Element(args[0], int(e), p.elem)))
			}
			rows[2*i+1] = rows[2*i+1]&uint32(rfx.Mark) | uint32(r)
		}
		return
	}
	slots := backend.View[uint32](args[1])
	for four := number * p.per; four < min(p.fours, (number+1)*p.per); four++ {
		var q [4]int64
		row := -1
		for k := range q {
			e := 4*four + uint32(k)
			if p.tile > 0 && p.tile < pairs {
				e = slots[e] - 1
			}
			if e >= p.n {
				continue
			}
			if row < 0 || e < rows[2*row] || e >= rows[2*row+2] {
				row = sort.Search(int(p.count), func(i int) bool { return rows[2*i+2] > e })
			}
			if x := host.Element(args[0], int(e), p.elem); rfx.IsFinite(x) {
				q[k] = rfx.Quantise(x, rfx.P(p.bits).L(rfx.Range(rows[2*row+1]).E()))
			}
		}
		if p.tile >= pairs {
			for k, x := range q[:min(4, p.n-4*four)] {
				p.scatter(args[3], slots[4*int(four)+k], x)
			}
			continue
		}
		p.store(args[3], four, q)
	}
}

// scatter writes an entry's digits in a strip or a pair, from a byte on.
func (p *params) scatter(ints []byte, at uint32, q int64) {
	q = (q + 0x808080808080) ^ 0x808080808080 // balanced digits, in bytes
	for i := range rfx.P(p.bits).Bytes() {
		ints[at] = byte(q >> (8 * i))
		switch at++; {
		case p.tile == pairs:
			at++
		case at%4 == 0:
			at += rfx.StripUnit - 4
		}
	}
}

// store writes four integers.
func (p *params) store(ints []byte, four uint32, q [4]int64) {
	bits := rfx.P(p.bits)
	if p.tile == 0 {
		for k, x := range q {
			bits.Put(ints[(4*int(four)+k)*bits.Size():], x)
		}
		return
	}
	var d [4]int32
	digits := d[:bits.Bytes()]
	at := 4 * (int(four/p.tile)*len(digits)*int(p.tile) + int(four%p.tile))
	for k, x := range q {
		rfx.Digits(digits, x, 8)
		for j, digit := range digits {
			ints[at+4*j*int(p.tile)+k] = byte(digit)
		}
	}
}
