// The kernel on the CPU: a workgroup is a tile of lines, each taken through f32 in scratch memory.
// Elements are written one by one: in Go's memory model neighbours do not race.

package densecopy

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The tile. Its lines are kept a little further apart than they are long, for the cache's sake.
const (
	cpuLines  = 32
	cpuElems  = 512
	cpuStride = cpuElems + 16
)

type scratch struct {
	tile [cpuLines * cpuStride]float32
	tmp  [cpuElems]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func group(args [][]byte, block []byte, at [3]uint32) {
	p := spec.View[params](block)
	src, dst := args[0], args[2]
	dtype, epilogue := spec.Stored(p.store)
	tiles, lds, ldd := int(p.tiles), int(p.lds), int(p.ldd)
	tile := int(at[0]) + int(at[2])*int(p.width)
	l0, e0 := tile/tiles*cpuLines, tile%tiles*cpuElems
	lines, n := min(cpuLines, int(p.lines)-l0), min(cpuElems, int(p.len)-e0)
	if lines <= 0 {
		return
	}
	plain := p.alpha == 1 && p.beta == 0 && epilogue.None()
	if plain && p.turned == 0 && p.stype == dtype {
		size := elem(dtype).Size()
		for l := l0; l < l0+lines; l++ {
			copy(dst[(l*ldd+e0)*size:][:n*size], src[(int(p.first)+l*lds+e0)*size:])
		}
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if p.turned != 0 {
		s.turn(&p, src, l0, lines, e0, n)
	}
	for i := range lines {
		l, x := l0+i, s.tile[i*cpuStride:][:n]
		if p.turned == 0 {
			load(x, src, int(p.first)+l*lds+e0, p.stype)
		}
		if !plain {
			y := s.tmp[:n]
			if p.beta != 0 {
				load(y, dst, l*ldd+e0, dtype)
			}
			simd.Axpby(y, x, p.alpha, p.beta)
			host.Apply(y, epilogue, args[1], l, e0)
			x = y
		}
		store(dst, x, l*ldd+e0, dtype)
	}
}

// turn fills the tile from src's lines, which run across it.
func (s *scratch) turn(p *params, src []byte, l0, lines, e0, n int) {
	x := s.tmp[:lines]
	for e := range n {
		load(x, src, int(p.first)+(e0+e)*int(p.lds)+l0, p.stype)
		for i, v := range x {
			s.tile[i*cpuStride+e] = v
		}
	}
}

func elem(t uint32) dtype.Type {
	return [...]dtype.Type{include.F32: dtype.F32, include.F16: dtype.F16, include.BF16: dtype.BF16}[t]
}

// load widens elements of m from at on.
func load(x []float32, m []byte, at int, t uint32) {
	switch t {
	case include.F16:
		simd.WidenF16(x, backend.View[half.F16](m)[at:at+len(x)])
	case include.BF16:
		simd.WidenBF16(x, backend.View[half.BF16](m)[at:at+len(x)])
	default:
		copy(x, backend.View[float32](m)[at:])
	}
}

// store rounds x to elements of m from at on.
func store(m []byte, x []float32, at int, t uint32) {
	switch t {
	case include.F16:
		simd.NarrowF16(backend.View[half.F16](m)[at:at+len(x)], x)
	case include.BF16:
		simd.NarrowBF16(backend.View[half.BF16](m)[at:at+len(x)], x)
	default:
		copy(backend.View[float32](m)[at:at+len(x)], x)
	}
}
