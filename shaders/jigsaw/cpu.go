// The kernel on the CPU: a workgroup is a strip of 16 rows and as many columns as leave their block of B
// in the second-level cache. Steps are expanded to dense vectors of 8 rows, those without entries left
// out, and package simd multiplies them.

package jigsaw

import (
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
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
		vs = append(vs, &spec.Variant{
			Name: fmt.Sprintf("cpu_%v", t), In: t, Code: backend.CodeGo, Func: cpuFunc(t),
			Local:  [3]uint32{1, 1, 1},
			Consts: []spec.Const{define("BLOCK", rows), define("COLS", cpuCols)},
			Out:    []dtype.Type{dtype.F16, dtype.BF16},
		})
	}
	return vs
}

func cpuFunc(t dtype.Type) backend.GroupFunc {
	switch t {
	case dtype.F16:
		return cpuGroup(simd.WidenF16, simd.PanelF16, half.F16.Float32)
	case dtype.BF16:
		return cpuGroup(simd.WidenBF16, simd.PanelBF16, half.BF16.Float32)
	}
	return cpuGroup(func(dst, src []float32) { copy(dst, src) }, simd.PanelF32, func(x float32) float32 { return x })
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

// strip is what a workgroup works on: a strip's steps.
type strip[T formats.Value] struct {
	first, steps int      // from the matrix's first step
	cols         []uint32 // of each column of a step
	metadata     []uint32
	values       []T
	mask         []uint32
	b            []T
	ldb          int
	wide         func(T) float32
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](widen func([]float32, []T),
	multiply func(acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int),
	wide func(T) float32) backend.GroupFunc {
	return func(args [][]byte, params []byte, at [3]uint32) {
		blocks := spec.ParamU(params, paramBlocks)
		slot := at[0] + at[2]*spec.ParamU(params, paramWidth)
		if slot >= blocks {
			return
		}
		index := backend.View[uint32](args[0])
		number := index[2*(blocks+1)+slot]
		first, last := int(index[blocks+1+number]), int(index[blocks+2+number])
		p := strip[T]{
			first: first, steps: last - first, cols: backend.View[uint32](args[1]), metadata: backend.View[uint32](args[3]),
			values: backend.View[T](args[4]), mask: backend.View[uint32](args[5]),
			b: backend.View[T](args[6]), ldb: int(spec.ParamU(params, paramLDB)), wide: wide,
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		j := int(at[1]) * cpuCols
		n := min(cpuCols, int(spec.ParamU(params, paramN))-j)
		padded := (n + simd.Width - 1) / simd.Width * simd.Width
		clear(s.acc[:])
		for i := first; i < last; i += cpuSteps {
			s.n = [2]int{}
			for k := i; k < min(i+cpuSteps, last); k++ {
				widen(s.wide[:], p.values[k*stepSlots:][:stepSlots])
				s.expand(p.cols[k*stepCols:][:stepCols], p.metadata[stepCols*(k/2)+2*(k%2):], p.mask[k*stepSlots/32:][:stepSlots/32])
			}
			for h, m := range s.n {
				multiply(s.acc[h*simd.PanelRows*cpuCols:], cpuCols, s.values[h][:m*simd.PanelRows], simd.PanelRows, s.cols[h][:m], p.b[j:], p.ldb, padded)
			}
		}
		row := int(number) * rows
		for r := range min(rows, int(spec.ParamU(params, paramRows))-row) {
			acc := s.acc[r*cpuCols:][:n]
			if !simd.Finite(acc) {
				p.repair(acc, r, j)
			}
			store(args[7], params, row+r, j, acc, s.c[:n])
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

// repair computes the sums of row r from column j that are not finite from its entries alone.
func (p *strip[T]) repair(acc []float32, r, j int) {
	for i, x := range acc {
		if special(x) {
			acc[i] = p.entries(r, j+i)
		}
	}
}

// entries returns the sum of row r's entries times column j of B. Terms with operands that are not
// finite decide by themselves what it is, so that the order of summation does not matter.
func (p *strip[T]) entries(r, j int) float32 {
	var sum, decided float32
	for n := p.first; n < p.first+p.steps; n++ {
		for i := range 16 { // quad i/4, tile i/2%2, entry i%2
			slot := n*stepSlots + 8*(4*(r%8)+i/4) + 4*(i/2%2) + 2*(r/8) + i%2
			if p.mask[slot/32]>>(slot%32)&1 == 0 {
				continue
			}
			word := p.metadata[stepCols*(n/2)+4*(r%8)+2*(n%2)+i/2%2]
			k := 16*(i/2%2) + 4*(i/4) + int(word>>(16*(r/8)+4*(i/4)+2*(i%2))&3)
			x, y := p.wide(p.values[slot]), p.wide(p.b[int(p.cols[n*stepCols+k])*p.ldb+j])
			if special(x) || special(y) {
				decided += x * y // ±Inf, or NaN, which stays
			} else {
				sum += x * y
			}
		}
	}
	if special(decided) {
		return decided
	}
	return sum
}

func special(x float32) bool { return math.Float32bits(x)&0x7f800000 == 0x7f800000 }

// store writes alpha·acc + beta·C to row r of C from column j. tmp is as long as acc.
func store(c []byte, params []byte, r, j int, acc, tmp []float32) {
	at, n := r*int(spec.ParamU(params, paramLDC))+j, len(acc)
	alpha, beta := spec.ParamF(params, paramAlpha), spec.ParamF(params, paramBeta)
	switch spec.ParamU(params, paramCType) {
	case include.F16:
		storeHalf(backend.View[half.F16](c)[at:at+n], acc, tmp, alpha, beta)
	case include.BF16:
		storeHalf(backend.View[half.BF16](c)[at:at+n], acc, tmp, alpha, beta)
	default:
		simd.Axpby(backend.View[float32](c)[at:at+n], acc, alpha, beta)
	}
}

func storeHalf[T half.F16 | half.BF16](c []T, acc, tmp []float32, alpha, beta float32) {
	if beta != 0 {
		half.Decode(tmp, c)
	}
	simd.Axpby(tmp, acc, alpha, beta)
	half.Encode(c, tmp)
}
