// The kernel on the CPU: a workgroup is a run of rows or entries.

package sddmmrfx

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// operands are a row of X and a row of Y.
type operands struct{ x, y []float32 }

var pool = sync.Pool{New: func() any { return new(operands) }}

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	first := int64(at[0]+at[2]*p.width) * cpuItems
	last := min(first+cpuItems, int64(p.items))
	o := pool.Get().(*operands)
	defer pool.Put(o)
	if k := int(p.k); cap(o.x) < k {
		o.x, o.y = make([]float32, k), make([]float32, k)
	} else {
		o.x, o.y = o.x[:k], o.y[:k]
	}
	for i := first; i < last; i++ {
		switch p.phase {
		case 0:
			o.row(&p, args, args[2], int(i), p.ldx, 0)
		case 1:
			o.row(&p, args, args[3], int(i), p.ldy, p.base)
		default:
			o.entry(&p, args, int(i))
		}
	}
}

// row finds the range of a row of m, which is X or Y, and its integers if asked.
func (o *operands) row(p *params, args [][]byte, m []byte, i int, ld, base uint32) {
	host.Widen(o.x, m, i*int(ld), p.elem)
	var r rfx.Range
	for _, v := range o.x {
		r = r.Join(rfx.RangeOf(v))
	}
	at := int(base) + i
	backend.View[uint32](args[5])[at] = uint32(r)
	if p.planes == 0 {
		return
	}
	to, l := p.integers(args, at), rfx.P(p.bits).L(r.E())
	for k, v := range o.x {
		to[k] = 0
		if rfx.IsFinite(v) {
			to[k] = int32(rfx.Quantise(v, l))
		}
	}
}

// integers are those of a row of X or Y.
func (p *params) integers(args [][]byte, row int) []int32 {
	from := int(p.planes) + row*int(p.ldq)
	return backend.View[int32](args[5])[from : from+int(p.k)]
}

// dot returns the product of two rows of integers, in 64 bits.
func dot(x, y []int32) (sum int64) {
	y = y[:len(x)]
	for i, v := range x {
		sum += int64(v) * int64(y[i])
	}
	return sum
}

// entry computes entry i.
func (o *operands) entry(p *params, args [][]byte, i int) {
	row, col := backend.View[uint32](args[0])[i], backend.View[uint32](args[1])[i]
	ranges, bits := backend.View[uint32](args[5]), rfx.P(p.bits)
	rx, ry := rfx.Range(ranges[row]), rfx.Range(ranges[p.base+col])
	var s float32
	if p.planes > 0 && !rx.NonFinite() && !ry.NonFinite() {
		sum := dot(p.integers(args, int(row)), p.integers(args, int(p.base+col)))
		s = rfx.Int128{}.AddProduct(sum, 1).Round(bits.L(rx.E()) + bits.L(ry.E()))
	} else {
		host.Widen(o.x, args[2], int(row)*int(p.ldx), p.elem)
		host.Widen(o.y, args[3], int(col)*int(p.ldy), p.elem)
		s = rfx.Dot(bits, rx, ry, o.x, o.y)
	}
	if p.scaled != 0 {
		s = rfx.Scale(backend.View[float32](args[4])[i], s, 0, 0)
	}
	backend.View[uint32](args[6])[i] = math.Float32bits(s)
}
