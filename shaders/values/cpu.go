// The kernel on the CPU: a workgroup is a run of slots. Elements are written one by one: in Go's memory model
// neighbours do not race.

package values

import (
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

var group, group64 = groupOf(host.Widen, host.Narrow), groupOf(host.Widen64, host.Narrow64)

// groupOf returns the function of one workgroup, which takes entries of different types through S: f32, or f64 where
// one of them is. It is given what reads elements of src and what writes those of dst.
func groupOf[S host.Real](widen func(x []S, src []byte, at int, t uint32),
	narrow func(dst []byte, x []S, at int, t uint32)) backend.GroupFunc {
	copiers := sync.Pool{New: func() any { return &copier[S]{widen: widen, narrow: narrow} }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		c := copiers.Get().(*copier[S])
		defer copiers.Put(c)
		c.p, c.src, c.dst = spec.View[params](block), args[0], args[3]
		c.group(args, at)
		c.src, c.dst = nil, nil
	}
}

func (c *copier[S]) group(args [][]byte, at [3]uint32) {
	p := &c.p
	number := at[0] + at[2]*p.width
	from, to := number*cpuQuads, min(p.quads, (number+1)*cpuQuads)
	if from >= to {
		return
	}
	per := uint32(4) // slots of a quad
	if elemSize(p.dtype) == 2 {
		per = 8
	}
	base := int(p.base) * int(per)
	if p.slots > 0 {
		c.straight(base+int(from*per), p.first+from*per, min(p.slots, to*per)-from*per)
		return
	}
	groups, sources := backend.View[uint32](args[1]), backend.View[uint32](args[2])
	groups = groups[2*(from*per/GroupSlots) : 2*(to*per/GroupSlots)]
	base += int(from * per)
	switch {
	case p.stype != p.dtype:
		c.convert(base, groups, sources)
	case p.dtype == include.F32:
		move(backend.View[uint32](c.dst)[base:], backend.View[uint32](c.src), groups, sources, p)
	case p.dtype == include.F64:
		move(backend.View[uint64](c.dst)[base:], backend.View[uint64](c.src), groups, sources, p)
	default:
		move(backend.View[uint16](c.dst)[base:], backend.View[uint16](c.src), groups, sources, p)
	}
}

// move copies the entries of groups to dst, from the first group's slots on.
func move[E uint16 | uint32 | uint64](dst, src []E, groups, sources []uint32, p *params) {
	for g := range len(groups) / 2 {
		slots := dst[g*GroupSlots:]
		from := sources[groups[2*g+1]:]
		for m := groups[2*g]; m != 0; m &= m - 1 {
			if i := from[0] - p.lo; i < p.count {
				slots[bits.TrailingZeros32(m)] = src[int(i)*int(p.stride)]
			}
			from = from[1:]
		}
	}
}

// convert is move for an array of another type, whose slots begin at base: by 32 entries at a time.
func (c *copier[S]) convert(base int, groups, sources []uint32) {
	x, raw := c.x[:GroupSlots], c.raw[:]
	lo, count, from, to := c.p.lo, c.p.count, elemSize(c.p.stype), elemSize(c.p.dtype)
	for g := range len(groups) / 2 {
		held := groups[2*g]
		entries := sources[groups[2*g+1]:][:bits.OnesCount32(held)]
		switch from {
		case 2:
			gather[uint16](raw, c.src, entries, &c.p)
		case 4:
			gather[uint32](raw, c.src, entries, &c.p)
		default:
			gather[uint64](raw, c.src, entries, &c.p)
		}
		c.widen(x[:len(entries)], raw, 0, c.p.stype)
		c.narrow(raw, x[:len(entries)], 0, c.p.dtype)
		for k, e := range entries {
			if e-lo < count {
				copy(c.dst[(base+g*GroupSlots+bits.TrailingZeros32(held))*to:][:to], raw[k*to:])
			}
			held &= held - 1
		}
	}
}

// gather brings those of the entries that src holds side by side.
func gather[E uint16 | uint32 | uint64](to, src []byte, entries []uint32, p *params) {
	x, from := backend.View[E](to), backend.View[E](src)
	for k, e := range entries {
		if i := e - p.lo; i < p.count {
			x[k] = from[int(i)*int(p.stride)]
		}
	}
}

// elemSize is the bytes of an element.
func elemSize(t uint32) int {
	return [...]int{include.F32: 4, include.F16: 2, include.BF16: 2, include.F64: 8}[t]
}

// copier converts entries.
type copier[S host.Real] struct {
	p        params
	src, dst []byte
	x        [512]S                                    // elements on their way
	raw      [8 * GroupSlots]byte                      // and as they lie in src or dst
	widen    func(x []S, src []byte, at int, t uint32) // reads elements of src from at on
	narrow   func(dst []byte, x []S, at int, t uint32) // writes those of dst
}

// straight converts n entries from number entry on, to slots that follow each other.
func (c *copier[S]) straight(slot int, entry, n uint32) {
	if c.p.stride != 1 {
		for i := range n {
			c.one(slot+int(i), entry+i)
		}
		return
	}
	lo, hi := max(entry, c.p.lo), min(uint64(entry)+uint64(n), uint64(c.p.lo)+uint64(c.p.count))
	if uint64(lo) >= hi {
		return
	}
	slot += int(lo - entry)
	from, count := int(lo-c.p.lo), int(hi-uint64(lo))
	if c.p.stype == c.p.dtype {
		size := elemSize(c.p.dtype)
		copy(c.dst[slot*size:][:count*size], c.src[from*size:])
		return
	}
	for i := 0; i < count; i += len(c.x) {
		y := c.x[:min(len(c.x), count-i)]
		c.widen(y, c.src, from+i, c.p.stype)
		c.narrow(c.dst, y, slot+i, c.p.dtype)
	}
}

// one converts an entry, if src holds it.
func (c *copier[S]) one(slot int, entry uint32) {
	i := entry - c.p.lo
	if i >= c.p.count {
		return
	}
	at := int(i) * int(c.p.stride)
	switch {
	case c.p.stype != c.p.dtype:
		x := c.x[:1]
		c.widen(x, c.src, at, c.p.stype)
		c.narrow(c.dst, x, slot, c.p.dtype)
	case c.p.dtype == include.F32:
		backend.View[uint32](c.dst)[slot] = backend.View[uint32](c.src)[at]
	case c.p.dtype == include.F64:
		backend.View[uint64](c.dst)[slot] = backend.View[uint64](c.src)[at]
	default:
		backend.View[uint16](c.dst)[slot] = backend.View[uint16](c.src)[at]
	}
}
