// The kernel on the CPU: package simd computes single rows from lists of their entries.

package sparse24r

import (
	"math/bits"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuRows = 8   // rows of a workgroup
	cpuCols = 512 // columns
)

func cpuVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		f := host.For(t, cpuGroup(host.F16), cpuGroup(host.BF16), cpuGroup(host.F32))
		vs = append(vs, nm.Plain(spec.CPU("cpu_"+t.String(), t, f,
			spec.Define("PACK", nm.PlainPack), spec.Define("ROWS", cpuRows), spec.Define("COLS", cpuCols)), cpuKind, cpuRows,
			cpuCols))
	}
	return vs
}

// operands are the arrays and numbers that a workgroup reads.
type operands[T formats.Value] struct {
	nm.Sizes
	values, remainderValues []T
	places, mask, remainder []uint32
	panels                  int
}

// scratch is a workgroup's memory: a row's entries, sums, and a row of C on its way from and to 16 bits.
type scratch[T formats.Value] struct {
	values []T
	cols   []uint32
	acc, c [cpuCols]float32
}

// cpuGroup returns the function of one workgroup.
func cpuGroup[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	scratches := sync.Pool{New: func() any { return new(scratch[T]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		x := operands[T]{
			Sizes: p.Sizes(), values: backend.View[T](args[0]), places: backend.View[uint32](args[1]),
			mask:      backend.View[uint32](args[2]),
			remainder: backend.View[uint32](args[argRemainder]), panels: int(p.panels),
		}
		x.remainderValues, x.remainder = x.values[int(x.remainder[0])*step:], x.remainder[1:]
		b, bias, c := backend.View[T](args[argB]), args[argB+1], args[argB+2]
		item := int(at[0] + at[2]*uint32(x.Width))
		s := scratches.Get().(*scratch[T])
		defer scratches.Put(s)
		out := host.Out{C: c, Bias: bias, Store: x.Store, LDC: uint32(x.LDC), Alpha: x.Alpha, Beta: x.Beta}
		j := int(at[1]) * cpuCols
		n := min(cpuCols, x.N-j)
		for row := item * cpuRows; row < min(x.Rows, item*cpuRows+cpuRows); row++ {
			x.entries(s, row)
			loops.Row(s.acc[:host.Pad(n)], s.values, s.cols, b[j:], x.LDB)
			out.Row(row, j, s.acc[:n], s.c[:n])
		}
	}
}

// entries lists a row's entries.
func (x *operands[T]) entries(s *scratch[T], row int) {
	s.values, s.cols = s.values[:0], s.cols[:0]
	slots := 2 * x.Groups
	words := (slots + 31) / 32 // of the mask
	places := x.places[row*((2*slots+31)/32):]
	for i, w := range x.mask[row*words : (row+1)*words] {
		for ; w != 0; w &= w - 1 {
			slot := i*32 + bits.TrailingZeros32(w)
			s.values = append(s.values, x.values[row*slots+slot])
			s.cols = append(s.cols, uint32(slot/2*4)+places[slot/16]>>(slot%16*2)&3)
		}
	}
	panel, r := row/sparse24r.PanelRows, row%sparse24r.PanelRows
	count := int(x.remainder[x.panels])
	cols := x.remainder[x.panels+1:]
	mask := cols[count:]
	for q := int(x.remainder[panel]); q < int(x.remainder[panel+1]); q++ {
		if mask[q/2]>>(q%2*16+r)&1 != 0 {
			s.values = append(s.values, x.remainderValues[q*sparse24r.PanelRows+r])
			s.cols = append(s.cols, cols[q])
		}
	}
}
