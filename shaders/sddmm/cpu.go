// The kernel on the CPU: a workgroup is a run of entries. A row of X is widened once for neighbours that share it.

package sddmm

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// operands are a row of X and a row of Y.
type operands[S host.Real] struct{ x, y []S }

// groupOf returns the function of one workgroup, for elements of a type that widen reads.
func groupOf[S host.Real](elem uint32, widen func(x []S, src []byte, at int, t uint32)) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(operands[S]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		first := int64(at[0]+at[2]*p.width) * cpuEntries
		last := min(first+cpuEntries, int64(p.entries))
		if first >= last {
			return
		}
		o := pool.Get().(*operands[S])
		defer pool.Put(o)
		o.resize(int(p.k))
		rows, cols := backend.View[uint32](args[0]), backend.View[uint32](args[1])
		scale, s := backend.View[S](args[4]), backend.View[S](args[5])
		for e := first; e < last; e++ {
			if e == first || rows[e] != rows[e-1] {
				widen(o.x, args[2], int(rows[e])*int(p.ldx), elem)
			}
			widen(o.y, args[3], int(cols[e])*int(p.ldy), elem)
			s[e] = dot(o.x, o.y)
			if p.scaled != 0 {
				s[e] *= scale[e]
			}
		}
	}
}

func (o *operands[S]) resize(k int) {
	if cap(o.x) < k {
		o.x, o.y = make([]S, k), make([]S, k)
	}
	o.x, o.y = o.x[:k], o.y[:k]
}

// dot returns x·y, in four sums.
func dot[S host.Real](x, y []S) S {
	var a, b, c, d S
	for len(x) >= 4 && len(y) >= 4 {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		a += v * y[i]
	}
	return (a + b) + (c + d)
}
