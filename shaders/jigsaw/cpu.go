// The kernel on the CPU: a workgroup is a strip of 16 rows and as many columns as leave their block of B
// in the second-level cache. Steps are expanded to dense vectors of 8 rows, those without entries left
// out, and package simd multiplies them.

package jigsaw

import (
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuCols  = 256 // columns of a workgroup
	cpuSteps = 16  // steps expanded at a time

	stepCols  = jigsaw.StepCols
	stepSlots = jigsaw.StepSlots
	rows      = jigsaw.StripRows
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		f := host.For(t, cpuGroup(host.F16), cpuGroup(host.BF16), cpuGroup(host.F32))
		v := spec.CPU("cpu_"+t.String(), t, f, spec.Define("BLOCK", rows), spec.Define("COLS", cpuCols))
		vs = append(vs, packing{block: rows}.sized(v, cpuKind, cpuCols))
	}
	return vs
}

// scratch is the sums of one workgroup, vectors of its upper and lower 8 rows, and a row of C on its way
// from and to 16 bits.
type scratch struct {
	acc    [rows * cpuCols]float32
	wide   [stepSlots]float32
	dense  [2][stepCols * simd.PanelRows]float32
	values [2][cpuSteps * stepCols * simd.PanelRows]float32
	cols   [2][cpuSteps * stepCols]uint32
	n      [2]int
	c      [cpuCols]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// strip is a workgroup's work: a strip's steps.
type strip[T formats.Value] struct {
	first, steps int      // from the matrix's first step
	cols         []uint32 // of each column of a step
	metadata     []uint32
	values       []T
	mask         []uint32
	b            []T
	ldb          int
	loops        host.Loops[T]
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		g := spec.View[params](block)
		slot := at[0] + at[2]*g.width
		if slot >= g.blocks {
			return
		}
		index := backend.View[uint32](args[0])
		number := index[2*(g.blocks+1)+slot]
		first, last := int(index[g.blocks+1+number]), int(index[g.blocks+2+number])
		p := strip[T]{
			first: first, steps: last - first, cols: backend.View[uint32](args[1]), metadata: backend.View[uint32](args[2]),
			values: backend.View[T](args[3]), mask: backend.View[uint32](args[4]),
			b: backend.View[T](args[5]), ldb: int(g.ldb), loops: loops,
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		j := int(at[1]) * cpuCols
		n := min(cpuCols, int(g.n)-j)
		padded := host.Pad(n)
		clear(s.acc[:])
		for i := first; i < last; i += cpuSteps {
			s.n = [2]int{}
			for k := i; k < min(i+cpuSteps, last); k++ {
				loops.Widen(s.wide[:], p.values[k*stepSlots:][:stepSlots])
				s.expand(p.cols[k*stepCols:][:stepCols], p.metadata[stepCols*(k/2)+2*(k%2):],
					p.mask[k*stepSlots/32:][:stepSlots/32])
			}
			for h, m := range s.n {
				loops.Panel(s.acc[h*simd.PanelRows*cpuCols:], cpuCols, s.values[h][:m*simd.PanelRows], simd.PanelRows,
					s.cols[h][:m], p.b[j:], p.ldb, padded)
			}
		}
		row := int(number) * rows
		out := host.Out{C: args[7], Bias: args[6], Store: g.store, LDC: g.ldc, Alpha: g.alpha, Beta: g.beta}
		for r := range min(rows, int(g.rows)-row) {
			acc := s.acc[r*cpuCols:][:n]
			host.Repair(acc, func(i int, add func(x, y float32)) { p.entries(r, j+i, add) })
			out.Row(row+r, j, acc, s.c[:n])
		}
	}
}

// expand appends the vectors of a step, whose values are in s.wide, that hold entries. Its metadata are the
// words 4·g and 4·g+1 of meta, for the row g.
func (s *scratch) expand(cols, meta, mask []uint32) {
	var used [2]uint32
	for lane := range 32 {
		g, q := lane/4, lane%4
		stored := mask[lane/4] >> (8 * q)
		in := (*[8]float32)(s.wide[8*lane:])
		for i := range 4 { // tile i/2, half i%2
			word := meta[4*g+i/2] >> (16*(i%2) + 4*q)
			k := 16*(i/2) + 4*q
			k0, k1 := k+int(word&3), k+int(word>>2&3)
			d := s.dense[i%2][8*k+g:]
			d[0], d[8], d[16], d[24] = 0, 0, 0, 0
			d[8*(k0-k)], d[8*(k1-k)] = in[2*i], in[2*i+1]
			used[i%2] |= stored>>(2*i)&1<<k0 | stored>>(2*i+1)&1<<k1
		}
	}
	for h, bitset := range used {
		for ; bitset != 0; bitset &= bitset - 1 {
			k := bits.TrailingZeros32(bitset)
			to := s.n[h]
			s.cols[h][to] = cols[k]
			*(*[simd.PanelRows]float32)(s.values[h][to*simd.PanelRows:]) = [simd.PanelRows]float32(s.dense[h][k*simd.PanelRows:])
			s.n[h]++
		}
	}
}

// entries calls add with each entry of row r and the element of column j of B that it multiplies.
func (p *strip[T]) entries(r, j int, add func(x, y float32)) {
	for n := p.first; n < p.first+p.steps; n++ {
		for i := range 16 { // quad i/4, tile i/2%2, entry i%2
			slot := n*stepSlots + 8*(4*(r%8)+i/4) + 4*(i/2%2) + 2*(r/8) + i%2
			if p.mask[slot/32]>>(slot%32)&1 == 0 {
				continue
			}
			word := p.metadata[stepCols*(n/2)+4*(r%8)+2*(n%2)+i/2%2]
			k := 16*(i/2%2) + 4*(i/4) + int(word>>(16*(r/8)+4*(i/4)+2*(i%2))&3)
			add(p.loops.Wide(p.values[slot]), p.loops.Wide(p.b[int(p.cols[n*stepCols+k])*p.ldb+j]))
		}
	}
}
