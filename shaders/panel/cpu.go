// The kernel on the CPU: a workgroup is a panel and as many columns as leave their block of B in the
// second-level cache; package simd computes eight rows at a time.

package panel

import (
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	CPUCols  = 128 // columns of C that a workgroup computes
	cpuMaxV  = 16
	cpuChunk = 256 // vectors whose values are widened at a time, those of 16 bits
)

// Group is a workgroup's work: a panel, and the first of its columns of C.
type Group struct {
	First, Last int      // the panel's columns, counted over all
	Rows        []uint32 // their rows of C; those that are not less than C's rows do not exist
	Row         int      // if Rows is nil: the first of consecutive rows
	Column      int      // of C
}

// At returns a record of the work list.
func At(args [][]byte, i uint32) Span {
	w := backend.View[uint32](args[ArgWork])[recordWords*int(i):][:recordWords]
	return Span{w[0], w[1], w[2]}
}

// Locate tells a workgroup, from arguments, parameters and its position, its work on panels of v rows.
type Locate func(args [][]byte, block []byte, at [3]uint32, v int) (w Group, ok bool)

// CPU returns the variants for the CPU, as Vulkan does. A workgroup has CPUCols columns.
func CPU(locate Locate, align uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range []uint32{8, 16} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			consts := append([]spec.Const{spec.Define("V", v), spec.Define("COLS", CPUCols)}, aligned(align)...)
			x := spec.CPU(fmt.Sprintf("cpu_v%d_%v", v, t), t, cpuFunc(int(v), t, locate), consts...)
			vs = append(vs, Shape{Packing: Packing{V: int(v), Align: int(align)}}.sized(x, cpuKind, CPUCols))
		}
	}
	return vs
}

func cpuFunc(v int, t dtype.Type, locate Locate) backend.GroupFunc {
	return host.For(t, cpuGroup(v, locate, host.F16), cpuGroup(v, locate, host.BF16), cpuGroup(v, locate, host.F32))
}

// scratch is the sums of one workgroup, values of vectors as float32, and a row of C on its way from
// and to 16 bits.
type scratch struct {
	acc    [cpuMaxV * CPUCols]float32
	values [cpuMaxV * cpuChunk]float32
	c      [CPUCols]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// panel is a workgroup's work.
type panel[T formats.Value] struct {
	v      int      // rows of a panel
	first  int      // number of the first column
	cols   []uint32 // of each vector
	values []T
	mask   []uint32 // of the whole matrix
	b      []T
	ldb    int
	loops  host.Loops[T]
}

// cpuGroup returns the function of one workgroup, given the inner loops for T.
func cpuGroup[T formats.Value](v int, locate Locate, loops host.Loops[T]) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		w, ok := locate(args, block, at, v)
		if !ok {
			return
		}
		g := spec.View[Params](block)
		p := panel[T]{
			v: v, first: w.First, cols: backend.View[uint32](args[ArgCols])[w.First:w.Last],
			values: backend.View[T](args[ArgValues])[w.First*v : w.Last*v], mask: backend.View[uint32](args[ArgMask]),
			b: backend.View[T](args[ArgB]), ldb: int(g.LDB), loops: loops,
		}
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		j := w.Column
		n := min(CPUCols, int(g.N)-j)
		clear(s.acc[:v*CPUCols])
		padded := host.Pad(n)
		chunk := cpuChunk
		wide, asTheyAre := any(p.values).([]float32)
		if asTheyAre {
			chunk = max(1, len(p.cols))
		}
		for q := 0; q < len(p.cols); q += chunk {
			cols := p.cols[q:min(q+chunk, len(p.cols))]
			if !asTheyAre {
				wide = s.values[:len(cols)*v]
				loops.Widen(wide, p.values[q*v:][:len(cols)*v])
			}
			for r := 0; r < v; r += simd.PanelRows {
				loops.Panel(s.acc[r*CPUCols:], CPUCols, wide[r:], v, cols, p.b[j:], p.ldb, padded)
			}
		}
		out := host.Out{C: args[ArgC], Bias: args[ArgBias], Store: g.Store, LDC: g.LDC, Alpha: g.Alpha, Beta: g.Beta}
		for r := range v {
			row := uint32(w.Row + r)
			if w.Rows != nil {
				row = w.Rows[r]
			}
			if row >= g.Rows {
				break
			}
			acc := s.acc[r*CPUCols:][:n]
			host.Repair(acc, func(i int, add func(x, y float32)) { p.entries(r, j+i, add) })
			out.Row(int(row), j, acc, s.c[:n])
		}
	}
}

// entries calls add with each entry of row r and the element of column j of B that it multiplies.
func (p *panel[T]) entries(r, j int, add func(x, y float32)) {
	for q, col := range p.cols {
		bit := uint64(p.first+q)*uint64(p.v) + uint64(r)
		if p.mask[bit/32]>>(bit%32)&1 != 0 {
			add(p.loops.Wide(p.values[q*p.v+r]), p.loops.Wide(p.b[int(col)*p.ldb+j]))
		}
	}
}
