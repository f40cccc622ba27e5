// The kernel on the CPU: a workgroup is a run of rows by a tile of columns, which package simd computes in one call.

package csr

import (
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

const (
	// tile is the widest tile of columns, whose sums simd keeps in registers. All rows of a tile come before the next
	// tile, so that only the tile's columns of B must fit the caches.
	tile = 128
	// blockRows is the number of rows summed at a time, if alpha times the sums is not all that is stored.
	blockRows = 16
)

// goShape gives a workgroup some microseconds of work, or less if there would be few workgroups for each core.
func goShape(v *spec.Variant, e *spec.Packed, p spec.Problem) shape {
	const least, most, each = 1 << 14, 1 << 18, 16
	columns := max(simd.Width, min(tile, host.Pad(p.N)))
	item := (e.NNZ/int64(max(1, e.Rows)) + 4) * int64(columns)
	macs := max(least, min(most, item*int64(p.M)/int64(each*max(1, p.Caps.Units))))
	return shape{
		per: int(max(1, min(4096, macs/item))), across: columns / simd.Width, along: ahead(v, e.Format.(spec.Split), p,
			columns),
		columns: columns,
	}
}

// ahead returns how many entries ahead rows of B are prefetched; 0: they are not. A prefetch takes as many instructions
// as a load, which costs narrow tiles more, so it pays only for rows that are probably not in the caches.
func ahead(v *spec.Variant, s spec.Split, p spec.Problem, columns int) int {
	const (
		distance = 48       // entries ahead if rows are short: their ends delay the processor
		inLong   = 16       // entries ahead if rows are long
		many     = 64       // entries of a long row
		large    = 16 << 20 // bytes of B in a tile of columns, which the last-level cache may not hold
	)
	registers, least := columns*v.Sums().Size()/64, 2.0/3
	if !simd.Wide() { // there are twice as many multiply-adds to each prefetch
		least = 0.4
	}
	if registers >= 8 || int64(p.K)*int64(columns)*int64(v.In.Size()) >= large {
		least = 1.0 / 3
	}
	if registers < 2 || s.Scattered < least {
		return 0
	}
	if s.Average >= many {
		return inLong
	}
	return distance
}

// scattered estimates the share of entries whose row of B none of the last 256 entries needed.
func scattered(columns []int32, cols int) float64 {
	const (
		lately  = 256
		windows = 4
		window  = 4096
	)
	last := make([]int32, cols) // number of the last entry in a column, from 1 on
	all, far := 0, 0
	for w := range windows {
		begin := len(columns) / windows * w
		for k, col := range columns[begin : begin+min(window, len(columns)/windows)] {
			place := begin + k + 1
			if k >= lately {
				all++
				if before := int(last[col]); before == 0 || place-before > lately {
					far++
				}
			}
			last[col] = int32(place)
		}
	}
	return float64(far) / float64(max(1, all))
}

// arithmetic has the kernel's operations on elements of T and sums of S.
type arithmetic[T formats.Value, S host.Real] struct {
	host.Sums[S]
	rows func(*simd.Rows[T, S])
	// plain reports whether C is alpha times the sums, without beta or epilogue, in the type of the sums. alpha returns
	// alpha.
	plain func(p *params, block []byte) bool
	alpha func(p *params, block []byte) S
}

// narrow is the arithmetic whose sums are f32, with the loop over rows for T.
func narrow[T formats.Value](rows func(*simd.Rows[T, float32])) arithmetic[T, float32] {
	return arithmetic[T, float32]{
		Sums: host.Single, rows: rows,
		plain: func(p *params, _ []byte) bool {
			elem, e := spec.Stored(p.store)
			return elem == include.F32 && e == (spec.Epilogue{}) && p.beta == 0
		},
		alpha: func(p *params, _ []byte) float32 { return p.alpha },
	}
}

// double is the arithmetic of f64.
var double = arithmetic[float64, float64]{
	Sums: host.Double, rows: simd.RowsF64,
	plain: func(p *params, block []byte) bool {
		_, e := spec.Stored(p.store)
		_, beta := spec.Scalars(block)
		return e == (spec.Epilogue{}) && beta == 0
	},
	alpha: func(_ *params, block []byte) float64 {
		alpha, _ := spec.Scalars(block)
		return alpha
	},
}

// cpuFunc returns the function of one workgroup for elements of type t.
func cpuFunc(t dtype.Type) backend.GroupFunc {
	if t == dtype.F64 {
		return group(double)
	}
	return host.For(t, group(narrow[half.F16](simd.RowsF16)), group(narrow[half.BF16](simd.RowsBF16)),
		group(narrow[float32](simd.RowsF32)))
}

// scratch is the memory of a workgroup: the operands of a run of rows, sums of some rows, and a row of C as S.
type scratch[T formats.Value, S host.Real] struct {
	p    params // here, since arithmetic is called through pointers
	rows simd.Rows[T, S]
	sums [blockRows * tile]S
	c    [tile]S
}

// work is a workgroup's task: n columns from j on.
type work[T formats.Value, S host.Real] struct {
	*scratch[T, S]
	do    *arithmetic[T, S]
	args  [][]byte
	block []byte
	j, n  int
	heavy []uint32
	part  []S
}

// group returns the function of one workgroup.
func group[T formats.Value, S host.Real](do arithmetic[T, S]) backend.GroupFunc {
	scratches := sync.Pool{New: func() any { return new(scratch[T, S]) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		s := scratches.Get().(*scratch[T, S])
		defer scratches.Put(s)
		s.p = spec.View[params](block)
		p := &s.p
		columns := int(p.across) * simd.Width
		w := work[T, S]{
			scratch: s, do: &do, args: args, block: block, j: int(at[1]) * columns,
			heavy: backend.View[uint32](args[3]), part: backend.View[S](args[7]),
		}
		w.n = min(columns, int(p.n)-w.j)
		first := (int(at[0]) + int(at[2])*int(p.width)) * int(p.per)
		last, segments := min(first+int(p.per), int(p.items)), int(p.segments)
		if p.phase == 1 {
			for i := first; i < last; i++ {
				w.addSegments(w.heavy[2*segments+3*i:])
			}
			return
		}
		b := backend.View[T](args[4]) // empty if B has no rows
		s.rows = simd.Rows[T, S]{
			N: w.n, Cols: backend.View[uint32](args[1]), Vals: backend.View[T](args[2]),
			B: b[min(w.j, len(b)):], LDB: int(p.ldb), Ahead: int(p.along),
		}
		for i := first; i < min(last, segments); i++ {
			w.sum(w.heavy[2*i:2*i+2], w.part[i*int(p.ldp)+w.j:], int(p.ldp), 1)
		}
		w.lightRows(max(first, segments)-segments, last-segments)
		s.rows = simd.Rows[T, S]{}
	}
}

// addSegments adds the partial sums of a heavy row and stores it. r is its number, first segment and last + 1.
func (w *work[T, S]) addSegments(r []uint32) {
	ldp := int(w.p.ldp)
	acc := w.sums[:host.Pad(w.n)]
	copy(acc, w.part[w.j+int(r[1])*ldp:])
	for x := int(r[1]) + 1; x < int(r[2]); x++ {
		w.do.Add(acc, w.part[w.j+x*ldp:][:len(acc)])
	}
	w.store(int(r[0]), acc[:w.n])
}

// store writes a row of C.
func (w *work[T, S]) store(row int, acc []S) {
	p := &w.p
	out := host.Out{C: w.args[6], Bias: w.args[5], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
	w.do.Row(out, w.block, row, w.j, acc, w.c[:w.n])
}

// sum computes alpha times the sums of the rows that begin at starts.
func (w *work[T, S]) sum(starts []uint32, c []S, ldc int, alpha S) {
	w.rows.Starts, w.rows.C, w.rows.LDC, w.rows.Alpha = starts, c, ldc, alpha
	w.do.rows(&w.rows)
}

// lightRows computes the rows that are not divided into segments.
func (w *work[T, S]) lightRows(row, last int) {
	starts := backend.View[uint32](w.args[0])
	for row < last {
		end := last
		if w.p.segments > 0 {
			for end = row; end < last && starts[end+1]-starts[end] <= w.p.longest; end++ {
			}
		}
		w.run(starts, row, end)
		row = end + 1
	}
}

// streams reports whether C is written past the caches. If C exceeds a core's caches, each line would otherwise be read
// before it is written.
func (w *work[T, S]) streams() bool { return len(w.args[6]) >= 2<<20 }

// run computes consecutive rows.
func (w *work[T, S]) run(starts []uint32, row, last int) {
	if row == last {
		return
	}
	if w.do.plain(&w.p, w.block) {
		ldc := int(w.p.ldc)
		w.rows.Stream = w.streams()
		w.sum(starts[row:last+1], backend.View[S](w.args[6])[row*ldc+w.j:], ldc, w.do.alpha(&w.p, w.block))
		return
	}
	for ; row < last; row += blockRows {
		n := min(blockRows, last-row)
		w.sum(starts[row:row+n+1], w.sums[:], tile, 1)
		for i := range n {
			w.store(row+i, w.sums[i*tile:][:w.n])
		}
	}
}
