// Sparse matrices from any mat.Matrix, and dense ones of sparse.

package gonum

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// SparseFromMat returns the elements of m that are not 0 as a sparse matrix with entries of type T, rounded to
// nearest, ties to even, and what that lost. A NaN is an entry, and so is an element that is not 0 in float64 and
// becomes 0 in T: the pattern is m's.
//
// What m stores decides what is looked at: a mat.NonZeroDoer (band and triangular matrices; sparse ones of other
// packages) lists its elements, a mat.Banded (mat.DiagDense too), mat.Triangular or transposed matrix is read where it
// has any, and a *mat.Dense, *mat.VecDense or *mat.SymDense from its array. Any other is asked for all Rows×Cols
// elements.
//
// The error is that of a matrix with more rows or columns than a sparse one can have (2³¹−1), or of a NonZeroDoer that
// lists an element twice, or outside the matrix.
func SparseFromMat[T formats.Value](m mat.Matrix) (*formats.CSR[T], formats.Loss, error) {
	rows, cols := m.Dims()
	if rows > formats.MaxDim || cols > formats.MaxDim {
		return nil, formats.Loss{}, fmt.Errorf("a matrix of %d×%d: at most %d rows and columns are possible", rows, cols,
			formats.MaxDim)
	}
	coo := &formats.COO[T]{Rows: rows, Cols: cols}
	var values []float64
	var outside error
	visit(m, func(i, j int, v float64) {
		switch {
		case i < 0 || i >= rows || j < 0 || j >= cols:
			outside = fmt.Errorf("a matrix of %d×%d lists an element (%d, %d)", rows, cols, i, j)
		case v != 0:
			coo.Row, coo.Col, values = append(coo.Row, int32(i)), append(coo.Col, int32(j)), append(values, v)
		}
	})
	if outside != nil {
		return nil, formats.Loss{}, outside
	}
	var loss formats.Loss
	coo.Val, loss = formats.Narrow[T](values)
	a, err := coo.ToCSR(formats.RefuseDuplicates)
	if err != nil {
		return nil, formats.Loss{}, err
	}
	return a, loss, nil
}

// visit calls add for the elements of m that may not be 0, in any order.
func visit(m mat.Matrix, add func(i, j int, v float64)) {
	rows, cols := m.Dims()
	switch m := m.(type) {
	case mat.NonZeroDoer:
		m.DoNonZero(add)
		return
	case mat.Untransposer:
		visit(m.Untranspose(), func(i, j int, v float64) { add(j, i, v) })
		return
	case mat.Banded:
		below, above := m.Bandwidth()
		visitAt(m, add, func(i int) (int, int) { return max(0, i-below), min(cols, i+above+1) })
		return
	case mat.Triangular:
		_, kind := m.Triangle()
		visitAt(m, add, func(i int) (int, int) {
			if kind == mat.Upper {
				return i, cols
			}
			return 0, min(cols, i+1)
		})
		return
	case mat.RawSymmetricer:
		if s := m.RawSymmetric(); s.N == rows && s.Uplo == blas.Upper {
			visitUpper(s.N, s.Stride, s.Data, add)
			return
		}
	case mat.RawVectorer:
		if v := m.RawVector(); v.N == rows && cols == 1 {
			for i := range v.N {
				add(i, 0, v.Data[i*v.Inc])
			}
			return
		}
	}
	line := elements(m)
	for i := range rows {
		for j, v := range line(i) {
			add(i, j, v)
		}
	}
}

// visitAt adds the elements of each row from column lo to column hi-1.
func visitAt(m mat.Matrix, add func(i, j int, v float64), within func(i int) (lo, hi int)) {
	rows, _ := m.Dims()
	for i := range rows {
		lo, hi := within(i)
		for j := lo; j < hi; j++ {
			add(i, j, m.At(i, j))
		}
	}
}

// visitUpper adds the elements of a symmetric matrix whose upper triangle is stored.
func visitUpper(n, stride int, data []float64, add func(i, j int, v float64)) {
	for i := range n {
		for j := i; j < n; j++ {
			v := data[i*stride+j]
			add(i, j, v)
			if j > i {
				add(j, i, v)
			}
		}
	}
}

// SparseToMat returns a dense copy of a in float64, which is exact. A copy that exceeds the machine's memory is an
// error. gonum has no matrices with rows but no columns, or the other way round: those become empty.
func SparseToMat[T formats.Value](a *formats.CSR[T]) (*mat.Dense, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	if a.Rows == 0 || a.Cols == 0 {
		return &mat.Dense{}, nil
	}
	if err := fits(a.Rows, a.Cols, dtype.F64); err != nil {
		return nil, err
	}
	out := mat.NewDense(a.Rows, a.Cols, nil)
	raw := out.RawMatrix()
	View(a).DoNonZero(func(i, j int, v float64) { raw.Data[i*raw.Stride+j] = v })
	return out, nil
}
