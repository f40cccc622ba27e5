// Both ways, held against gonum's own At, for every kind of matrix that gonum has.

package gonum_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gonum"
	"github.com/spmmrun/spmm/formats/half"
)

// values draws n numbers, most of them 0, all exact in every element type.
func values(t *rapid.T, n int) []float64 {
	one := rapid.Map(rapid.IntRange(-40, 24), func(i int) float64 {
		if i < 0 {
			return 0
		}
		return float64(i-12) / 4
	})
	return rapid.SliceOfN(one, n, n).Draw(t, "values")
}

// kinds of gonum's matrices. Each is of side×side elements, or near that.
var kinds = map[string]func(t *rapid.T, n int) mat.Matrix{
	"dense": func(t *rapid.T, n int) mat.Matrix { return mat.NewDense(n, n+2, values(t, n*(n+2))) },
	"part of a dense": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewDense(n+2, n+3, values(t, (n+2)*(n+3))).Slice(1, n+1, 2, n+2)
	},
	"transpose": func(t *rapid.T, n int) mat.Matrix { return mat.NewDense(n, n+2, values(t, n*(n+2))).T() },
	"transpose of a part": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewDense(n+2, n+3, values(t, (n+2)*(n+3))).Slice(1, n+1, 2, n+3).T()
	},
	"vector":     func(t *rapid.T, n int) mat.Matrix { return mat.NewVecDense(n, values(t, n)) },
	"row vector": func(t *rapid.T, n int) mat.Matrix { return mat.NewVecDense(n, values(t, n)).T() },
	"column":     func(t *rapid.T, n int) mat.Matrix { return mat.NewDense(n, 3, values(t, 3*n)).ColView(1) },
	"symmetric":  func(t *rapid.T, n int) mat.Matrix { return mat.NewSymDense(n, values(t, n*n)) },
	"diagonal":   func(t *rapid.T, n int) mat.Matrix { return mat.NewDiagDense(n, values(t, n)) },
	"upper":      func(t *rapid.T, n int) mat.Matrix { return mat.NewTriDense(n, mat.Upper, values(t, n*n)) },
	"lower":      func(t *rapid.T, n int) mat.Matrix { return mat.NewTriDense(n, mat.Lower, values(t, n*n)) },
	"upper, transposed": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewTriDense(n, mat.Upper, values(t, n*n)).TTri()
	},
	"band": func(t *rapid.T, n int) mat.Matrix {
		kl, ku := rapid.IntRange(0, n-1).Draw(t, "kl"), rapid.IntRange(0, n-1).Draw(t, "ku")
		return mat.NewBandDense(n, n, kl, ku, values(t, n*(kl+ku+1)))
	},
	"wide band": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewBandDense(n, n+2, 0, 1, values(t, 2*n))
	},
	"band, transposed": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewBandDense(n, n, 0, n-1, values(t, n*n)).TBand()
	},
	"symmetric band": func(t *rapid.T, n int) mat.Matrix {
		k := rapid.IntRange(0, n-1).Draw(t, "k")
		return mat.NewSymBandDense(n, k, values(t, n*(k+1)))
	},
	"triangular band": func(t *rapid.T, n int) mat.Matrix {
		k := rapid.IntRange(0, n-1).Draw(t, "k")
		return mat.NewTriBandDense(n, k, mat.Lower, values(t, n*(k+1)))
	},
	"tridiagonal": func(t *rapid.T, n int) mat.Matrix {
		return mat.NewTridiag(n, values(t, max(0, n-1)), values(t, n), values(t, max(0, n-1)))
	},
	"view of a sparse one": func(t *rapid.T, n int) mat.Matrix {
		a, _, err := gonum.SparseFromMat[half.BF16](mat.NewDense(n, n+1, values(t, n*(n+1))))
		if err != nil {
			t.Fatal(err)
		}
		return gonum.View(a)
	},
	"transposed view": func(t *rapid.T, n int) mat.Matrix {
		a, _, err := gonum.SparseFromMat[half.F16](mat.NewDense(n, n+1, values(t, n*(n+1))))
		if err != nil {
			t.Fatal(err)
		}
		return gonum.View(a).T()
	},
	"one of somebody's own": func(t *rapid.T,
		n int) mat.Matrix {
		return plain{mat.NewDense(n, n+1, values(t, n*(n+1)))}
	},
	"one of somebody's own, transposed": func(t *rapid.T,
		n int) mat.Matrix {
		return plain{mat.NewDense(n, n+1, values(t, n*(n+1)))}.T()
	},
}

// plain has the methods of mat.Matrix alone.
type plain struct{ m mat.Matrix }

func (p plain) Dims() (int, int)    { return p.m.Dims() }
func (p plain) At(i, j int) float64 { return p.m.At(i, j) }
func (p plain) T() mat.Matrix       { return mat.Transpose{Matrix: p} }

// Every kind of matrix becomes dense and sparse, and the same again, element by element.
func TestEveryKind(t *testing.T) {
	for name, draw := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := draw(t, rapid.IntRange(1, 9).Draw(t, "n"))
				testDense[float32](t, m)
				testDense[half.F16](t, m)
				testSparse[float32](t, m)
				testSparse[half.BF16](t, m)
			})
		})
	}
}

func testDense[T formats.Value](t *rapid.T, m mat.Matrix) {
	d, loss, err := gonum.FromMat[T](m)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	rows, cols := m.Dims()
	if loss != (formats.Loss{Values: int64(rows * cols)}) {
		t.Fatalf("%v", loss)
	}
	if back := gonum.ToMat(d); !mat.Equal(back, m) {
		t.Fatalf("%v\nbecame\n%v", mat.Formatted(m), mat.Formatted(back))
	}
}

func testSparse[T formats.Value](t *rapid.T, m mat.Matrix) {
	a, loss, err := gonum.SparseFromMat[T](m)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Fatal(err)
	}
	rows, cols := m.Dims()
	nonzero := 0
	for i := range rows {
		for j := range cols {
			if m.At(i, j) != 0 {
				nonzero++
			}
		}
	}
	if len(a.Val) != nonzero || loss != (formats.Loss{Values: int64(nonzero)}) {
		t.Fatalf("%d entries and %v of %d elements that are not 0", len(a.Val), loss, nonzero)
	}
	if v := gonum.View(a); !mat.Equal(v, m) || !mat.Equal(v.T(), m.T()) || !mat.Equal(v.T().T(), m) {
		t.Fatalf("%v\nis seen as\n%v", mat.Formatted(m), mat.Formatted(v))
	}
	back, err := gonum.SparseToMat(a)
	if err != nil || !mat.Equal(back, m) {
		t.Fatalf("%v\nbecame\n%v (%v)", mat.Formatted(m), mat.Formatted(back), err)
	}
}

// counting counts how often it is asked for an element. Embedding gives it the methods that say where it has any.
type counting struct {
	mat.Banded
	asked *int
}

func (c counting) At(i, j int) float64 { *c.asked++; return c.Banded.At(i, j) }

// A matrix that knows where its elements are is not asked for all.
func TestElementsAskedFor(t *testing.T) {
	const n = 1000
	asked := 0
	d := mat.NewDiagDense(n, nil)
	d.SetDiag(3, 1.5)
	a, _, err := gonum.SparseFromMat[float32](counting{d, &asked})
	if err != nil || len(a.Val) != 1 || asked != n {
		t.Errorf("asked %d times for the elements of a diagonal matrix of %d; %v", asked, n, err)
	}
}

// lister lists what it is told to.
type lister struct {
	plain
	at [][2]int
}

func (l lister) DoNonZero(fn func(i, j int, v float64)) {
	for _, at := range l.at {
		fn(at[0], at[1], 1)
	}
}

func TestWrongLists(t *testing.T) {
	two := plain{mat.NewDense(2, 2, nil)}
	for want, l := range map[string][][2]int{
		"a matrix of 2×2 lists an element (0, 2)":       {{0, 0}, {0, 2}},
		"a matrix of 2×2 lists an element (-1, 0)":      {{-1, 0}},
		"row 1, column 0 (from 0): more than one entry": {{1, 0}, {0, 1}, {1, 0}},
	} {
		if _, _, err := gonum.SparseFromMat[float32](lister{two, l}); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", l, err, want)
		}
	}
}

// large has more elements than fit anywhere.
type large struct{ plain }

func (large) Dims() (int, int) { return math.MaxInt, math.MaxInt }

func TestTooLarge(t *testing.T) {
	if _, _, err := gonum.SparseFromMat[float32](large{}); math.MaxInt > formats.MaxDim && err == nil {
		t.Error("too many rows are taken")
	}
	if _, _, err := gonum.FromMat[float32](large{}); err == nil {
		t.Error("too many elements are taken")
	}
	a := &formats.CSR[float32]{Rows: 1 << 30, Cols: 1 << 30, RowPtr: make([]int64, 1<<10)}
	if _, err := gonum.SparseToMat(a); err == nil {
		t.Error("a matrix that is not valid is taken")
	}
	a = &formats.CSR[float32]{Rows: 1 << 10, Cols: 1<<31 - 1, RowPtr: make([]int64, 1<<10+1)}
	if _, err := gonum.SparseToMat(a); err == nil {
		t.Error("2⁴¹ elements are taken")
	}
}

// A NaN is an entry; an element that becomes 0 stays one; both are said.
func TestLoss(t *testing.T) {
	m := mat.NewDense(2, 3, []float64{0, math.NaN(), 1e-60, 1e60, 0.1, 2})
	a, loss, err := gonum.SparseFromMat[float32](m)
	want := formats.Loss{Values: 5, Rounded: 1, Zeroed: 1, Overflowed: 1, NaNs: 1, MaxError: 1}
	if err != nil || loss != want || len(a.Val) != 5 {
		t.Errorf("%d entries, %+v, want 5, %+v (%v)", len(a.Val), loss, want, err)
	}
	want.Values = 6
	if _, loss, err := gonum.FromMat[float32](m); err != nil || loss != want {
		t.Errorf("%+v, want %+v (%v)", loss, want, err)
	}
}

// Matrices of float32 share their elements in both directions.
func TestShared(t *testing.T) {
	data := []float32{1, 2, 3, -1, 4, 5, 6, -1}
	g := blas32.General{Rows: 2, Cols: 3, Stride: 4, Data: data}
	d := gonum.FromGeneral(g)
	d.Set(1, 2, 60)
	if data[6] != 60 {
		t.Error("FromGeneral copies")
	}
	back, err := gonum.ToGeneral(d)
	if diff := cmp.Diff(g, back); diff != "" || err != nil || &back.Data[0] != &data[0] {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := gonum.ToGeneralCols(d); err == nil {
		t.Error("a row-major matrix is taken as a column-major one")
	}

	c := blas32.GeneralCols{Rows: 3, Cols: 2, Stride: 4, Data: data}
	e := gonum.FromGeneralCols(c)
	if e.At(2, 1) != 60 || e.At(1, 0) != 2 {
		t.Errorf("%+v", e)
	}
	e.Set(0, 1, 40)
	if data[4] != 40 {
		t.Error("FromGeneralCols copies")
	}
	cols, err := gonum.ToGeneralCols(e)
	if diff := cmp.Diff(c, cols); diff != "" || err != nil || &cols.Data[0] != &data[0] {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := gonum.ToGeneral(e); err == nil {
		t.Error("a column-major matrix is taken as a row-major one")
	}
	if _, err := gonum.ToGeneral(&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 3, Data: data[:5]}); err == nil {
		t.Error("data that are too short are taken")
	}
}

// What has no elements, with rows or without.
func TestEmpty(t *testing.T) {
	for _, size := range [][2]int{{0, 0}, {3, 0}, {0, 3}} {
		a := &formats.CSR[float32]{Rows: size[0], Cols: size[1], RowPtr: make([]int64, size[0]+1)}
		v := gonum.View(a)
		if r, c := v.Dims(); r != size[0] || c != size[1] {
			t.Errorf("%v is seen as %d×%d", size, r, c)
		}
		for _, m := range []mat.Matrix{v, v.T()} {
			r, c := m.Dims()
			b, _, err := gonum.SparseFromMat[float32](m)
			if err != nil || b.Rows != r || b.Cols != c {
				t.Errorf("%v: %+v, %v", size, b, err)
			}
			d, _, err := gonum.FromMat[float32](m)
			if err != nil || d.Rows != r || d.Cols != c {
				t.Errorf("%v: %+v, %v", size, d, err)
			}
			if !gonum.ToMat(d).IsEmpty() {
				t.Errorf("%v has elements", size)
			}
		}
		if d, err := gonum.SparseToMat(a); err != nil || !d.IsEmpty() {
			t.Errorf("%v: %v", size, err)
		}
	}
	for _, m := range []mat.Matrix{&mat.Dense{}, &mat.SymDense{}, &mat.VecDense{}, &mat.BandDense{}, &mat.DiagDense{},
		&mat.Tridiag{}} {
		if a, _, err := gonum.SparseFromMat[float32](m); err != nil || len(a.Val) > 0 {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// At panics outside, as gonum's matrices do.
func TestOutside(t *testing.T) {
	v := gonum.View(&formats.CSR[float32]{Rows: 2, Cols: 3, RowPtr: make([]int64, 3)})
	for _, c := range []struct {
		m    mat.Matrix
		i, j int
		want any
	}{
		{v, 2, 0, mat.ErrRowAccess}, {v, -1, 0, mat.ErrRowAccess}, {v, 0, 3, mat.ErrColAccess},
		{v.T(), 3, 0, mat.ErrRowAccess}, {v.T(), 0, 2, mat.ErrColAccess},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("(%d, %d): %v, want %v", c.i, c.j, got, c.want)
				}
			}()
			c.m.At(c.i, c.j)
		}()
	}
}

// Matrices of float64 are read as they are.
func TestViewOfFloat64(t *testing.T) {
	a := &formats.CSR[float64]{Rows: 1, Cols: 2, RowPtr: []int64{0, 1}, ColIdx: []int32{1}, Val: []float64{0.1}}
	if x := gonum.View(a).At(0, 1); x != 0.1 {
		t.Errorf("%v, want 0.1", x)
	}
}
