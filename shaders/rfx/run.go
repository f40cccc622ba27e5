// Sums of rows on the CPU: in float64, which holds those of chunks of rows exactly.

package rfx

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/simd"
)

// mostTerms returns how many entries may be in a chunk of a row: their products add up to at most 2⁵³, which float64
// holds exactly, whatever the order. A product is at most
//
//	p = 15  (2039·2⁴)²    less than 2³⁰; no more entries than fit a run
//	    23  (2039·2¹²)²   less than 2⁴⁶
//	    31  2¹⁵·2039·2²⁰  less than 2⁴⁶: entries of A are in halves of 16 bits
//	    47  2²³·2²³       2⁴⁶: both are in digits of 24 bits
func mostTerms(p rfx.P) int {
	if p == rfx.P15 {
		return runEntries
	}
	return 128
}

// halves returns the numbers that an entry of A takes, and what the upper of two is multiplied by.
func halves(p rfx.P) (n int, upper float64) {
	switch p {
	case rfx.P31:
		return 2, 1 << 16
	case rfx.P47:
		return 2, 1 << 24
	}
	return 1, 1
}

// The entries and the sums of a run: they leave room in the first-level cache.
const (
	runEntries = 1024
	runSums    = 2048
	runChunks  = runSums / simd.Width
)

// run is consecutive chunks of rows, whose sums package simd computes in one call.
type run struct {
	// Arrays that package simd reads and writes in vectors come first, where these lie in one line of the caches each.
	lower [runEntries]float64 // entries, or their lower halves
	upper [runEntries]float64
	sums  [2][runSums]float64 // the second with B's upper digits, or of a panel's upper halves

	p      rfx.P
	ints   []byte
	cols   []uint32
	narrow simd.IntRows[int16] // at p = 15
	wide   simd.IntRows[int32] // at others
	digit  int                 // of B, at p = 47: from a row's lower ones to its upper ones

	most   int // chunks that fit
	begin  int // the first entry
	n      int // chunks
	starts [runChunks + 1]uint32
}

// ahead is how many entries ahead rows of B are prefetched.
const ahead = 16

// reset prepares for products with w columns of B in fixed point, from q on, with ldq elements a row.
func (r *run) reset(p rfx.P, ints []byte, cols, q []uint32, j, ldq, w int) {
	r.p, r.ints, r.cols, r.n, r.digit = p, ints, cols, 0, ldq
	r.narrow, r.wide = simd.IntRows[int16]{}, simd.IntRows[int32]{}
	halves, _ := halves(p)
	r.most = runSums / max(1, halves*w)
	if p == rfx.P15 {
		b := backend.View[int16](backend.Bytes(q))
		r.narrow = simd.IntRows[int16]{N: w, LDC: w, B: b[min(j, len(b)):], LDB: ldq, Ahead: ahead}
		r.narrow.C, r.narrow.Vals = r.sums[0][:], r.lower[:]
		return
	}
	b := backend.View[int32](backend.Bytes(q))
	r.wide = simd.IntRows[int32]{N: w, LDC: w, B: b[min(j, len(b)):], LDB: ldq, Ahead: ahead}
	r.wide.C, r.wide.Vals = r.sums[0][:], r.lower[:]
	if p == rfx.P47 {
		r.wide.LDB *= 2
	}
	if halves == 2 {
		r.wide.Upper = r.upper[:]
	}
}

// entries returns how many there are.
func (r *run) entries() int { return int(r.starts[r.n]) }

// columns returns the columns of the sums.
func (r *run) columns() int { return max(r.narrow.N, r.wide.N) }

// takes reports whether a chunk of n entries from begin on fits behind the others.
func (r *run) takes(begin, n int) bool {
	return r.n == 0 || r.n < r.most && r.begin+r.entries() == begin && r.entries()+n <= runEntries
}

// push adds a chunk.
func (r *run) push(begin, n int) {
	if r.n == 0 {
		r.begin = begin
	}
	r.n++
	r.starts[r.n] = r.starts[r.n-1] + uint32(n)
}

// compute adds up the chunks' products.
func (r *run) compute() {
	n := r.entries()
	ints, starts, cols := r.ints[r.begin*r.p.Size():][:n*r.p.Size()], r.starts[:r.n+1], r.cols[r.begin:]
	r.narrow.Starts, r.narrow.Cols, r.wide.Starts, r.wide.Cols = starts, cols, starts, cols
	switch r.p {
	case rfx.P15:
		simd.WidenInt16(r.lower[:], backend.View[int16](ints))
		simd.RowsInt16(&r.narrow)
	case rfx.P23:
		simd.WidenInt32(r.lower[:], backend.View[int32](ints))
		simd.RowsInt32(&r.wide)
	case rfx.P31:
		simd.HalveInt32(r.lower[:], r.upper[:], backend.View[int32](ints))
		simd.RowsInt32(&r.wide)
	case rfx.P47:
		for i := range n {
			x := backend.View[int32](ints)[2*i:]
			r.lower[i], r.upper[i] = float64(x[0]), float64(x[1])
		}
		simd.RowsInt32(&r.wide)
		other := r.wide
		other.B, other.C = other.B[min(r.digit, len(other.B)):], r.sums[1][:]
		simd.RowsInt32(&other)
	}
}

// sum returns the sums of chunk i with a half of A, 0 the lower, and a digit of B.
func (r *run) sum(i, half, digit int) []float64 {
	halves, _ := halves(r.p)
	return r.sums[digit][(i*halves+half)*r.columns():][:r.columns()]
}

// panel adds up the products of m entries, at most simd.PanelEntries, of each of eight rows with the same columns,
// which have n entries: from begin on are those of the first. Row i's sums are at i times columns in sums, at p = 31
// those of lower and of upper halves.
func (r *run) panel(begin, n, m int) {
	for i := range simd.PanelRows {
		at := i * simd.PanelEntries
		ints := backend.View[int32](r.ints)[begin+i*n:][:m]
		if r.p == rfx.P23 {
			simd.WidenInt32(r.lower[at:], ints)
		} else {
			simd.HalveInt32(r.lower[at:], r.upper[at:], ints)
		}
	}
	x := &r.wide
	vals := [2]*[runEntries]float64{&r.lower, &r.upper}
	halves, _ := halves(r.p)
	for half := range halves {
		sums := r.sums[half][:simd.PanelRows*x.N]
		clear(sums)
		simd.PanelInt32(sums, x.N, vals[half], r.cols[begin:][:m], x.B, x.LDB, x.N)
	}
}
