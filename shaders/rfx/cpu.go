// The kernel on the CPU: rows by a tile of columns, from sums (see run) to C.

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

// streamed is the bytes from which on C is written past the caches: those of a core do not hold it.
const streamed = 2 << 20

// scratch is the memory of a workgroup.
type scratch struct {
	run
	row    int                // of the run's first chunk; the others are those of the rows that follow
	scales [runChunks]float64 // 2^L of these rows

	// The sums of a row in several chunks, of a panel, or of a segment: see simd.FoldSums; at p = 47 acc[d][j] has column
	// j's products of digits whose places add up to d.
	high, low [simd.PanelRows * tile]float64
	acc       [3][tile]int64

	// Of the workgroup's columns:
	units  [tile]float64 // 2^L
	direct bool          // sums, rounded, are C, but for an epilogue and rows that hold elements that are not finite
	wild   bool          // there is such a row among those of scales
	y      [runSums]float32
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// job is one workgroup's work.
type job struct {
	params
	*scratch
	p           rfx.P
	phase, elem uint32
	epilogue    spec.Epilogue
	bias        []float32
	alpha, beta float32 // of params, as numbers
	args        [][]byte
	words       []uint32 // argument rows
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
			words: backend.View[uint32](args[0]),
			phase: x.shape >> 16 & 0xff, elem: x.shape >> 24, q: backend.View[uint32](args[4]),
		}
		g.colidx = g.words[x.columns:]
		if _, g.epilogue = spec.Stored(x.store); g.epilogue.Bias != spec.NoBias {
			g.bias = backend.View[float32](args[5])
		}
		g.j = int(at[1]) * g.tile()
		g.w = min(g.tile(), int(g.n)-g.j)
		first := (int(at[0]) + int(at[2])*int(g.width)) * int(g.per)
		last := min(first+int(g.per), int(g.items))
		if g.phase == 1 {
			for i := first; i < last; i++ {
				g.sum(g.words[int(g.heavy)+2*int(g.segments)+3*i:])
			}
			return
		}
		g.scratch = pool.Get().(*scratch)
		defer pool.Put(g.scratch)
		g.scaleColumns()
		g.reset(p, args[1], g.colidx, g.q[g.first:], g.j, int(g.ldq), host.Pad(g.w)) // B has as many columns
		segments := int(g.segments)
		for i := first; i < min(last, segments); i++ {
			g.segment(i)
		}
		g.multiply(max(first, segments)-segments, last-segments)
	}
}

// tile is the columns of a workgroup, as goShape and sumShape have them.
func (g *job) tile() int {
	if g.phase == 1 {
		return sumColumns
	}
	return max(1, min(tile, int(g.params.n)))
}

// scaleColumns looks at the ranges of the workgroup's columns.
func (g *job) scaleColumns() {
	g.wild = false
	g.direct = g.alpha == 1 && g.beta == 0
	for j, x := range g.q[g.j:][:g.w] {
		r := rfx.Range(x)
		g.units[j] = power(g.p.L(r.E()))
		g.direct = g.direct && !r.NonFinite()
	}
}

// power returns 2^e for an e of normal numbers.
func power(e int) float64 { return math.Float64frombits(uint64(1023+e) << 52) }

// segment does a row segment.
func (g *job) segment(i int) {
	r := g.words[int(g.heavy)+2*i:]
	g.add(int(r[0]), int(r[1]))
	for j := range g.w {
		g.put(i, g.j+j, g.combine(j))
	}
}

// multiply does rows. Those in one chunk are computed many at a time.
func (g *job) multiply(row, last int) {
	most, longest, panels := mostTerms(g.p), int(g.longest), g.panels()
	for row = g.pushRows(row, last, panels); row < last; row = g.pushRows(row+1, last, panels) {
		begin, end := int(g.words[2*row]), int(g.words[2*row+2])
		n := end - begin
		switch {
		case n > longest: // done in segments
		case panels && row+simd.PanelRows <= last && g.isPanel(row):
			g.flush()
			g.addPanel(row, begin, n)
			row += simd.PanelRows - 1
		case n > most:
			g.add(begin, end)
			g.finishSums(row)
		default:
			if !g.takes(begin, n) {
				g.flush()
			}
			if g.run.n == 0 {
				g.row = row
			}
			g.scale(g.run.n, row)
			g.push(begin, n)
		}
	}
	g.flush()
}

// pushRows pushes the rows from row on that fit behind those in the run, up to the first that does not or that multiply
// has to look at, which it returns. It does in one loop what multiply does for a row, since most rows are short.
func (g *job) pushRows(row, last int, panels bool) int {
	r := &g.run
	if r.n == 0 || row >= last || r.begin+r.entries() != int(g.words[2*row]) {
		return row
	}
	words, n, entries := g.words[2*row:2*last+1], r.n, r.starts[r.n]
	most, marked := uint32(min(mostTerms(g.p), int(g.longest))), rfx.Range(0)
	if panels {
		marked = rfx.Mark
	}
	var all rfx.Range
	for ; len(words) > 2 && n < r.most; words = words[2:] {
		of, count := rfx.Range(words[1]), words[2]-words[0]
		if of&marked != 0 || count > most || entries+count > runEntries {
			break
		}
		all |= of
		g.scales[n] = power(g.p.L(of.E()))
		entries += count
		n++
		r.starts[n] = entries
	}
	row += n - r.n
	r.n, g.wild = n, g.wild || all.NonFinite()
	return row
}

// panels reports whether rows with the same columns are computed as a panel, which reads rows of B once for all.
func (g *job) panels() bool { return g.p == rfx.P23 || g.p == rfx.P31 }

// isPanel reports whether a row and those behind it have the same columns.
func (g *job) isPanel(row int) bool {
	for r := row; r < row+simd.PanelRows-1; r++ {
		if rfx.Range(g.words[2*r+1])&rfx.Mark == 0 {
			return false
		}
	}
	return g.words[2*row] < g.words[2*row+2]
}

// addPanel does the panel whose first row is row, each of n entries.
func (g *job) addPanel(row, begin, n int) {
	for i := range simd.PanelRows {
		g.scale(i, row+i)
	}
	w := host.Pad(g.w)
	halves, upper := halves(g.p)
	sums := simd.Rounding{High: g.run.sums[0][:], LDS: w}
	if halves == 2 {
		sums.High, sums.Low, sums.Scale = g.run.sums[1][:], g.run.sums[0][:], upper
	}
	if n <= simd.PanelEntries {
		g.panel(begin, n, n)
		g.finish(row, simd.PanelRows, sums)
		return
	}
	high, low := g.high[:simd.PanelRows*w], g.low[:simd.PanelRows*w]
	clear(high)
	clear(low)
	for k := 0; k < n; k += simd.PanelEntries {
		g.panel(begin+k, n, min(simd.PanelEntries, n-k))
		for half := range halves {
			simd.FoldSums(high, low, g.run.sums[half][:len(high)], []float64{1, upper}[half])
		}
	}
	g.finish(row, simd.PanelRows, simd.Rounding{High: high, Low: low, LDS: w, Scale: 1})
}

// flush finishes the rows that are in one chunk.
func (g *job) flush() {
	if g.run.n == 0 {
		return
	}
	g.compute()
	sums, w := g.run.sums[0][:], g.run.columns()
	if g.p == rfx.P47 {
		for i := range g.run.n {
			g.clear()
			g.addChunk(i)
			g.finishSums(g.row + i)
		}
	} else if n, upper := halves(g.p); n == 1 {
		g.finish(g.row, g.run.n, simd.Rounding{High: sums, LDS: w})
	} else {
		g.finish(g.row, g.run.n, simd.Rounding{High: sums[w:], Low: sums, LDS: 2 * w, Scale: upper})
	}
	g.run.n = 0
}

// add adds up the products of entries begin to end.
func (g *job) add(begin, end int) {
	g.flush()
	g.clear()
	for begin < end {
		for n := 0; begin < end; begin += n {
			if n = min(end-begin, mostTerms(g.p)); !g.takes(begin, n) {
				break
			}
			g.push(begin, n)
		}
		g.compute()
		for i := range g.run.n {
			g.addChunk(i)
		}
		g.run.n = 0
	}
}

// clear makes the sums zeros.
func (g *job) clear() {
	w := host.Pad(g.w)
	clear(g.high[:w])
	clear(g.low[:w])
	for d := range g.acc {
		clear(g.acc[d][:w])
	}
}

// addChunk adds those of a chunk.
func (g *job) addChunk(i int) {
	if g.p == rfx.P47 {
		for d := range 4 {
			acc := g.acc[d/2+d%2][:]
			for j, x := range g.run.sum(i, d/2, d%2) {
				acc[j] += int64(x)
			}
		}
		return
	}
	n, upper := halves(g.p)
	simd.FoldSums(g.high[:], g.low[:], g.run.sum(i, 0, 0), 1)
	if n == 2 {
		simd.FoldSums(g.high[:], g.low[:], g.run.sum(i, 1, 0), upper)
	}
}

// finishSums writes a row's elements of C, given the sums.
func (g *job) finishSums(row int) {
	g.scale(0, row)
	if g.p != rfx.P47 {
		g.finish(row, 1, simd.Rounding{High: g.high[:], Low: g.low[:], LDS: tile, Scale: 1})
		return
	}
	y := g.y[:g.w]
	if !roundTriples(y, g.acc[0][:], g.acc[1][:], g.acc[2][:], g.units[:], g.scales[0]) {
		for j := range y {
			y[j] = g.combine(j).Round(g.unit(row) + g.p.L(rfx.Range(g.q[g.j+j]).E()))
		}
	}
	g.store(row, y)
}

// unit returns the L of a row of A.
func (g *job) unit(row int) int { return g.p.L(rfx.Range(g.words[2*row+1]).E()) }

// scale makes a row of A the i-th of scales.
func (g *job) scale(i, row int) {
	g.scales[i] = power(g.unit(row))
	if rfx.Range(g.words[2*row+1]).NonFinite() {
		g.wild = true
	}
}

// finish writes n rows of C, given their sums.
func (g *job) finish(row, n int, r simd.Rounding) {
	r.Unit, r.Rows = g.units[:g.w], g.scales[:n]
	if r.Y, r.LDY = g.y[:], g.w; g.direct {
		r.Y, r.LDY = backend.View[float32](g.args[6])[row*int(g.ldc)+g.j:], int(g.ldc)
		r.Stream = len(g.args[6]) >= streamed && g.epilogue.None()
	}
	r.Do()
	if g.direct && !g.wild && g.epilogue.None() {
		return
	}
	for i := range n {
		g.store(row+i, r.Y[i*r.LDY:][:g.w])
	}
	g.wild = false
}

// store makes rounded sums, which may lie there, a row of C.
func (g *job) store(row int, y []float32) {
	c := backend.View[float32](g.args[6])[row*int(g.ldc)+g.j:][:g.w]
	switch {
	case !g.direct || rfx.Range(g.words[2*row+1]).NonFinite():
		for j, x := range y {
			c[j] = g.element(row, g.j+j, x, c[j])
		}
	case !g.epilogue.None():
		for j, x := range y {
			c[j] = g.finished(x, row, g.j+j)
		}
	case g.p == rfx.P47:
		copy(c, y)
	}
}

// roundTriples is simd.Rounding for sums low + 2²⁴·mid + 2⁴⁸·high. It reports whether the high ones, with what is
// carried, are within 2⁵³.
func roundTriples(y []float32, low, mid, high []int64, units []float64, row float64) bool {
	low, mid, high, units = low[:len(y)], mid[:len(y)], high[:len(y)], units[:len(y)]
	for j := range y {
		m := mid[j] + low[j]>>24
		h := high[j] + m>>24
		if uint64(h+1<<53) > 1<<54 {
			return false
		}
		below := m&(1<<24-1)<<24 | low[j]&(1<<24-1)
		y[j] = float32(simd.OddSum(float64(h)*(1<<48), float64(below))*units[j]*row) + 0 // not −0
	}
	return true
}

// combine returns column j's sum.
func (g *job) combine(j int) rfx.Int128 {
	if g.p == rfx.P47 {
		return rfx.Combine([]int64{g.acc[0][j], g.acc[1][j], g.acc[2][j]}, 24)
	}
	return rfx.Int(int64(g.high[j] / simd.FoldUnit)).Shl(simd.FoldBits).Add(rfx.Int(int64(g.low[j])))
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
	row := int(r[0])
	c := backend.View[float32](g.args[6])[row*int(g.ldc):]
	for j := g.j; j < g.j+g.w; j++ {
		var t rfx.Int128
		for i := r[1]; i < r[2]; i++ {
			t = t.Add(g.get(int(i), j))
		}
		c[j] = g.element(row, j, t.Round(g.unit(row)+g.p.L(rfx.Range(g.q[j]).E())), c[j])
	}
}

// element returns element (row, j) of C, given its sum, rounded, and what it was.
func (g *job) element(row, j int, y, old float32) float32 {
	if rfx.Range(g.words[2*row+1]).NonFinite() || rfx.Range(g.q[j]).NonFinite() {
		if c := g.class(row, j); c != rfx.Finite {
			y = c.Value()
		}
	}
	if g.alpha != 1 || g.beta != 0 {
		if g.beta == 0 {
			old = 0 // whatever C held
		}
		y = rfx.Scale(g.alpha, y, g.beta, old)
	}
	return g.finished(y, row, j)
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

// class returns the class of the products of a row's entries with column j.
func (g *job) class(row, j int) (c rfx.Class) {
	for k := g.words[2*row]; k < g.words[2*row+2]; k++ {
		b := host.Element(g.args[3], int(g.colidx[k])*int(g.ldb)+j, g.elem)
		c |= rfx.ProductClass(host.Element(g.args[2], int(k), g.elem), b)
	}
	return c
}
