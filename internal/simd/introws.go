// Consecutive rows of products of integers, whose sums are in float64.

package simd

// IntRows is rows of a product of integers: C's rows are c[i·LDC+j] = Σ_k Vals[k]·B[Cols[k]·LDB+j] for Starts[i] ≤ k <
// Starts[i+1] and j < N. There are len(Starts)-1 of them. With Upper there are two products at once: C's row 2i has the
// sums with Vals, and row 2i+1 those with Upper.
//
// Sums are exact, whatever their order, while no sum of some of a row's products is beyond 2⁵³ in magnitude.
//
// N is a multiple of Width and at most LDC. Each Cols[k]·LDB + N is at most len(B), and the starts ascend, neither is
// checked.
type IntRows[T int16 | int32] struct {
	C    []float64
	LDC  int
	N    int
	B    []T
	LDB  int
	Vals []float64
	// Upper is nil, or as long as Vals.
	Upper []float64
	Cols  []uint32
	// Starts are places in Vals and Cols.
	Starts []uint32
	// Ahead is how many entries ahead rows of B are prefetched; 0: not at all.
	Ahead int
}

// sums returns the rows of C for each row.
func (r *IntRows[T]) sums() int {
	if r.Upper != nil {
		return 2
	}
	return 1
}

// check reports whether there is anything to do.
func (r *IntRows[T]) check() bool {
	rows := len(r.Starts) - 1
	if rows < 1 || r.N == 0 {
		return false
	}
	last := int(r.Starts[rows])
	if r.N%Width != 0 || r.N > r.LDC || len(r.C) < (r.sums()*rows-1)*r.LDC+r.N || last > len(r.Cols) ||
		last > len(r.Vals) || r.Upper != nil && len(r.Upper) != len(r.Vals) || r.Ahead < 0 {
		panic("simd: slices of rows of integers do not fit together")
	}
	return true
}

// RowsInt16 computes r. There is no Upper.
func RowsInt16(r *IntRows[int16]) {
	if r.Upper != nil {
		panic("simd: rows of integers of 16 bits with upper values")
	}
	if r.check() {
		rowsInt16(r)
	}
}

// RowsInt32 computes r.
func RowsInt32(r *IntRows[int32]) {
	if r.check() {
		rowsInt32(r)
	}
}

// oneIntRow computes rows by a function for the sums of one row, with Vals or Upper.
func oneIntRow[T int16 | int32](r *IntRows[T], row func(acc, vals []float64, cols []uint32, b []T, ldb int)) {
	for i := range len(r.Starts) - 1 {
		begin, end := r.Starts[i], r.Starts[i+1]
		for half, vals := range [][]float64{r.Vals, r.Upper}[:r.sums()] {
			c := r.C[(i*r.sums()+half)*r.LDC:][:r.N]
			if begin == end {
				clear(c)
				continue
			}
			row(c, vals[begin:end], r.Cols[begin:end], r.B, r.LDB)
		}
	}
}

func goIntRow[T int16 | int32](acc, vals []float64, cols []uint32, b []T, ldb int) {
	for j := 0; j < len(acc); j += 4 {
		var s0, s1, s2, s3 float64
		for k, col := range cols {
			v, x := vals[k], b[int(col)*ldb+j:][:4]
			s0, s1, s2, s3 = s0+v*float64(x[0]), s1+v*float64(x[1]), s2+v*float64(x[2]), s3+v*float64(x[3])
		}
		*(*[4]float64)(acc[j:]) = [4]float64{s0, s1, s2, s3}
	}
}
