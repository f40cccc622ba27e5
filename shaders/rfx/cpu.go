// The kernel on the CPU: an item's sums of a tile of columns in 64 bits.

package rfx

import (
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// columns of a workgroup in phase 1, see sumShape.
const sumColumns = 64

// batch is how many entries are cut into digits at a time.
const batch = 1024

// sums are those of one item: acc[d][j] has column j's products of digits whose places add up to d.
type sums struct {
	acc    [3][tile]int64
	tmp    [tile]int64
	lo, hi [batch]int32 // digits of entries

	// Of the workgroup's columns:
	units   [tile]float64 // 2^L
	special bool          // some column holds an element that is not finite
	y       [tile]float32
}

var pool = sync.Pool{New: func() any { return new(sums) }}

// job is one workgroup's work.
type job struct {
	params
	p           rfx.P
	phase, elem uint32
	epilogue    spec.Epilogue
	bias        []float32
	alpha, beta float32 // of params, as numbers
	args        [][]byte
	rows        []uint32
	colidx      []uint32
	q           []uint32
	j, w        int // its first column, and how many
}

// group returns the function of one workgroup.
func group(p rfx.P) backend.GroupFunc {
	return func(args [][]byte, block []byte, at [3]uint32) {
		x := spec.View[params](block)
		g := job{
			params: x, alpha: math.Float32frombits(x.alpha), beta: math.Float32frombits(x.beta), p: p, args: args,
			rows:  backend.View[uint32](args[0]),
			phase: x.shape >> 16 & 0xff, elem: x.shape >> 24, q: backend.View[uint32](args[4]),
		}
		g.colidx = g.rows[x.columns:]
		if _, g.epilogue = spec.Stored(x.store); g.epilogue.Bias != spec.NoBias {
			g.bias = backend.View[float32](args[5])
		}
		g.j = int(at[1]) * g.columns()
		g.w = min(g.columns(), int(g.n)-g.j)
		first := (int(at[0]) + int(at[2])*int(g.width)) * int(g.per)
		last := min(first+int(g.per), int(g.items))
		if g.phase == 1 {
			for i := first; i < last; i++ {
				g.sum(g.rows[int(g.heavy)+2*int(g.segments)+3*i:])
			}
			return
		}
		s := pool.Get().(*sums)
		defer pool.Put(s)
		g.scale(s)
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
	return max(1, min(tile, int(g.n)))
}

// item does a row segment or a row.
func (g *job) item(s *sums, i int) {
	if i < int(g.segments) {
		r := g.rows[int(g.heavy)+2*i:]
		g.multiply(s, r[0], r[1])
		for j := range g.w {
			g.put(i, g.j+j, g.combine(s, j))
		}
		return
	}
	row := i - int(g.segments)
	begin, end := g.rows[2*row], g.rows[2*row+2]
	if end-begin > g.longest {
		return // done in segments
	}
	g.multiply(s, begin, end)
	g.finish(s, row)
}

// scale looks at the ranges of the workgroup's columns.
func (g *job) scale(s *sums) {
	s.special = false
	for j, x := range g.q[g.j:][:g.w] {
		r := rfx.Range(x)
		s.units[j] = power(g.p.L(r.E()))
		s.special = s.special || r.NonFinite()
	}
}

// power returns 2^e for an e of normal numbers.
func power(e int) float64 { return math.Float64frombits(uint64(1023+e) << 52) }

// finish writes a row's elements of C, given their sums.
func (g *job) finish(s *sums, row int) {
	r := rfx.Range(g.rows[2*row+1])
	if s.special || r.NonFinite() || g.alpha != 1 || g.beta != 0 || !g.round(s, power(g.p.L(r.E()))) {
		for j := range g.w {
			g.store(row, g.j+j, g.combine(s, j))
		}
		return
	}
	y := backend.View[float32](g.args[6])[row*int(g.ldc)+g.j:][:g.w]
	copy(y, s.y[:g.w])
	if !g.epilogue.None() {
		for j := range y {
			y[j] = g.finished(y[j], row, g.j+j)
		}
	}
}

// round rounds the sums times their units and scale, and reports whether all are within the range that this does.
func (g *job) round(s *sums, scale float64) bool {
	y, units := s.y[:g.w], s.units[:g.w]
	switch g.p {
	case rfx.P31:
		return roundPairs(y, s.acc[0][:g.w], s.acc[1][:g.w], units, scale)
	case rfx.P47:
		return roundTriples(y, s.acc[0][:g.w], s.acc[1][:g.w], s.acc[2][:g.w], units, scale)
	}
	return simd.RoundSums(y, s.acc[0][:g.w], units, scale)
}

// roundPairs is simd.RoundSums for sums low + 2¹⁶·high.
func roundPairs(y []float32, low, high []int64, units []float64, scale float64) bool {
	low, high, units = low[:len(y)], high[:len(y)], units[:len(y)]
	for j := range y {
		h := high[j] + low[j]>>16
		if uint64(h+1<<53) > 1<<54 {
			return false
		}
		y[j] = float32(oddSum(float64(h)*(1<<16), float64(low[j]&(1<<16-1)))*units[j]*scale) + 0 // not −0
	}
	return true
}

// roundTriples is simd.RoundSums for sums low + 2²⁴·mid + 2⁴⁸·high.
func roundTriples(y []float32, low, mid, high []int64, units []float64, scale float64) bool {
	low, mid, high, units = low[:len(y)], mid[:len(y)], high[:len(y)], units[:len(y)]
	for j := range y {
		m := mid[j] + low[j]>>24
		h := high[j] + m>>24
		if uint64(h+1<<53) > 1<<54 {
			return false
		}
		below := m&(1<<24-1)<<24 | low[j]&(1<<24-1)
		y[j] = float32(oddSum(float64(h)*(1<<48), float64(below))*units[j]*scale) + 0 // not −0
	}
	return true
}

// oddSum returns a + b rounded to odd: where it is not exact, the neighbour whose last bit is set. To round that to a
// float32 is to round the sum once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). b is
// not negative, and a is 0 or no smaller in magnitude. A sum of zero is +0.
func oddSum(a, b float64) float64 {
	s := a + b
	rest := b - (s - a) // exact (Dekker)
	if rest == 0 {
		return s
	}
	bits := math.Float64bits(s)
	switch {
	case bits&1 == 1:
	case (rest > 0) == (s > 0):
		bits++
	default:
		bits--
	}
	return math.Float64frombits(bits)
}

// multiply adds up the products of entries begin to end. A row segment has at most 2¹⁵ entries: no sum of products
// below 2⁴⁷ overflows.
func (g *job) multiply(s *sums, begin, end uint32) {
	w := host.Pad(g.w) // q has as many columns
	for d := range s.acc {
		clear(s.acc[d][:w])
	}
	for ; begin < end; begin += batch {
		k := begin
		n := min(end-k, batch)
		cols, lo, hi := g.colidx[k:k+n], s.lo[:n], s.hi[:n]
		switch q := g.q[g.first:]; g.p {
		case rfx.P15:
			for i, x := range backend.View[int16](g.args[1])[k : k+n] {
				lo[i] = int32(x)
			}
			simd.RowInt16(s.tmp[:w], lo, cols, backend.View[int16](backend.Bytes(q))[g.j:], int(g.ldq))
			s.add(0, w)
		case rfx.P23:
			s.row(0, w, backend.View[int32](g.args[1])[k:k+n], cols, q[g.j:], int(g.ldq))
		case rfx.P31:
			for i, x := range backend.View[int32](g.args[1])[k : k+n] {
				lo[i] = int32(int16(x))
				hi[i] = (x - lo[i]) >> 16
			}
			s.row(0, w, lo, cols, q[g.j:], int(g.ldq))
			s.row(1, w, hi, cols, q[g.j:], int(g.ldq))
		case rfx.P47:
			for i := range lo {
				x := backend.View[int32](g.args[1])[2*(int(k)+i):]
				lo[i], hi[i] = x[0], x[1]
			}
			s.row(0, w, lo, cols, q[g.j:], 2*int(g.ldq))
			s.row(1, w, hi, cols, q[g.j:], 2*int(g.ldq))
			s.row(1, w, lo, cols, q[int(g.ldq)+g.j:], 2*int(g.ldq))
			s.row(2, w, hi, cols, q[int(g.ldq)+g.j:], 2*int(g.ldq))
		}
	}
}

// row adds the products of digits of some entries and of w columns of their rows to sum d.
func (s *sums) row(d, w int, digits []int32, cols []uint32, q []uint32, ld int) {
	simd.RowInt32(s.tmp[:w], digits, cols, backend.View[int32](backend.Bytes(q)), ld)
	s.add(d, w)
}

// add adds tmp to sum d.
func (s *sums) add(d, w int) {
	acc := s.acc[d][:w]
	for j, x := range s.tmp[:w] {
		acc[j] += x
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

// put and get access the workspace: segment i's sum of column j.
func (g *job) put(i, j int, t rfx.Int128) {
	w := backend.View[uint64](g.args[7])[2*(i*int(g.ldq)+j):]
	w[0], w[1] = t.Lo, uint64(t.Hi)
}

func (g *job) get(i, j int) rfx.Int128 {
	w := backend.View[uint64](g.args[7])[2*(i*int(g.ldq)+j):]
	return rfx.Int128{Hi: int64(w[1]), Lo: w[0]}
}

// sum does phase 1 for one row: r is the row, its first segment, and the one after its last.
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
	y := round(t, g.p.L(ra.E())+g.p.L(rb.E()))
	if ra.NonFinite() || rb.NonFinite() {
		if c := g.class(row, j); c != rfx.Finite {
			y = c.Value()
		}
	}
	c := backend.View[uint32](g.args[6])
	at := row*int(g.ldc) + j
	if g.alpha != 1 || g.beta != 0 {
		old := float32(0)
		if g.beta != 0 {
			old = math.Float32frombits(c[at])
		}
		y = rfx.Scale(g.alpha, y, g.beta, old)
	}
	c[at] = math.Float32bits(g.finished(y, row, j))
}

// finished applies the epilogue to element (row, j) of C, which is not −0. IEEE 754 defines the addition, and so the
// sum is none either.
func (g *job) finished(y float32, row, j int) float32 {
	switch g.epilogue.Bias {
	case spec.RowBias:
		y += g.bias[row<<g.epilogue.BiasShift]
	case spec.ColBias:
		y += g.bias[j<<g.epilogue.BiasShift]
	}
	switch {
	case y != y:
		return rfx.NaN.Value()
	case g.epilogue.Activation == spec.ReLU && y < 0:
		return 0
	}
	return y
}

// round is t.Round(scale), faster for a t that float64 holds: then the one rounding is that of the
// conversion, the product with a power of two being exact.
func round(t rfx.Int128, scale int) float32 {
	x := int64(t.Lo)
	if limit := int64(1) << 53; t.Hi != x>>63 || x >= limit || x <= -limit {
		return t.Round(scale)
	}
	y := float32(float64(x) * power(scale))
	if y == 0 {
		return 0 // not −0
	}
	return y
}

// class returns the class of the products of a row's entries with column j.
func (g *job) class(row, j int) (c rfx.Class) {
	for k := g.rows[2*row]; k < g.rows[2*row+2]; k++ {
		b := host.Element(g.args[3], int(g.colidx[k])*int(g.ldb)+j, g.elem)
		c |= rfx.ProductClass(host.Element(g.args[2], int(k), g.elem), b)
	}
	return c
}
