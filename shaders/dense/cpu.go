// The kernel on the CPU: a workgroup is a tile of 64 rows; package simd computes eight at a time.

package dense

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	cpuRows = 64
	cpuCols = 128
	cpuStep = 256 // places k that are multiplied at a time
)

// places are the numbers of a step's places.
var places = func() (p [cpuStep]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// scratch is the sums of one workgroup; of a step, eight rows of the left operand, by places, and the right one, if that does
// not lie so; and a row of C on its way from and to 16 bits.
type scratch struct {
	acc   [cpuRows * cpuCols]float32
	left  [cpuStep * simd.PanelRows]float32
	right [cpuStep * cpuCols]float32
	line  [cpuStep]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// operand is L by its rows or R by its columns: line i has as many elements as the sum has places.
type operand[T formats.Value] struct {
	x     []T
	ld    int
	along bool // a line's elements lie side by side; else its neighbours' at the same place do
}

func (o operand[T]) index(i, k int) int {
	if o.along {
		return i*o.ld + k
	}
	return k*o.ld + i
}

// operands returns L and R: A and B, or Bᵀ and Aᵀ.
func operands[T formats.Value](args [][]byte, p *params) (l, r operand[T]) {
	l = operand[T]{backend.View[T](args[0]), int(p.lda), true}
	r = operand[T]{backend.View[T](args[1]), int(p.ldb), p.order&bBit != 0}
	if p.order&cBit != 0 {
		return r, l
	}
	return l, r
}

// group returns the function of one workgroup, given the inner loops for T.
func group[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		tile := at[0] + at[2]*p.width
		row, col := int(tile/p.across)*cpuRows, int(tile%p.across)*cpuCols
		if row >= int(p.rows) {
			return
		}
		rows, n := min(cpuRows, int(p.rows)-row), min(cpuCols, int(p.n)-col)
		l, r := operands[T](args, &p)
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		clear(s.acc[:host.Pad(rows)*cpuCols])
		for k := 0; k < int(p.cols); k += cpuStep {
			count := min(cpuStep, int(p.cols)-k)
			cols := places[:count]
			if r.along {
				gather(s.right[:], cpuCols, s.line[:], r, col, n, k, count, loops)
			}
			for i := 0; i < rows; i += simd.PanelRows {
				gather(s.left[:], simd.PanelRows, s.line[:], l, row+i, min(simd.PanelRows, rows-i), k, count, loops)
				if acc := s.acc[i*cpuCols:]; r.along {
					host.F32.Panel(acc, cpuCols, s.left[:], simd.PanelRows, cols, s.right[:], cpuCols, host.Pad(n))
				} else {
					loops.Panel(acc, cpuCols, s.left[:], simd.PanelRows, cols, r.x[k*r.ld+col:], r.ld, host.Pad(n))
				}
			}
		}
		out := host.Out{C: args[3], Bias: args[2], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		for i := range rows {
			acc := s.acc[i*cpuCols:][:n]
			host.Repair(acc, func(j int, add func(x, y float32)) {
				for k := range int(p.cols) {
					add(loops.Wide(l.x[l.index(row+i, k)]), loops.Wide(r.x[r.index(col+j, k)]))
				}
			})
			out.Row(row+i, col, acc, s.line[:n])
		}
	}
}

// gather brings count places, from k on, of so many lines of an operand, from line i on, to dst by places, ld apart. What
// lies between the lines and the next multiple of eight becomes 0.
func gather[T formats.Value](dst []float32, ld int, tmp []float32, o operand[T], i, lines, k, count int, loops host.Loops[T]) {
	padded := host.Pad(lines)
	if !o.along {
		for q := range count {
			to := dst[q*ld:][:padded]
			loops.Widen(to[:lines], o.x[(k+q)*o.ld+i:][:lines])
			clear(to[lines:])
		}
		return
	}
	for line := range padded {
		if line >= lines {
			for q := range count {
				dst[q*ld+line] = 0
			}
			continue
		}
		loops.Widen(tmp[:count], o.x[(i+line)*o.ld+k:][:count])
		for q, x := range tmp[:count] {
			dst[q*ld+line] = x
		}
	}
}
