// The kernel on the CPU: package simd computes single rows, or eight rows of a panel at a time.

package nm

import (
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuRows     = 8   // rows of a workgroup for single entries
	cpuCols     = 512 // columns, for single entries
	cpuTallRows = 32  // rows of a workgroup for taller units, of one panel or several
	cpuTallCols = 128 // columns: their block of B stays in the second-level cache
	cpuChunk    = 256 // condensed columns that all rows take before the next
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		for _, x := range []struct {
			v, rows, cols uint32
		}{{anyTall, cpuTallRows, cpuTallCols}, {1, cpuRows, cpuCols}} {
			vs = append(vs, &spec.Variant{
				Name: fmt.Sprintf("cpu_v%d_%v", x.v, t), In: t, Code: backend.CodeGo, Func: cpuFunc(x.v == 1, t),
				Local:  [3]uint32{1, 1, 1},
				Consts: []spec.Const{define("V", x.v), define("PACK", plainPack), define("ROWS", x.rows), define("COLS", x.cols)},
				Out:    []dtype.Type{dtype.F16, dtype.BF16},
			})
		}
	}
	return vs
}

func cpuFunc(single bool, t dtype.Type) backend.GroupFunc {
	switch t {
	case dtype.F16:
		return cpuGroup(single, loops[half.F16]{simd.RowF16, simd.PanelF16, simd.WidenF16, half.F16.Float32})
	case dtype.BF16:
		return cpuGroup(single, loops[half.BF16]{simd.RowBF16, simd.PanelBF16, simd.WidenBF16, half.BF16.Float32})
	}
	return cpuGroup(single, loops[float32]{simd.RowF32, simd.PanelF32, func(dst, src []float32) { copy(dst, src) }, func(x float32) float32 { return x }})
}

// loops are the inner loops for T.
type loops[T formats.Value] struct {
	row   func(acc []float32, vals []T, cols []uint32, b []T, ldb int)
	panel func(acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int)
	widen func([]float32, []T)
	wide  func(T) float32
}

// problem is the parameter block, read, and the arrays.
type problem[T formats.Value] struct {
	nm.Pattern
	nm.Shape
	loops[T]
	rows, cols, n, ldb, ldc int
	ctype                   uint32
	alpha, beta             float32
	values                  []T
	places, mask            []uint32
	b                       []T
	c                       []byte
}

func read[T formats.Value](l loops[T], args [][]byte, params []byte) problem[T] {
	u := func(i int) int { return int(spec.ParamU(params, i)) }
	p := problem[T]{
		Pattern: nm.Pattern{N: u(paramKeep), M: u(paramEvery), V: u(paramTall), W: 1 << u(paramWide)}, loops: l,
		rows: u(paramRows), cols: u(paramCols), n: u(paramN), ldb: u(paramLDB), ldc: u(paramLDC), ctype: spec.ParamU(params, paramCType),
		alpha: spec.ParamF(params, paramAlpha), beta: spec.ParamF(params, paramBeta),
		values: backend.View[T](args[0]), places: backend.View[uint32](args[1]), mask: backend.View[uint32](args[2]),
		b: backend.View[T](args[3]), c: args[4],
	}
	p.Shape, _ = p.Pattern.Shape(p.rows, p.cols) // which launch has made already
	return p
}

// scratch is a workgroup's memory: sums, decoded columns, values as float32, a row of C on its way from and to 16 bits.
type scratch struct {
	acc    [cpuTallRows * cpuTallCols]float32
	wide   [cpuCols]float32
	cols   []uint32
	values [cpuTallRows * cpuChunk]float32
	c      [cpuCols]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// cpuGroup returns the function of one workgroup.
func cpuGroup[T formats.Value](single bool, l loops[T]) backend.GroupFunc {
	return func(args [][]byte, params []byte, at [3]uint32) {
		block := int(at[0] + at[2]*spec.ParamU(params, paramWidth))
		if block >= int(spec.ParamU(params, paramBlocks)) {
			return
		}
		p := read(l, args, params)
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		if !single {
			for row, end := block*cpuTallRows, min(p.rows, (block+1)*cpuTallRows); row < end; {
				rows := min(cpuTallRows-row%cpuTallRows, p.V-row%p.V)
				p.tall(s, row, rows, int(at[1])*cpuTallCols)
				row += rows
			}
			return
		}
		for row := block * cpuRows; row < min(p.rows, block*cpuRows+cpuRows); row++ {
			p.single(s, row, int(at[1])*cpuCols)
		}
	}
}

// single multiplies a row by the columns from j.
func (p *problem[T]) single(s *scratch, row, j int) {
	n := min(cpuCols, p.n-j)
	acc := s.wide[:(n+simd.Width-1)/simd.Width*simd.Width]
	s.cols = p.decode(s.cols[:0], row, 0, p.Columns)
	p.row(acc, p.values[row*p.Columns:][:p.Columns], s.cols, p.b[j:], p.ldb)
	p.finish(s, row, j, acc[:n])
}

// tall multiplies rows of a panel, a multiple of eight, by the columns from j.
func (p *problem[T]) tall(s *scratch, row, rows, j int) {
	n := min(cpuTallCols, p.n-j)
	padded := (n + simd.Width - 1) / simd.Width * simd.Width
	panel := row / p.V
	clear(s.acc[:rows*cpuTallCols])
	for k := 0; k < p.Columns; k += cpuChunk {
		m := min(cpuChunk, p.Columns-k)
		s.cols = p.decode(s.cols[:0], panel, k, k+m)
		for i := range m {
			from := (panel*p.Columns+k+i)*p.V + row%p.V
			p.widen(s.values[i*rows:][:rows], p.values[from:from+rows])
		}
		for r := 0; r < rows; r += simd.PanelRows {
			p.panel(s.acc[r*cpuTallCols:], cpuTallCols, s.values[r:m*rows], rows, s.cols, p.b[j:], p.ldb, padded)
		}
	}
	for r := range min(rows, p.rows-row) {
		p.finish(s, row+r, j, s.acc[r*cpuTallCols:][:n])
	}
}

// decode appends the columns of condensed columns from to end of a panel. Those past the matrix, whose values are 0,
// become its last.
func (p *problem[T]) decode(cols []uint32, panel, from, end int) []uint32 {
	words := p.places[panel*p.IndexWords:]
	shift, q := bits.Len(uint(p.W))-1, p.Bits()
	slot := from >> shift
	first, left := slot/p.N*p.M, p.N-slot%p.N // the group's first unit, its slots yet to come
	for k := from; k < end; slot++ {
		at := slot * q
		x := words[at/32] >> (at % 32)
		if at%32+q > 32 {
			x |= words[at/32+1] << (32 - at%32)
		}
		unit := (first + int(x&(1<<q-1))) << shift
		for w := k & (p.W - 1); w < p.W && k < end; w++ {
			cols = append(cols, uint32(min(unit+w, p.cols-1)))
			k++
		}
		if left--; left == 0 {
			first, left = first+p.M, p.N
		}
	}
	return cols
}

// finish writes alpha·acc + beta·C to a row of C from column j, acc being the sums, or made so.
func (p *problem[T]) finish(s *scratch, row, j int, acc []float32) {
	if !simd.Finite(acc) {
		for i, x := range acc {
			if special(x) {
				acc[i] = p.entries(s, row, j+i)
			}
		}
	}
	at, n := row*p.ldc+j, len(acc)
	switch p.ctype {
	case include.F16:
		storeHalf(backend.View[half.F16](p.c)[at:at+n], acc, s.c[:n], p.alpha, p.beta, simd.WidenF16, simd.NarrowF16)
	case include.BF16:
		storeHalf(backend.View[half.BF16](p.c)[at:at+n], acc, s.c[:n], p.alpha, p.beta, simd.WidenBF16, simd.NarrowBF16)
	default:
		simd.Axpby(backend.View[float32](p.c)[at:at+n], acc, p.alpha, p.beta)
	}
}

// entries returns the sum of a row's entries times column j of B. Terms with operands that are not finite decide by
// themselves what it is, so that the order of summation does not matter.
func (p *problem[T]) entries(s *scratch, row, j int) float32 {
	var sum, decided float32
	panel, r := row/p.V, row%p.V
	s.cols = p.decode(s.cols[:0], panel, 0, p.Columns)
	mask := p.mask[panel*p.MaskWords:]
	for k, col := range s.cols {
		v := k*p.V + r
		if mask[v/32]>>(v%32)&1 == 0 {
			continue
		}
		x, y := p.loops.wide(p.values[panel*p.Columns*p.V+v]), p.loops.wide(p.b[int(col)*p.ldb+j])
		if special(x) || special(y) {
			decided += x * y // ±Inf, or NaN, which stays
		} else {
			sum += x * y
		}
	}
	if special(decided) {
		return decided
	}
	return sum
}

func special(x float32) bool { return math.Float32bits(x)&0x7f800000 == 0x7f800000 }

func storeHalf[T half.F16 | half.BF16](c []T, acc, tmp []float32, alpha, beta float32, widen func([]float32, []T), narrow func([]T, []float32)) {
	if beta != 0 {
		widen(tmp, c)
	}
	simd.Axpby(tmp, acc, alpha, beta)
	narrow(c, tmp)
}
