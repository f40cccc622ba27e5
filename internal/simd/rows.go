// Consecutive rows of a sparse-dense product, from the entries to C in one call.

package simd

import "github.com/spmmrun/spmm/formats/half"

// Rows is rows of a product whose left operand has elements of T and whose sums are of S: C's rows are c[i·LDC+j] =
// Alpha·Σ_k Vals[k]·B[Cols[k]·LDB+j] for Starts[i] ≤ k < Starts[i+1] and j < N. There are len(Starts)-1 of them.
//
// N is at most LDC. Each Cols[k]·LDB + N, rounded up to a multiple of Width, is at most len(B), and the starts ascend,
// neither is checked. C outside the N columns is not written.
type Rows[T, S any] struct {
	C    []S
	LDC  int
	N    int
	B    []T
	LDB  int
	Vals []T
	Cols []uint32
	// Starts are places in Vals and Cols.
	Starts []uint32
	Alpha  S
	// Stream has C written past the caches, which is faster where C is larger than they are. Where rows do not lie at
	// multiples of 64 bytes it has no effect.
	Stream bool
	// Ahead is how many entries ahead rows of B are prefetched; 0: not at all.
	Ahead int
}

// check reports whether there is anything to do.
func (r *Rows[T, S]) check() bool {
	rows := len(r.Starts) - 1
	if rows < 1 || r.N == 0 {
		return false
	}
	last := int(r.Starts[rows])
	if r.N > r.LDC || len(r.C) < (rows-1)*r.LDC+r.N || last > len(r.Cols) || last > len(r.Vals) || r.Ahead < 0 {
		panic("simd: slices of rows do not fit together")
	}
	return true
}

// RowsF32 computes r.
func RowsF32(r *Rows[float32, float32]) {
	if r.check() {
		rowsF32(r)
	}
}

// RowsF16 computes r.
func RowsF16(r *Rows[half.F16, float32]) {
	if r.check() {
		rowsF16(r)
	}
}

// RowsBF16 computes r.
func RowsBF16(r *Rows[half.BF16, float32]) {
	if r.check() {
		rowsBF16(r)
	}
}

// RowsF64 computes r.
func RowsF64(r *Rows[float64, float64]) {
	if r.check() {
		rowsF64(r)
	}
}

// oneByOne computes rows by a function for one row: in C itself but for the last tile of columns, if that ends within a
// vector.
func oneByOne[T any, S float32 | float64](r *Rows[T, S], row func(acc []S, vals []T, cols []uint32, b []T, ldb int)) {
	const tile = 32 // the widest of any machine: within it, the order of sums depends on how many columns there are
	var sums [tile]S
	whole := r.N
	if r.N%Width != 0 {
		whole = r.N / tile * tile
	}
	for i := range len(r.Starts) - 1 {
		begin, end := r.Starts[i], r.Starts[i+1]
		c, cols, vals := r.C[i*r.LDC:][:r.N], r.Cols[begin:end], r.Vals[begin:end]
		row(c[:whole], vals, cols, r.B, r.LDB)
		if whole < r.N {
			row(sums[:(r.N-whole+Width-1)/Width*Width], vals, cols, r.B[min(whole, len(r.B)):], r.LDB)
			copy(c[whole:], sums[:])
		}
		if r.Alpha != 1 {
			for j := range c {
				c[j] *= r.Alpha
			}
		}
	}
}
