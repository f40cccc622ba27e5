// Both ways, held against gorgonia's own At.

package gorgonia_test

import (
	"math"
	"strings"
	"testing"

	"gorgonia.org/tensor"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gorgonia"
)

// at returns an element of a tensor of one or two axes, or a scalar.
func at[T gorgonia.Float](t *rapid.T, x *tensor.Dense, i, j int) T {
	coordinates := []int{i, j}
	if x.Dims() == 1 {
		coordinates = []int{max(i, j)}
	}
	v, err := x.At(coordinates...)
	if err != nil {
		t.Fatal(err)
	}
	return v.(T)
}

// numbered has elements that are all different.
func numbered[T gorgonia.Float](t *rapid.T) *formats.Dense[T] {
	size := rapid.IntRange(1, 6)
	d := &formats.Dense[T]{Rows: size.Draw(t, "rows"), Cols: size.Draw(t, "cols"), ColMajor: rapid.Bool().Draw(t, "order")}
	lines, width := d.Rows, d.Cols
	if d.ColMajor {
		lines, width = width, lines
	}
	d.LD = width + rapid.IntRange(0, 3).Draw(t, "padding")
	d.Data = make([]T, lines*d.LD)
	for i := range d.Data {
		d.Data[i] = T(i + 1)
	}
	return d
}

func TestDense(t *testing.T) {
	t.Run("f32", rapid.MakeCheck(testDense[float32]))
	t.Run("f64", rapid.MakeCheck(testDense[float64]))
}

// Every order and stride: the tensor has the matrix's elements, and so has what is made of the tensor; and all share
// them.
func testDense[T gorgonia.Float](t *rapid.T) {
	d := numbered[T](t)
	x, err := gorgonia.ToDense(d)
	if err != nil {
		t.Fatal(err)
	}
	if d.Rows*d.Cols == 1 {
		t.Skip("gorgonia gives a scalar's number, not its place")
	}
	for i := range d.Rows {
		for j := range d.Cols {
			if got := at[T](t, x, i, j); got != d.At(i, j) {
				t.Fatalf("(%d, %d) of shape %v and strides %v is %v, want %v", i, j, x.Shape(), x.Strides(), got, d.At(i, j))
			}
		}
	}
	back, err := gorgonia.FromDense[T](x)
	if err != nil {
		t.Fatal(err)
	}
	want := *d
	if x.Dims() == 1 { // a row or a column with a stride
		want = formats.Dense[T]{Rows: d.Rows * d.Cols, Cols: 1, LD: d.LD, Data: d.Data}
	}
	if !back.Equal(&want) {
		t.Fatalf("%+v became %+v", d, back)
	}
	back.Set(back.Rows-1, back.Cols-1, -1)
	if d.At(d.Rows-1, d.Cols-1) != -1 || at[T](t, x, d.Rows-1, d.Cols-1) != -1 {
		t.Fatal("elements are not shared")
	}
}

// A part of a tensor, and the transpose of one, are read where they lie.
func TestPartsAndTransposes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := numbered[float32](t)
		if whole.Rows < 2 || whole.Cols < 2 {
			t.Skip()
		}
		x, err := gorgonia.ToDense(whole)
		if err != nil {
			t.Fatal(err)
		}
		top := rapid.IntRange(0, whole.Rows-2).Draw(t, "top")
		left := rapid.IntRange(0, whole.Cols-2).Draw(t, "left")
		view, err := x.Slice(tensor.S(top, whole.Rows), tensor.S(left, whole.Cols))
		if err != nil {
			t.Fatal(err)
		}
		part := view.(*tensor.Dense)
		compare := func(d *formats.Dense[float32], err error, transposed bool) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Rows {
				for j := range d.Cols {
					r, c := i, j
					if transposed {
						r, c = j, i
					}
					if d.At(i, j) != whole.At(top+r, left+c) {
						t.Fatalf("(%d, %d) is %v, want %v", i, j, d.At(i, j), whole.At(top+r, left+c))
					}
				}
			}
		}
		d, err := gorgonia.FromDense[float32](part)
		compare(d, err, false)
		if err := part.T(); err != nil {
			t.Fatal(err)
		}
		d, err = gorgonia.FromDense[float32](part)
		compare(d, err, true)
		if d.Rows != whole.Cols-left || d.Cols != whole.Rows-top {
			t.Fatalf("the transpose is %d×%d", d.Rows, d.Cols)
		}
	})
}

// Vectors are columns, also those cut out of a matrix.
func TestVectors(t *testing.T) {
	m := tensor.New(tensor.WithShape(3, 4), tensor.WithBacking(tensor.Range(tensor.Float64, 0, 12)))
	for name, c := range map[string]struct {
		slices []tensor.Slice
		want   []float64
	}{
		"row":    {[]tensor.Slice{tensor.S(1), nil}, []float64{4, 5, 6, 7}},
		"column": {[]tensor.Slice{nil, tensor.S(2)}, []float64{2, 6, 10}},
	} {
		view, err := m.Slice(c.slices...)
		if err != nil {
			t.Fatal(err)
		}
		d, err := gorgonia.FromDense[float64](view.(*tensor.Dense))
		if err != nil || d.Rows != len(c.want) || d.Cols != 1 {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		for i, want := range c.want {
			if d.At(i, 0) != want {
				t.Errorf("%s: element %d is %v, want %v", name, i, d.At(i, 0), want)
			}
		}
	}
}

// Compressed by rows and by columns, there and back, with values shared.
func TestSparse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := numbered[float32](t)
		for i := range d.Data {
			if rapid.Bool().Draw(t, "zero") {
				d.Data[i] = 0
			}
		}
		a := d.ToCSR()
		if len(a.Val) == 0 {
			t.Skip("gorgonia has no slices without elements")
		}
		x, err := gorgonia.ToCSR(a)
		check(t, x, err, d)
		transposed := a.Transpose()
		c := &formats.CSC[float32]{Rows: a.Rows, Cols: a.Cols, ColPtr: transposed.RowPtr, RowIdx: transposed.ColIdx,
			Val: transposed.Val}
		x, err = gorgonia.ToCSC(c)
		check(t, x, err, d)
	})
}

// check compares a sparse tensor, and what it becomes, with a dense matrix.
func check(t *rapid.T, x *tensor.CS, err error, d *formats.Dense[float32]) {
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Rows {
		for j := range d.Cols {
			if v, err := x.At(i, j); err != nil || v != d.At(i, j) {
				t.Fatalf("(%d, %d) is %v, want %v (%v)", i, j, v, d.At(i, j), err)
			}
		}
	}
	e, err := gorgonia.FromCS[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	if formats.ByColumns(e) != x.DataOrder().IsColMajor() {
		t.Fatalf("%T of a tensor of order %v", e, x.DataOrder())
	}
	a := e.Sparse().(*formats.CSR[float32])
	if got, want := a, d.ToCSR(); !got.Equal(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	shared := x.Data().([]float32)
	switch e := e.(type) {
	case *formats.CSR[float32]:
		if &e.Val[0] != &shared[0] {
			t.Fatal("values of CSR are copied")
		}
	case *formats.CSC[float32]:
		if &e.Val[0] != &shared[0] {
			t.Fatal("values of CSC are copied")
		}
	}
}

func TestRefused(t *testing.T) {
	cube := tensor.New(tensor.WithShape(2, 2, 2), tensor.Of(tensor.Float32))
	masked := tensor.New(tensor.WithShape(2, 2), tensor.WithBacking(make([]float32, 4), make([]bool, 4)))
	whole := tensor.New(tensor.WithShape(6, 6), tensor.Of(tensor.Float32))
	every, err := whole.Slice(tensor.S(0, 6, 2), tensor.S(0, 6, 2))
	if err != nil {
		t.Fatal(err)
	}
	ptr, idx := []int{0, 1, 2}, []int{0, 2}
	sparse := func(idx, ptr []int, opts ...tensor.ConsOpt) *tensor.CS {
		return tensor.NewCSR(idx, ptr, []float32{1, 2}, opts...)
	}
	shape := tensor.WithShape(2, 3)
	for name, c := range map[string]struct {
		f    func() error
		want string
	}{
		"three axes": {from(cube), "want one or two axes"},
		"a mask":     {from(masked), "with a mask"},
		"float64":    {from(tensor.New(tensor.WithShape(2, 2), tensor.Of(tensor.Float64))), "[]float64: want []float32"},
		"a scalar":   {from(tensor.New(tensor.FromScalar(float32(1)))), "float32: want []float32"},
		"every other": {from(every.(*tensor.Dense)),
			"strides 12 and 2: want 1 for one of them"},
		"no elements": {to(&formats.Dense[float32]{Rows: 0, Cols: 3, LD: 3}), "0×3 matrix: want one with elements"},
		"short data": {to(&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 4, Data: make([]float32, 7)}),
			"7 elements in memory: want 8"},
		"no data":        {to(&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 3}), "data"},
		"no shape":       {fromCS(sparse(idx, ptr)), "want two axes"},
		"index":          {fromCS(sparse([]int{0, 3}, ptr, shape)), "an index of 3: want 0 to 2"},
		"a large index":  {fromCS(sparse([]int{0, 1 << 32}, ptr, shape)), "an index of 4294967296: want 0 to 2"},
		"offset":         {fromCS(sparse(idx, []int{0, -1, 2}, shape)), "an offset of -1: want 0 to 2"},
		"not ascending":  {fromCS(sparse([]int{2, 0}, []int{0, 2, 2}, shape)), "row 0"},
		"many rows":      {fromCS(sparse(idx, ptr, tensor.WithShape(math.MaxInt32+1, 3))), "at most"},
		"sparse float64": {fromCS(tensor.NewCSR(idx, ptr, []float64{1, 2}, shape)), "[]float64: want []float32"},
		"CSR": {func() error {
			_, err := gorgonia.ToCSR(&formats.CSR[float32]{Rows: 2, Cols: 3})
			return err
		}, "0 row pointers for 2 rows, want 3"},
		"CSC": {func() error {
			_, err := gorgonia.ToCSC(&formats.CSC[float32]{Rows: 2, Cols: 3})
			return err
		}, "0 row pointers for 3 rows, want 4"},
	} {
		if err := c.f(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func from(x *tensor.Dense) func() error {
	return func() error { _, err := gorgonia.FromDense[float32](x); return err }
}

func to(d *formats.Dense[float32]) func() error {
	return func() error { _, err := gorgonia.ToDense(d); return err }
}

func fromCS(x *tensor.CS) func() error {
	return func() error { _, err := gorgonia.FromCS[float32](x); return err }
}
