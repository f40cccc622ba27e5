// The kernel on the CPU: an item is a call of package simd for a tile of columns.

package csr

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// tile is the widest tile of columns: its sums stay in the first-level cache.
const tile = 512

// goShape gives a workgroup some microseconds of work.
func goShape(e *spec.Packed, p spec.Problem) shape {
	const macs = 1 << 16
	columns := max(simd.Width, min(tile, (p.N+simd.Width-1)/simd.Width*simd.Width))
	item := (e.NNZ/int64(max(1, e.Rows)) + 4) * int64(columns)
	return shape{per: int(max(1, min(4096, macs/item))), across: columns / simd.Width, along: 1, columns: columns}
}

// params is the parameter block, read.
type params struct {
	phase, m, n, ldb, ldc, ldp, pieces, items, width, per, longest, across, along, ctype int
	alpha, beta                                                                          float32
}

func readParams(b []byte) (p params) {
	fields := [...]*int{
		&p.phase, &p.m, &p.n, &p.ldb, &p.ldc, &p.ldp, &p.pieces, &p.items, &p.width, &p.per, &p.longest,
		&p.across, &p.along, &p.ctype,
	}
	for i, f := range fields {
		*f = int(spec.ParamU(b, i))
	}
	p.alpha, p.beta = spec.ParamF(b, len(fields)), spec.ParamF(b, len(fields)+1)
	return p
}

// scratch is the sums of one item's tile, and a row of C in f32 on its way from and to 16 bits.
type scratch struct{ acc, c [tile]float32 }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// group returns the function of one workgroup, given the inner loop for T.
func group[T formats.Value](row func(acc []float32, vals []T, cols []uint32, b []T, ldb int)) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := readParams(block)
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		first := (int(at[0]) + int(at[2])*p.width) * p.per
		j := int(at[1]) * p.across * simd.Width
		n := min(p.across*simd.Width, p.n-j)
		acc := s.acc[:(n+simd.Width-1)/simd.Width*simd.Width]
		heavy, part := backend.View[uint32](args[3]), backend.View[float32](args[6])
		if p.phase == 1 {
			for i := first; i < min(first+p.per, p.items); i++ {
				r := heavy[2*p.pieces+3*i:]
				sum(acc, part[j:], int(r[1]), int(r[2]), p.ldp)
				p.store(args[5], int(r[0]), j, acc[:n], s.c[:n])
			}
			return
		}
		rowptr, colidx := backend.View[uint32](args[0]), backend.View[uint32](args[1])
		values, b := backend.View[T](args[2]), backend.View[T](args[4])
		for i := first; i < min(first+p.per, p.items); i++ {
			if i < p.pieces {
				begin, end := heavy[2*i], heavy[2*i+1]
				row(part[i*p.ldp+j:][:len(acc)], values[begin:end], colidx[begin:end], b[j:], p.ldb)
				continue
			}
			r := i - p.pieces
			begin, end := rowptr[r], rowptr[r+1]
			if int(end-begin) > p.longest {
				continue // done in pieces
			}
			row(acc, values[begin:end], colidx[begin:end], b[j:], p.ldb)
			p.store(args[5], r, j, acc[:n], s.c[:n])
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

// store writes alpha·acc + beta·C to row r of C from column j. tmp is as long as acc.
func (p *params) store(c []byte, r, j int, acc, tmp []float32) {
	at, n := r*p.ldc+j, len(acc)
	switch p.ctype {
	case include.F16:
		storeHalf(backend.View[half.F16](c)[at:at+n], acc, tmp, p.alpha, p.beta, simd.WidenF16, simd.NarrowF16)
	case include.BF16:
		storeHalf(backend.View[half.BF16](c)[at:at+n], acc, tmp, p.alpha, p.beta, simd.WidenBF16, simd.NarrowBF16)
	default:
		simd.Axpby(backend.View[float32](c)[at:at+n], acc, p.alpha, p.beta)
	}
}

func storeHalf[T half.F16 | half.BF16](c []T, acc, tmp []float32, alpha, beta float32, widen func([]float32, []T), narrow func([]T, []float32)) {
	if beta != 0 {
		widen(tmp, c)
	}
	simd.Axpby(tmp, acc, alpha, beta)
	narrow(c, tmp)
}
