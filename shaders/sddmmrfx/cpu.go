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
	ranges := backend.View[uint32](args[5])
	for i := first; i < last; i++ {
		switch p.phase {
		case 0:
			ranges[i] = rangeOf(o.x, args[2], int(i), p.ldx, p.elem)
		case 1:
			ranges[int64(p.base)+i] = rangeOf(o.x, args[3], int(i), p.ldy, p.elem)
		default:
			o.entry(&p, args, int(i))
		}
	}
}

// rangeOf returns the range of a row of m, which it reads to x.
func rangeOf(x []float32, m []byte, row int, ld, elem uint32) uint32 {
	host.Widen(x, m, row*int(ld), elem)
	var r rfx.Range
	for _, v := range x {
		r = r.Join(rfx.RangeOf(v))
	}
	return uint32(r)
}

// entry computes entry i.
func (o *operands) entry(p *params, args [][]byte, i int) {
	row, col := backend.View[uint32](args[0])[i], backend.View[uint32](args[1])[i]
	ranges := backend.View[uint32](args[5])
	host.Widen(o.x, args[2], int(row)*int(p.ldx), p.elem)
	host.Widen(o.y, args[3], int(col)*int(p.ldy), p.elem)
	s := rfx.Dot(rfx.P(p.bits), rfx.Range(ranges[row]), rfx.Range(ranges[p.base+col]), o.x, o.y)
	if p.scaled != 0 {
		s = rfx.Scale(backend.View[float32](args[4])[i], s, 0, 0)
	}
	backend.View[uint32](args[6])[i] = math.Float32bits(s)
}
