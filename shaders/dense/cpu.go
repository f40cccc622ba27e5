// The kernel on the CPU: a workgroup is a block of rows and columns (see package host).

package dense

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// scratch is a block of the product, and a panel of the left operand.
type scratch[T formats.Value] struct {
	block host.Block[T]
	left  [host.BlockDepth * simd.VectorRows]float32
}

// operand is L as its rows, or R as its columns. Line i is row or column i.
type operand[T formats.Value] struct {
	x     []T
	ld    int
	along bool // K-major: elements of a line are neighbours in memory; else MN-major
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
	r = operand[T]{backend.View[T](args[2]), int(p.ldb), p.order&bBit != 0}
	if p.order&cBit != 0 {
		return r, l
	}
	return l, r
}

// group returns the function of one workgroup, given the inner loops for T.
func group[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	pool := sync.Pool{New: func() any { return new(scratch[T]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		tile := at[0] + at[2]*p.width
		row, col := int(tile/p.across)*host.BlockRows, int(tile%p.across)*host.BlockCols
		if row >= int(p.rows) {
			return
		}
		rows, n := min(host.BlockRows, int(p.rows)-row), min(host.BlockCols, int(p.n)-col)
		l, r := operands[T](args, &p)
		s := pool.Get().(*scratch[T])
		defer pool.Put(s)
		s.multiply(loops, l, r, row, col, rows, n, int(p.cols))
		out := host.Out{C: args[4], Bias: args[3], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		for i := range rows {
			sums, tmp := s.block.Row(i)
			host.Repair(sums, func(j int, add func(x, y float32)) {
				for k := range int(p.cols) {
					if !isEntry(&p, args[1], row+i, col+j, k) {
						continue
					}
					add(loops.Wide(l.x[l.index(row+i, k)]), loops.Wide(r.x[r.index(col+j, k)]))
				}
			})
			out.Row(row+i, col, sums, tmp)
		}
	}
}

// isEntry reports whether the element of A that output (i, j) needs at k is an entry.
func isEntry(p *params, stored []byte, i, j, k int) bool {
	if p.words == 0 {
		return true
	}
	if p.order&cBit != 0 {
		i = j
	}
	return backend.View[uint32](stored)[i*int(p.words)+k/32]>>(k%32)&1 != 0
}

// multiply computes the sums of `rows` rows of L from row on, and n columns of R from col on, over places values of k.
func (s *scratch[T]) multiply(loops host.Loops[T], l, r operand[T], row, col, rows, n, places int) {
	s.block.Start(loops, n)
	for k := 0; k < places; k += host.BlockDepth {
		count := min(host.BlockDepth, places-k)
		if from := r.x[r.index(col, k):]; r.along {
			s.block.RightTransposed(from, r.ld, count)
		} else {
			s.block.Right(from, r.ld, count)
		}
		left := s.left[:count*simd.VectorRows]
		for i := 0; i < rows; i += simd.VectorRows {
			lines := min(simd.VectorRows, rows-i)
			if from := l.x[l.index(row+i, k):]; l.along {
				s.block.Left(left, from, l.ld, lines, count)
			} else {
				clear(left)
				loops.Lines(left, simd.VectorRows, from, l.ld, count, lines)
			}
			s.block.Add(i/simd.VectorRows, left)
		}
	}
}
