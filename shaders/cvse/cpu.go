// The kernel on the CPU: a workgroup is a panel and as many columns as leave their block of B in the
// second-level cache; package simd computes eight rows at a time.

package cvse

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
	cpuCols  = 128 // columns of a workgroup
	cpuMaxV  = 16
	cpuChunk = 256 // vectors whose values are widened at a time
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			vs = append(vs, &spec.Variant{
				Name: fmt.Sprintf("cpu_v%d_%v", v, t), In: t, Code: backend.CodeGo, Func: cpuFunc(int(v), t),
				Local:  [3]uint32{1, 1, 1},
				Consts: []spec.Const{{Name: "V", ID: -1, Value: v}, {Name: "ALIGN", ID: -1, Value: 1}, {Name: "COLS", ID: -1, Value: cpuCols}},
				Out:    []dtype.Type{dtype.F16, dtype.BF16},
			})
		}
	}
	return vs
}

func cpuFunc(v int, t dtype.Type) backend.GroupFunc {
	switch t {
	case dtype.F16:
		return cpuGroup(v, simd.WidenF16, simd.PanelF16, half.F16.Float32)
	case dtype.BF16:
		return cpuGroup(v, simd.WidenBF16, simd.PanelBF16, half.BF16.Float32)
	}
	return cpuGroup(v, func(dst, src []float32) { copy(dst, src) }, simd.PanelF32, func(x float32) float32 { return x })
}

// scratch is the sums of one workgroup, values of vectors as float32, and a row of C on its way from
// and to 16 bits.
type scratch struct {
	acc    [cpuMaxV * cpuCols]float32
	values [cpuMaxV * cpuChunk]float32
	c      [cpuCols]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// panel is what a workgroup works on.
type panel[T formats.Value] struct {
	v      int      // rows of a panel
	first  int      // number of the first vector
	cols   []uint32 // of each vector
	values []T
	mask   []uint32 // of the whole matrix
	b      []T
	ldb    int
	wide   func(T) float32
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](v int, widen func([]float32, []T),
	multiply func(acc []float32, lda int, vals []float32, v int, cols []uint32, b []T, ldb, n int),
	wide func(T) float32) backend.GroupFunc {
	return func(args [][]byte, params []byte, at [3]uint32) {
		panels := spec.ParamU(params, paramPanels)
		slot := at[0] + at[2]*spec.ParamU(params, paramWidth)
		if slot >= panels {
			return
		}
		number := int(backend.View[uint32](args[4])[slot])
		ptr := backend.View[uint32](args[0])
		first, last := int(ptr[number]), int(ptr[number+1])
		p := panel[T]{
			v: v, first: first, cols: backend.View[uint32](args[1])[first:last],
			values: backend.View[T](args[2])[first*v : last*v], mask: backend.View[uint32](args[3]),
			b: backend.View[T](args[5]), ldb: int(spec.ParamU(params, paramLDB)), wide: wide,
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		j := int(at[1]) * cpuCols
		n := min(cpuCols, int(spec.ParamU(params, paramN))-j)
		clear(s.acc[:v*cpuCols])
		padded := (n + simd.Width - 1) / simd.Width * simd.Width
		for q := 0; q < len(p.cols); q += cpuChunk {
			cols := p.cols[q:min(q+cpuChunk, len(p.cols))]
			widen(s.values[:len(cols)*v], p.values[q*v:][:len(cols)*v])
			for r := 0; r < v; r += simd.PanelRows {
				multiply(s.acc[r*cpuCols:], cpuCols, s.values[r:], v, cols, p.b[j:], p.ldb, padded)
			}
		}
		for r := range min(v, int(spec.ParamU(params, paramRows))-number*v) {
			acc := s.acc[r*cpuCols:][:n]
			if !simd.Finite(acc) {
				p.repair(acc, r, j)
			}
			store(args[6], params, number*v+r, j, acc, s.c[:n])
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
