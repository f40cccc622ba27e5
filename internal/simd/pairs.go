// Consecutive rows of a product whose entries have two values each.

package simd

// PairsF64 computes two products at once, which share their columns: entry k has the values Vals[2k] and Vals[2k+1], and
// row i of the two is rows 2i and 2i+1 of C. Otherwise it is RowsF64 with Alpha = 1; N is a multiple of Width, and
// Stream has no effect.
func PairsF64(r *Rows[float64, float64]) {
	rows := len(r.Starts) - 1
	if rows < 1 || r.N == 0 {
		return
	}
	last := int(r.Starts[rows])
	if r.N%Width != 0 || r.N > r.LDC || len(r.C) < (2*rows-1)*r.LDC+r.N || last > len(r.Cols) || 2*last > len(r.Vals) ||
		r.Ahead < 0 {
		panic("simd: slices of pairs of rows do not fit together")
	}
	pairsF64(r)
}

func goPairsF64(r *Rows[float64, float64]) {
	for i := range len(r.Starts) - 1 {
		for j := 0; j < r.N; j += 4 {
			var l0, l1, l2, l3, h0, h1, h2, h3 float64
			for k := r.Starts[i]; k < r.Starts[i+1]; k++ {
				x := r.B[int(r.Cols[k])*r.LDB+j:][:4]
				l, h := r.Vals[2*k], r.Vals[2*k+1]
				l0, l1, l2, l3 = l0+l*x[0], l1+l*x[1], l2+l*x[2], l3+l*x[3]
				h0, h1, h2, h3 = h0+h*x[0], h1+h*x[1], h2+h*x[2], h3+h*x[3]
			}
			*(*[4]float64)(r.C[2*i*r.LDC+j:]) = [4]float64{l0, l1, l2, l3}
			*(*[4]float64)(r.C[(2*i+1)*r.LDC+j:]) = [4]float64{h0, h1, h2, h3}
		}
	}
}
