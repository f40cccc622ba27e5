// The kernel on the CPU: package simd computes single rows, or eight rows of a panel at a time.

package nm

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
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
			vs = append(vs, of(x.v, plainPack).sized(spec.CPU(fmt.Sprintf("cpu_v%d_%v", x.v, t), t, cpuFunc(x.v == 1, t),
				spec.Define("V", x.v), spec.Define("PACK", plainPack), spec.Define("ROWS", x.rows),
				spec.Define("COLS", x.cols)), cpuKind, x.rows, x.cols))
		}
	}
	return vs
}

// cpuFunc returns the function of a workgroup, of single entries or of taller units.
func cpuFunc(single bool, t dtype.Type) backend.GroupFunc {
	return host.For(t, cpuGroup(single, host.F16), cpuGroup(single, host.BF16), cpuGroup(single, host.F32))
}

// operands are the parameter block and the arrays.
type operands[T formats.Value] struct {
	params
	nm.Pattern
	nm.Shape
	loops                   host.Loops[T]
	rows, cols, n, ldb, ldc int
	values                  []T
	places, mask            []uint32
	b                       []T
	bias, c                 []byte
}

func read[T formats.Value](loops host.Loops[T], args [][]byte, p params) operands[T] {
	x := operands[T]{
		params: p, Pattern: nm.Pattern{N: int(p.keep), M: int(p.every), V: int(p.tall), W: 1 << p.wide}, loops: loops,
		rows: int(p.rows), cols: int(p.cols), n: int(p.n), ldb: int(p.ldb), ldc: int(p.ldc),
		values: backend.View[T](args[0]), places: backend.View[uint32](args[1]), mask: backend.View[uint32](args[2]),
		b: backend.View[T](args[3]), bias: args[4], c: args[5],
	}
	x.Shape, _ = x.Pattern.Shape(x.rows, x.cols) // which launch has made already
	return x
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
func cpuGroup[T formats.Value](single bool, loops host.Loops[T]) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := read(loops, args, spec.View[params](block))
		item := int(at[0] + at[2]*p.width)
		if item >= int(p.blocks) {
			return
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		if !single {
			for row, end := item*cpuTallRows, min(p.rows, (item+1)*cpuTallRows); row < end; {
				rows := min(cpuTallRows-row%cpuTallRows, p.V-row%p.V)
				p.tall(s, row, rows, int(at[1])*cpuTallCols)
				row += rows
			}
			return
		}
		for row := item * cpuRows; row < min(p.rows, item*cpuRows+cpuRows); row++ {
			p.single(s, row, int(at[1])*cpuCols)
		}
	}
}

// single multiplies a row by the columns from j.
func (p *operands[T]) single(s *scratch, row, j int) {
	n := min(cpuCols, p.n-j)
	acc := s.wide[:host.Pad(n)]
	s.cols = p.decode(s.cols[:0], row, 0, p.Columns)
	p.loops.Row(acc, p.values[row*p.Columns:][:p.Columns], s.cols, p.b[j:], p.ldb)
	p.finish(s, row, j, acc[:n])
}

// tall multiplies rows of a panel, a multiple of eight, by the columns from j.
func (p *operands[T]) tall(s *scratch, row, rows, j int) {
	n := min(cpuTallCols, p.n-j)
	padded := host.Pad(n)
	panel := row / p.V
	clear(s.acc[:rows*cpuTallCols])
	for k := 0; k < p.Columns; k += cpuChunk {
		m := min(cpuChunk, p.Columns-k)
		s.cols = p.decode(s.cols[:0], panel, k, k+m)
		for i := range m {
			from := (panel*p.Columns+k+i)*p.V + row%p.V
			p.loops.Widen(s.values[i*rows:][:rows], p.values[from:from+rows])
		}
		for r := 0; r < rows; r += simd.PanelRows {
			p.loops.Panel(s.acc[r*cpuTallCols:], cpuTallCols, s.values[r:m*rows], rows, s.cols, p.b[j:], p.ldb, padded)
		}
	}
	for r := range min(rows, p.rows-row) {
		p.finish(s, row+r, j, s.acc[r*cpuTallCols:][:n])
	}
}

// decode appends the columns of condensed columns from to end of a panel. Those past the matrix, whose values are 0,
// become its last.
func (p *operands[T]) decode(cols []uint32, panel, from, end int) []uint32 {
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
func (p *operands[T]) finish(s *scratch, row, j int, acc []float32) {
	host.Repair(acc, func(i int, add func(x, y float32)) { p.entries(s, row, j+i, add) })
	out := host.Out{C: p.c, Bias: p.bias, Store: p.store, LDC: uint32(p.ldc), Alpha: p.alpha, Beta: p.beta}
	out.Row(row, j, acc, s.c[:len(acc)])
}

// entries calls add with each entry of a row and the element of column j of B that it multiplies.
func (p *operands[T]) entries(s *scratch, row, j int, add func(x, y float32)) {
	panel, r := row/p.V, row%p.V
	s.cols = p.decode(s.cols[:0], panel, 0, p.Columns)
	mask := p.mask[panel*p.MaskWords:]
	for k, col := range s.cols {
		v := k*p.V + r
		if mask[v/32]>>(v%32)&1 != 0 {
			add(p.loops.Wide(p.values[panel*p.Columns*p.V+v]), p.loops.Wide(p.b[int(col)*p.ldb+j]))
		}
	}
}
