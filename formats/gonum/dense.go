// Dense matrices: those of float32 share their elements, those of float64 are converted.

package gonum

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/memory"
)

// FromGeneral returns a row-major matrix that shares g's elements.
func FromGeneral(g blas32.General) *formats.Dense[float32] {
	return &formats.Dense[float32]{Rows: g.Rows, Cols: g.Cols, LD: g.Stride, Data: g.Data}
}

// FromGeneralCols returns a column-major matrix that shares g's elements.
func FromGeneralCols(g blas32.GeneralCols) *formats.Dense[float32] {
	return &formats.Dense[float32]{Rows: g.Rows, Cols: g.Cols, LD: g.Stride, ColMajor: true, Data: g.Data}
}

// ToGeneral returns a matrix that shares d's elements. A column-major d is an error: d.Layout(false, 0) is a copy that
// is row-major.
func ToGeneral(d *formats.Dense[float32]) (blas32.General, error) {
	if err := ordered(d, false); err != nil {
		return blas32.General{}, err
	}
	return blas32.General{Rows: d.Rows, Cols: d.Cols, Stride: max(1, d.LD), Data: d.Data}, nil
}

// ToGeneralCols returns a matrix that shares d's elements. A row-major d is an error: d.Layout(true, 0) is a copy that
// is column-major.
func ToGeneralCols(d *formats.Dense[float32]) (blas32.GeneralCols, error) {
	if err := ordered(d, true); err != nil {
		return blas32.GeneralCols{}, err
	}
	return blas32.GeneralCols{Rows: d.Rows, Cols: d.Cols, Stride: max(1, d.LD), Data: d.Data}, nil
}

// ordered refuses a matrix that is wrong or in the other order.
func ordered(d *formats.Dense[float32], colMajor bool) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if d.ColMajor != colMajor {
		return fmt.Errorf("a %d×%d matrix in %s order, want %s: Layout copies it into the other", d.Rows, d.Cols, order(d.ColMajor), order(colMajor))
	}
	return nil
}

func order(colMajor bool) string {
	if colMajor {
		return "column-major"
	}
	return "row-major"
}

// FromMat returns a copy of m with elements of type T, rounded to nearest, ties to even, and what that lost. The copy
// has no padding; it is row-major, or column-major for a transpose (mat.Dense.T). A *mat.Dense and its transpose are
// read line by line, any other m by its method At. The error is that of a copy that exceeds the machine's memory, as
// one of a large sparse matrix may.
func FromMat[T formats.Value](m mat.Matrix) (*formats.Dense[T], formats.Loss, error) {
	if t, ok := m.(mat.Untransposer); ok {
		d, loss, err := FromMat[T](t.Untranspose())
		if err == nil {
			d.Rows, d.Cols, d.ColMajor = d.Cols, d.Rows, !d.ColMajor
		}
		return d, loss, err
	}
	rows, cols := m.Dims()
	if err := fits(rows, cols, formats.TypeOf[T]()); err != nil {
		return nil, formats.Loss{}, err
	}
	d := formats.NewDense[T](rows, cols)
	line := elements(m)
	var loss formats.Loss
	for i := range rows {
		loss.Add(formats.NarrowSlice(d.Line(i), line(i)))
	}
	return d, loss, nil
}

// fits refuses a dense matrix that exceeds the memory that there is.
func fits(rows, cols int, t dtype.Type) error {
	if most := memory.Available(); most > 0 && cols > 0 && int64(rows) > most/int64(t.Size())/int64(cols) {
		return fmt.Errorf("a dense %d×%d matrix of %v exceeds the %d bytes of memory that are available", rows, cols, t, most)
	}
	return nil
}

// elements returns a function that returns a row of m, which is valid until the next call.
func elements(m mat.Matrix) func(i int) []float64 {
	rows, cols := m.Dims()
	if r, ok := m.(mat.RawMatrixer); ok {
		if g := r.RawMatrix(); whole(g, rows, cols) {
			return func(i int) []float64 { return g.Data[i*g.Stride:][:cols] }
		}
	}
	row := make([]float64, cols)
	return func(i int) []float64 {
		for j := range row {
			row[j] = m.At(i, j)
		}
		return row
	}
}

// whole reports whether g holds a matrix of that size.
func whole(g blas64.General, rows, cols int) bool {
	return g.Rows == rows && g.Cols == cols && (rows == 0 || g.Stride >= cols && len(g.Data) >= (rows-1)*g.Stride+cols)
}

// ToMat returns a copy of d in float64, which is exact. gonum has no matrices with rows but no columns, or the other
// way round: those become empty.
func ToMat[T formats.Value](d *formats.Dense[T]) *mat.Dense {
	if d.Rows == 0 || d.Cols == 0 {
		return &mat.Dense{}
	}
	out := mat.NewDense(d.Rows, d.Cols, nil)
	raw := out.RawMatrix()
	if d.ColMajor {
		d = d.Layout(false, 0)
	}
	line := make([]float32, d.Cols)
	for i := range d.Rows {
		formats.ConvertSlice(line, d.Line(i))
		widen(raw.Data[i*raw.Stride:], line)
	}
	return out
}

func widen(dst []float64, src []float32) {
	for i, v := range src {
		dst[i] = float64(v)
	}
}
