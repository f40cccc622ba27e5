// The kernel on the CPU: an item's sums of a tile of columns in 64 bits.

package rfx

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// params is the parameter block, read.
type params struct {
	phase, n, ldb, ldc, ldq, first, heavy, pieces, items, width, per, longest, shape, elem int
	alpha, beta                                                                            float32
}

func readParams(b []byte) (p params) {
	fields := [...]*int{
		&p.phase, &p.n, &p.ldb, &p.ldc, &p.ldq, &p.first, &p.heavy, &p.pieces, &p.items, &p.width, &p.per,
		&p.longest, &p.shape, &p.elem,
	}
	for i, f := range fields {
		*f = int(spec.ParamU(b, i))
	}
	p.alpha, p.beta = spec.ParamF(b, len(fields)), spec.ParamF(b, len(fields)+1)
	return p
}

// columns of a workgroup in phase 1, see sumShape.
const sumColumns = 64

// sums are those of one item: acc[d][j] has column j's products of digits whose places add up to d.
type sums struct{ acc [3][tile]int64 }

var pool = sync.Pool{New: func() any { return new(sums) }}

// job is one workgroup's work.
type job struct {
	params
	p      rfx.P
	args   [][]byte
	rows   []uint32
	colidx []uint32
	q      []uint32
	part   []rfx.Int128
	j, w   int // its first column, and how many
}

// group returns the function of one workgroup.
func group(p rfx.P) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		g := job{
			params: readParams(block), p: p, args: args, rows: backend.View[uint32](args[0]),
			colidx: backend.View[uint32](args[1]), q: backend.View[uint32](args[5]),
		}
		g.j = int(at[1]) * g.columns()
		g.w = min(g.columns(), g.n-g.j)
		first := (int(at[0]) + int(at[2])*g.width) * g.per
		last := min(first+g.per, g.items)
		if g.phase == 1 {
			for i := first; i < last; i++ {
				g.sum(g.rows[g.heavy+2*g.pieces+3*i:])
			}
			return
		}
		s := pool.Get().(*sums)
		defer pool.Put(s)
		for i := first; i < last; i++ {
			g.item(s, i)
		}
	}
}

// columns is the columns of a workgroup, as goShape and sumShape have them.
func (g *job) columns() int {
	if g.phase == 1 {
		return sumColumns
	}
	return max(1, min(tile, g.n))
}

// item does a piece or a row.
func (g *job) item(s *sums, i int) {
	if i < g.pieces {
		r := g.rows[g.heavy+2*i:]
		g.multiply(s, r[0], r[1])
		for j := range g.w {
			g.put(i, g.j+j, g.combine(s, j))
		}
		return
	}
	row := i - g.pieces
	begin, end := g.rows[2*row], g.rows[2*row+2]
	if int(end-begin) > g.longest {
		return // done in pieces
	}
	g.multiply(s, begin, end)
	for j := range g.w {
		g.store(row, g.j+j, g.combine(s, j))
	}
}

// multiply adds up the products of entries begin to end. A piece has at most 2¹⁵ entries: no sum of
// products below 2⁴⁷ overflows.
func (g *job) multiply(s *sums, begin, end uint32) {
	for d := range s.acc {
		clear(s.acc[d][:g.w])
	}
	for k := begin; k < end; k++ {
		row := g.q[g.first+int(g.colidx[k])*g.ldq*g.p.Size()/4:]
		switch g.p {
		case rfx.P15:
			addInt16(s.acc[0][:g.w], backend.View[int16](g.args[2])[k], backend.View[int16](backend.Bytes(row))[g.j:])
		case rfx.P23:
			addInt32(s.acc[0][:g.w], backend.View[int32](g.args[2])[k], backend.View[int32](backend.Bytes(row))[g.j:])
		case rfx.P31:
			a, b := backend.View[int32](g.args[2])[k], backend.View[int32](backend.Bytes(row))[g.j:]
			lo := int32(int16(a))
			addInt32(s.acc[0][:g.w], lo, b)
			addInt32(s.acc[1][:g.w], (a-lo)>>16, b)
		case rfx.P47:
			a, b := backend.View[int32](g.args[2])[2*k:], backend.View[int32](backend.Bytes(row))[g.j:]
			addInt32(s.acc[0][:g.w], a[0], b)
			addInt32(s.acc[1][:g.w], a[1], b)
			addInt32(s.acc[1][:g.w], a[0], b[g.ldq:])
			addInt32(s.acc[2][:g.w], a[1], b[g.ldq:])
		}
	}
}

func addInt16(acc []int64, a int16, b []int16) {
	b = b[:len(acc)]
	for j := range acc {
		acc[j] += int64(a) * int64(b[j])
	}
}

func addInt32(acc []int64, a int32, b []int32) {
	b = b[:len(acc)]
	for j := range acc {
		acc[j] += int64(a) * int64(b[j])
	}
}

// combine returns column j's sum.
func (g *job) combine(s *sums, j int) rfx.Int128 {
	switch g.p {
	case rfx.P31:
		return rfx.Combine([]int64{s.acc[0][j], s.acc[1][j]}, 16)
	case rfx.P47:
		return rfx.Combine([]int64{s.acc[0][j], s.acc[1][j], s.acc[2][j]}, 24)
	}
	return rfx.Int(s.acc[0][j])
}

// put and get access the workspace: piece i's sum of column j.
func (g *job) put(i, j int, t rfx.Int128) {
	w := backend.View[uint64](g.args[7])[2*(i*g.ldq+j):]
	w[0], w[1] = t.Lo, uint64(t.Hi)
}

func (g *job) get(i, j int) rfx.Int128 {
	w := backend.View[uint64](g.args[7])[2*(i*g.ldq+j):]
	return rfx.Int128{Hi: int64(w[1]), Lo: w[0]}
}

// sum does phase 1 for one row: r is the row, its first piece, and that after its last.
func (g *job) sum(r []uint32) {
	for j := g.j; j < g.j+g.w; j++ {
		var t rfx.Int128
		for i := r[1]; i < r[2]; i++ {
			t = t.Add(g.get(int(i), j))
		}
		g.store(int(r[0]), j, t)
	}
}

// store writes element (row, j) of C, given the sum.
func (g *job) store(row, j int, t rfx.Int128) {
	ra, rb := rfx.Range(g.rows[2*row+1]), rfx.Range(g.q[j])
	y := t.Round(g.p.L(ra.E()) + g.p.L(rb.E()))
	if ra.NonFinite() || rb.NonFinite() {
		if c := g.class(row, j); c != rfx.Finite {
			y = c.Value()
		}
	}
	c := backend.View[uint32](g.args[6])
	at := row*g.ldc + j
	if g.alpha != 1 || g.beta != 0 {
		old := float32(0)
		if g.beta != 0 {
			old = math.Float32frombits(c[at])
		}
		y = rfx.Scale(g.alpha, y, g.beta, old)
	}
	c[at] = math.Float32bits(y)
}

// class returns the class of the products of a row's entries with column j.
func (g *job) class(row, j int) (c rfx.Class) {
	for k := g.rows[2*row]; k < g.rows[2*row+2]; k++ {
		c |= rfx.ProductClass(element(g.args[3], int(k), g.elem), element(g.args[4], int(g.colidx[k])*g.ldb+j, g.elem))
	}
	return c
}

// element returns an element of an array of type t.
func element(b []byte, i, t int) float32 {
	switch t {
	case include.F16:
		return backend.View[half.F16](b)[i].Float32()
	case include.BF16:
		return backend.View[half.BF16](b)[i].Float32()
	}
	return backend.View[float32](b)[i]
}
