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

// real is what products are added up in.
type real interface{ float32 | float64 }

// arithmetic is what the kernel does with sums of S of elements of T.
type arithmetic[T formats.Value, S real] struct {
	row func(acc []S, vals []T, cols []uint32, b []T, ldb int)
	add func(acc, x []S) // acc += x
	// store writes a row of C from column j on; tmp is scratch as long as acc.
	store func(p *params, block []byte, args [][]byte, row, j int, acc, tmp []S)
}

// narrow is the arithmetic whose sums are f32, with the row loop for T.
func narrow[T formats.Value](loops host.Loops[T]) arithmetic[T, float32] {
	return arithmetic[T, float32]{
		row: loops.Row,
		add: func(acc, x []float32) { simd.Axpby(acc, x, 1, 1) },
		store: func(p *params, _ []byte, args [][]byte, row, j int, acc, tmp []float32) {
			out := host.Out{C: args[6], Bias: args[5], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
			out.Row(row, j, acc, tmp)
		},
	}
}

// double is the arithmetic of f64.
var double = arithmetic[float64, float64]{
	row: simd.RowF64,
	add: func(acc, x []float64) { host.Axpby64(acc, x, 1, 1) },
	store: func(p *params, block []byte, args [][]byte, row, j int, acc, _ []float64) {
		out := host.Out64{C: args[6], Bias: args[5], Store: p.store, LDC: p.ldc}
		out.Alpha, out.Beta = spec.Scalars(block)
		out.Row(row, j, acc)
	},
}

// scratch is the sums of one item's tile, and a row of C as S on its way from and to 16 bits.
type scratch[S real] struct {
	p      params // here, since arithmetic is called through pointers
	acc, c [tile]S
}

// group returns the function of one workgroup.
func group[T formats.Value, S real](do arithmetic[T, S]) backend.GroupFunc {
	scratches := sync.Pool{New: func() any { return new(scratch[S]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		s := scratches.Get().(*scratch[S])
		defer scratches.Put(s)
		s.p = spec.View[params](block)
		p := &s.p
		per, items, pieces, ldp := int(p.per), int(p.items), int(p.pieces), int(p.ldp)
		first := (int(at[0]) + int(at[2])*int(p.width)) * per
		columns := int(p.across) * simd.Width
		j := int(at[1]) * columns
		n := min(columns, int(p.n)-j)
		acc := s.acc[:host.Pad(n)]
		heavy, part := backend.View[uint32](args[3]), backend.View[S](args[7])
		store := func(row int) { do.store(p, block, args, row, j, acc[:n], s.c[:n]) }
		if p.phase == 1 {
			for i := first; i < min(first+per, items); i++ {
				r := heavy[2*pieces+3*i:]
				copy(acc, part[j+int(r[1])*ldp:])
				for x := int(r[1]) + 1; x < int(r[2]); x++ {
					do.add(acc, part[j+x*ldp:][:len(acc)])
				}
				store(int(r[0]))
			}
			return
		}
		rowptr, colidx := backend.View[uint32](args[0]), backend.View[uint32](args[1])
		values, b := backend.View[T](args[2]), backend.View[T](args[4])
		for i := first; i < min(first+per, items); i++ {
			if i < pieces {
				begin, end := heavy[2*i], heavy[2*i+1]
				do.row(part[i*ldp+j:][:len(acc)], values[begin:end], colidx[begin:end], b[j:], int(p.ldb))
				continue
			}
			r := i - pieces
			begin, end := rowptr[r], rowptr[r+1]
			if end-begin > p.longest {
				continue // done in pieces
			}
			do.row(acc, values[begin:end], colidx[begin:end], b[j:], int(p.ldb))
			store(r)
		}
	}
}
