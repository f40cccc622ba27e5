// Sums of rows on the CPU: in float64, which holds those of pieces of rows exactly.

package rfx

import (
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/simd"
)

// mostTerms returns how many entries may be in a piece of a row: their products add up to at most 2⁵³, which float64
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
	runPieces  = runSums / simd.Width
)

// run is consecutive pieces of rows, whose sums package simd computes in one call.
type run struct {
	p     rfx.P
	ints  []byte
	cols  []uint32
	upper []float64 // at p = 47: B's upper digits
	rows  simd.Rows[float64, float64]

	begin  int // the first entry
	n      int // pieces
	starts [runPieces + 1]uint32
	vals   [2 * runEntries]float64
	sums   [2][runSums]float64 // the second with B's upper digits
}

// reset prepares for products with w columns of B in fixed point, rows of ldq elements from first on.
func (r *run) reset(p rfx.P, ints []byte, cols []uint32, b []float64, ldq, w int) {
	r.p, r.ints, r.cols, r.n = p, ints, cols, 0
	r.rows = simd.Rows[float64, float64]{N: w, LDC: w, B: b, LDB: ldq, Alpha: 1}
	if p == rfx.P47 {
		r.rows.LDB = 2 * ldq
		r.upper = b[min(ldq, len(b)):]
	}
}

// entries returns how many there are.
func (r *run) entries() int { return int(r.starts[r.n]) }

// takes reports whether a piece of n entries from begin on fits behind the others.
func (r *run) takes(begin, n int) bool {
	halves, _ := halves(r.p)
	return r.n == 0 || r.begin+r.entries() == begin && r.entries()+n <= runEntries &&
		(r.n+1)*halves*r.rows.LDC <= runSums
}

// push adds a piece.
func (r *run) push(begin, n int) {
	if r.n == 0 {
		r.begin = begin
	}
	r.n++
	r.starts[r.n] = r.starts[r.n-1] + uint32(n)
}

// compute adds up the pieces' products.
func (r *run) compute() {
	n := r.entries()
	r.widen(n)
	r.rows.Starts, r.rows.Cols, r.rows.Vals = r.starts[:r.n+1], r.cols[r.begin:], r.vals[:]
	r.rows.C = r.sums[0][:]
	switch r.p {
	case rfx.P15, rfx.P23:
		simd.RowsF64(&r.rows)
	case rfx.P31:
		simd.PairsF64(&r.rows)
	case rfx.P47:
		simd.PairsF64(&r.rows)
		lower := r.rows.B
		r.rows.B, r.rows.C = r.upper, r.sums[1][:]
		simd.PairsF64(&r.rows)
		r.rows.B = lower
	}
}

// widen makes n entries float64.
func (r *run) widen(n int) {
	ints := r.ints[r.begin*r.p.Size():][:n*r.p.Size()]
	switch r.p {
	case rfx.P15:
		simd.WidenInt16(r.vals[:], backend.View[int16](ints))
	case rfx.P23:
		simd.WidenInt32(r.vals[:], backend.View[int32](ints))
	case rfx.P31:
		simd.HalveInt32(r.vals[:], backend.View[int32](ints))
	case rfx.P47: // which are stored in two
		simd.WidenInt32(r.vals[:], backend.View[int32](ints))
	}
}

// sum returns the sums of piece i with a half of A, 0 the lower, and a digit of B.
func (r *run) sum(i, half, digit int) []float64 {
	w := r.rows.LDC
	halves, _ := halves(r.p)
	return r.sums[digit][(i*halves+half)*w:][:w]
}
