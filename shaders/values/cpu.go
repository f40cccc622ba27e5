// The kernel on the CPU: a workgroup is a run of slots. Elements are written one by one: in Go's memory model
// neighbours do not race.

package values

import (
	"math/bits"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	number := at[0] + at[2]*p.width
	from, to := number*cpuQuads, min(p.quads, (number+1)*cpuQuads)
	if from >= to {
		return
	}
	per := uint32(4) // slots of a quad
	if p.dtype != include.F32 {
		per = 8
	}
	c := copier{p: &p, src: args[0], dst: args[3]}
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
		move(backend.View[uint32](c.dst)[base:], backend.View[uint32](c.src), groups, sources, &p)
	default:
		move(backend.View[uint16](c.dst)[base:], backend.View[uint16](c.src), groups, sources, &p)
	}
}

// move copies the entries of groups to dst, from the first group's slots on.
func move[E uint16 | uint32](dst, src []E, groups, sources []uint32, p *params) {
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
func (c *copier) convert(base int, groups, sources []uint32) {
	var x [GroupSlots]float32
	var raw [4 * GroupSlots]byte
	lo, count, stride := c.p.lo, c.p.count, int(c.p.stride)
	wide, halves, gathered := backend.View[float32](c.src), backend.View[uint16](c.src), backend.View[uint16](raw[:])
	for g := range len(groups) / 2 {
		held := groups[2*g]
		from := sources[groups[2*g+1]:][:bits.OnesCount32(held)]
		if c.p.stype == include.F32 {
			for k, e := range from {
				if i := e - lo; i < count {
					x[k] = wide[int(i)*stride]
				}
			}
		} else {
			for k, e := range from {
				if i := e - lo; i < count {
					gathered[k] = halves[int(i)*stride]
				}
			}
			widen(x[:len(from)], raw[:], 0, c.p.stype)
		}
		narrow(raw[:], x[:len(from)], 0, c.p.dtype)
		for k, e := range from {
			if e-c.p.lo < c.p.count {
				size := elemSize(c.p.dtype)
				copy(c.dst[(base+g*GroupSlots+bits.TrailingZeros32(held))*size:][:size], raw[k*size:])
			}
			held &= held - 1
		}
	}
}

// elemSize is the bytes of an element.
func elemSize(t uint32) int {
	if t == include.F32 {
		return 4
	}
	return 2
}

// copier converts entries.
type copier struct {
	p        *params
	src, dst []byte
}

// straight converts n entries from number entry on, to slots that follow each other.
func (c *copier) straight(slot int, entry, n uint32) {
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
	var x [512]float32
	for i := 0; i < count; i += len(x) {
		y := x[:min(len(x), count-i)]
		widen(y, c.src, from+i, c.p.stype)
		narrow(c.dst, y, slot+i, c.p.dtype)
	}
}

// one converts an entry, if src holds it.
func (c *copier) one(slot int, entry uint32) {
	i := entry - c.p.lo
	if i >= c.p.count {
		return
	}
	at := int(i) * int(c.p.stride)
	switch {
	case c.p.stype != c.p.dtype:
		var x [1]float32
		widen(x[:], c.src, at, c.p.stype)
		narrow(c.dst, x[:], slot, c.p.dtype)
	case c.p.dtype == include.F32:
		backend.View[uint32](c.dst)[slot] = backend.View[uint32](c.src)[at]
	default:
		backend.View[uint16](c.dst)[slot] = backend.View[uint16](c.src)[at]
	}
}

// widen reads elements of src from at on, narrow writes those of dst.
func widen(x []float32, src []byte, at int, t uint32) {
	switch t {
	case include.F16:
		simd.WidenF16(x, backend.View[half.F16](src)[at:at+len(x)])
	case include.BF16:
		simd.WidenBF16(x, backend.View[half.BF16](src)[at:at+len(x)])
	default:
		copy(x, backend.View[float32](src)[at:])
	}
}

func narrow(dst []byte, x []float32, at int, t uint32) {
	switch t {
	case include.F16:
		simd.NarrowF16(backend.View[half.F16](dst)[at:at+len(x)], x)
	case include.BF16:
		simd.NarrowBF16(backend.View[half.BF16](dst)[at:at+len(x)], x)
	default:
		copy(backend.View[float32](dst)[at:at+len(x)], x)
	}
}
