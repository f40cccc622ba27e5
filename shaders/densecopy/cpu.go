// The kernel on the CPU: a workgroup is a tile of lines, each taken through f32 in scratch memory.
// Elements are written one by one: in Go's memory model neighbours do not race.

package densecopy

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
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

// scratch has elements as what they are taken through: f32, or f64 where those of src or dst are.
type scratch[S host.Real] struct {
	p    params // here, since arithmetic is called through pointers
	tile [cpuLines * cpuStride]S
	tmp  [cpuElems]S
}

// arithmetic has the kernel's operations on numbers of S.
type arithmetic[S host.Real] struct {
	load    func(x []S, m []byte, at int, t uint32) // widens elements of m from at on
	store   func(m []byte, x []S, at int, t uint32) // rounds x to elements of m from at on
	scalars func(p *params, block []byte) (alpha, beta S)
	axpby   func(c, x []S, alpha, beta S)
	apply   func(y []S, e spec.Epilogue, bias []byte, row, col int)
}

var single = arithmetic[float32]{
	load: host.Widen, store: host.Narrow,
	scalars: func(p *params, _ []byte) (alpha, beta float32) { return p.alpha, p.beta },
	axpby:   simd.Axpby, apply: host.Apply,
}

var double = arithmetic[float64]{
	load: host.Widen64, store: host.Narrow64,
	scalars: func(_ *params, block []byte) (alpha, beta float64) { return spec.Scalars(block) },
	axpby:   host.Axpby64, apply: host.Apply64,
}

// group returns the function of one workgroup.
func group[S host.Real](do arithmetic[S]) backend.GroupFunc {
	scratches := sync.Pool{New: func() any { return new(scratch[S]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		s := scratches.Get().(*scratch[S])
		defer scratches.Put(s)
		s.p = spec.View[params](block)
		s.tiles(&do, args, block, at)
	}
}

// tiles does the tile of a workgroup.
func (s *scratch[S]) tiles(do *arithmetic[S], args [][]byte, block []byte, at [3]uint32) {
	p := &s.p
	alpha, beta := do.scalars(p, block)
	src, dst := args[0], args[2]
	dtype, epilogue := spec.Stored(p.store)
	tiles, lds, ldd := int(p.tiles), int(p.lds), int(p.ldd)
	tile := int(at[0]) + int(at[2])*int(p.width)
	l0, e0 := tile/tiles*cpuLines, tile%tiles*cpuElems
	lines, n := min(cpuLines, int(p.lines)-l0), min(cpuElems, int(p.len)-e0)
	if lines <= 0 {
		return
	}
	plain := alpha == 1 && beta == 0 && epilogue.None()
	if plain && p.turned == 0 && p.stype == dtype {
		size := elem(dtype).Size()
		for l := l0; l < l0+lines; l++ {
			copy(dst[(l*ldd+e0)*size:][:n*size], src[(int(p.first)+l*lds+e0)*size:])
		}
		return
	}
	if p.turned != 0 {
		s.turn(do, src, l0, lines, e0, n)
	}
	for i := range lines {
		l, x := l0+i, s.tile[i*cpuStride:][:n]
		if p.turned == 0 {
			do.load(x, src, int(p.first)+l*lds+e0, p.stype)
		}
		if !plain {
			y := s.tmp[:n]
			if beta != 0 {
				do.load(y, dst, l*ldd+e0, dtype)
			}
			do.axpby(y, x, alpha, beta)
			do.apply(y, epilogue, args[1], l, e0)
			x = y
		}
		do.store(dst, x, l*ldd+e0, dtype)
	}
}

// turn fills the tile from src's lines, which run across it.
func (s *scratch[S]) turn(do *arithmetic[S], src []byte, l0, lines, e0, n int) {
	p, x := &s.p, s.tmp[:lines]
	for e := range n {
		do.load(x, src, int(p.first)+(e0+e)*int(p.lds)+l0, p.stype)
		for i, v := range x {
			s.tile[i*cpuStride+e] = v
		}
	}
}

func elem(t uint32) dtype.Type {
	return [...]dtype.Type{include.F32: dtype.F32, include.F16: dtype.F16, include.BF16: dtype.BF16,
		include.F64: dtype.F64}[t]
}
