// The kernel on the CPU: a workgroup is a panel and as many columns as leave their block of B in the
// second-level cache; package simd computes eight rows at a time.

package panel

import (
	"fmt"
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	CPUCols  = 128 // columns of C that a workgroup computes
	cpuMaxV  = 16
	cpuChunk = 256 // vectors whose values are widened at a time
)

// Work is what a workgroup does: a panel, and the first of its columns of C.
type Work struct {
	First, Last int      // the panel's columns, counted over all
	Rows        []uint32 // their rows of C; those that are not less than C's rows do not exist
	Row         int      // if Rows is nil: the first of consecutive rows
	Column      int      // of C
}

// Locate tells a workgroup, from arguments, parameters and its position, its work on panels of v rows.
type Locate func(args [][]byte, params []byte, at [3]uint32, v int) (w Work, ok bool)

// CPU returns the variants for the CPU, with constants of the kernel's own. A workgroup has CPUCols columns.
func CPU(locate Locate, own ...spec.Const) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, &spec.Variant{
				Name: fmt.Sprintf("cpu_v%d_%v", v, t), In: t, Code: backend.CodeGo, Func: cpuFunc(int(v), t, locate),
				Local:  [3]uint32{1, 1, 1},
				Consts: append([]spec.Const{Define("V", v), Define("COLS", CPUCols)}, own...),
				Out:    []dtype.Type{dtype.F16, dtype.BF16},
			})
		}
	}
	return vs
}

func cpuFunc(v int, t dtype.Type, locate Locate) backend.GroupFunc {
	switch t {
	case dtype.F16:
		return cpuGroup(v, locate, simd.WidenF16, simd.PanelF16, half.F16.Float32)
	case dtype.BF16:
		return cpuGroup(v, locate, simd.WidenBF16, simd.PanelBF16, half.BF16.Float32)
	}
	return cpuGroup(v, locate, func(dst, src []float32) { copy(dst, src) }, simd.PanelF32, func(x float32) float32 { return x })
}

// scratch is the sums of one workgroup, values of vectors as float32, and a row of C on its way from
// and to 16 bits.
type scratch struct {
	acc    [cpuMaxV * CPUCols]float32
	values [cpuMaxV * cpuChunk]float32
	c      [CPUCols]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// panel is what a workgroup works on.
type panel[T formats.Value] struct {
	v      int      // rows of a panel
	first  int      // number of the first column
	cols   []uint32 // of each vector
	values []T
	mask   []uint32 // of the whole matrix
	b      []T
	ldb    int
	wide   func(T) float32
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](v int, locate Locate, widen func([]float32, []T),
	multiply func(acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int),
	wide func(T) float32) backend.GroupFunc {
	return func(args [][]byte, params []byte, at [3]uint32) {
		w, ok := locate(args, params, at, v)
		if !ok {
			return
		}
		p := panel[T]{
			v: v, first: w.First, cols: backend.View[uint32](args[ArgCols])[w.First:w.Last],
			values: backend.View[T](args[ArgValues])[w.First*v : w.Last*v], mask: backend.View[uint32](args[ArgMask]),
			b: backend.View[T](args[ArgB]), ldb: int(spec.ParamU(params, ParamLDB)), wide: wide,
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		j := w.Column
		n := min(CPUCols, int(spec.ParamU(params, ParamN))-j)
		clear(s.acc[:v*CPUCols])
		padded := (n + simd.Width - 1) / simd.Width * simd.Width
		for q := 0; q < len(p.cols); q += cpuChunk {
			cols := p.cols[q:min(q+cpuChunk, len(p.cols))]
			widen(s.values[:len(cols)*v], p.values[q*v:][:len(cols)*v])
			for r := 0; r < v; r += simd.PanelRows {
				multiply(s.acc[r*CPUCols:], CPUCols, s.values[r:], v, cols, p.b[j:], p.ldb, padded)
			}
		}
		rows := int(spec.ParamU(params, ParamRows))
		for r := range v {
			row := w.Row + r
			if w.Rows != nil {
				row = int(w.Rows[r])
			}
			if row >= rows {
				break
			}
			acc := s.acc[r*CPUCols:][:n]
			if !simd.Finite(acc) {
				p.repair(acc, r, j)
			}
			store(args[ArgC], params, row, j, acc, s.c[:n])
		}
	}
}

// repair computes the sums of row r from column j that are not finite from its entries alone.
func (p *panel[T]) repair(acc []float32, r, j int) {
	for i, x := range acc {
		if special(x) {
			acc[i] = p.entries(r, j+i)
		}
	}
}

// entries returns the sum of row r's entries times column j of B. Terms with operands that are not
// finite decide by themselves what it is, so that the order of summation does not matter.
func (p *panel[T]) entries(r, j int) float32 {
	var sum, decided float32
	for q, col := range p.cols {
		bit := uint64(p.first+q)*uint64(p.v) + uint64(r)
		if p.mask[bit/32]>>(bit%32)&1 == 0 {
			continue
		}
		x, y := p.wide(p.values[q*p.v+r]), p.wide(p.b[int(col)*p.ldb+j])
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

// store writes alpha·acc + beta·C to row r of C from column j. tmp is as long as acc.
func store(c []byte, params []byte, r, j int, acc, tmp []float32) {
	at, n := r*int(spec.ParamU(params, ParamLDC))+j, len(acc)
	alpha, beta := spec.ParamF(params, ParamAlpha), spec.ParamF(params, ParamBeta)
	switch spec.ParamU(params, ParamCType) {
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
