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
	for g := from * per / GroupSlots; g < to*per/GroupSlots; g++ {
		i := groups[2*g+1]
		for m := groups[2*g]; m != 0; m &= m - 1 {
			c.one(base+int(g)*GroupSlots+bits.TrailingZeros32(m), sources[i])
			i++
		}
	}
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
		size := 2
		if c.p.dtype == include.F32 {
			size = 4
		}
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
