// The kernel on the CPU: an item is a call of package simd for a tile of columns.

package csr

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is the widest tile of columns: its sums stay in the first-level cache.
const tile = 512

// goShape gives a workgroup some microseconds of work.
func goShape(e *spec.Packed, p spec.Problem) shape {
	const macs = 1 << 16
	columns := max(simd.Width, min(tile, host.Pad(p.N)))
	item := (e.NNZ/int64(max(1, e.Rows)) + 4) * int64(columns)
	return shape{per: int(max(1, min(4096, macs/item))), across: columns / simd.Width, along: 1, columns: columns}
}

// scratch is the sums of one item's tile, and a row of C in f32 on its way from and to 16 bits.
type scratch struct{ acc, c [tile]float32 }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// group returns the function of one workgroup, given the inner loops for T.
func group[T formats.Value](loops host.Loops[T]) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		per, items, pieces, ldp := int(p.per), int(p.items), int(p.pieces), int(p.ldp)
		first := (int(at[0]) + int(at[2])*int(p.width)) * per
		columns := int(p.across) * simd.Width
		j := int(at[1]) * columns
		n := min(columns, int(p.n)-j)
		acc := s.acc[:host.Pad(n)]
		heavy, part := backend.View[uint32](args[3]), backend.View[float32](args[7])
		out := host.Out{C: args[6], Bias: args[5], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		store := func(row int) {
			out.Row(row, j, acc[:n], s.c[:n])
		}
		if p.phase == 1 {
			for i := first; i < min(first+per, items); i++ {
				r := heavy[2*pieces+3*i:]
				sum(acc, part[j:], int(r[1]), int(r[2]), ldp)
				store(int(r[0]))
			}
			return
		}
		rowptr, colidx := backend.View[uint32](args[0]), backend.View[uint32](args[1])
		values, b := backend.View[T](args[2]), backend.View[T](args[4])
		for i := first; i < min(first+per, items); i++ {
			if i < pieces {
				begin, end := heavy[2*i], heavy[2*i+1]
				loops.Row(part[i*ldp+j:][:len(acc)], values[begin:end], colidx[begin:end], b[j:], int(p.ldb))
				continue
			}
			r := i - pieces
			begin, end := rowptr[r], rowptr[r+1]
			if end-begin > p.longest {
				continue // done in pieces
			}
			loops.Row(acc, values[begin:end], colidx[begin:end], b[j:], int(p.ldb))
			store(r)
		}
	}
}

// sum adds up rows first to last of the workspace, at the tile's columns.
func sum(acc, part []float32, first, last, ldp int) {
	copy(acc, part[first*ldp:])
	for i := first + 1; i < last; i++ {
		simd.Axpby(acc, part[i*ldp:][:len(acc)], 1, 1)
	}
}
