// Transposes, and compressed sparse columns.

package formats_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// sorted returns a's transpose by sorting entries.
func sorted[T formats.Value](t interface{ Fatal(...any) }, a *formats.CSR[T]) *formats.CSR[T] {
	coo := a.ToCOO()
	out, err := (&formats.COO[T]{Rows: a.Cols, Cols: a.Rows, Row: coo.Col, Col: coo.Row,
		Val: coo.Val}).ToCSR(formats.RefuseDuplicates)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := drawCOO(t).ToCSR(formats.SumDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		checkTranspose(t, a)
	})
}

// Enough entries for several goroutines, and shapes that leave some of them without rows.
func TestTransposeLarge(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, spec := range []string{
		"gen:uniform,rows=300,cols=5000,density=0.1",
		"gen:powerlaw,rows=20000,cols=20000,nnz-per-row=10",
		"gen:uniform,rows=1,cols=200000,density=0.9",
		"gen:uniform,rows=200000,cols=1,density=0.9",
		"gen:uniform,rows=3,cols=60000,density=0.8",
	} {
		a, err := gen.CSR(spec)
		if err != nil {
			t.Fatal(err)
		}
		checkTranspose(t, a)
	}
}

func checkTranspose(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, a *formats.CSR[float32]) {
	want := sorted(t, a)
	got := a.Transpose()
	if err := got.Validate(); err != nil || !got.Equal(want) {
		t.Fatalf("wrong transpose of %d×%d with %d entries (%v)", a.Rows, a.Cols, a.NNZ(), err)
	}
	if !got.Transpose().Equal(a) {
		t.Fatal("the transpose's transpose is another matrix")
	}
	c := &formats.CSC[float32]{Rows: a.Cols, Cols: a.Rows, ColPtr: a.RowPtr, RowIdx: a.ColIdx, Val: a.Val} // aᵀ
	if err := c.Validate(); err != nil || !c.CSR().Equal(want) || !formats.Convert[float32](c.Sparse()).Equal(want) {
		t.Fatalf("by columns it is another matrix (%v)", err)
	}
	if back := formats.Transpose(c).(*formats.CSR[float32]); !back.Equal(a) || len(a.Val) > 0 &&
		&back.Val[0] != &a.Val[0] {
		t.Fatal("what is stored by columns is not transposed as it lies")
	}
	if rows, cols := c.Dims(); rows != a.Cols || cols != a.Rows || c.NNZ() != a.NNZ() {
		t.Fatalf("by columns it has %d rows, %d columns, %d entries", rows, cols, c.NNZ())
	}
	cols := c.PanelCols(nil, 0) // its only panel
	if c.PanelRows() < c.Rows || !slices.IsSorted(cols) || len(slices.Compact(cols)) != rowsWithEntries(a) {
		t.Fatal("wrong columns of the panel")
	}
}

func rowsWithEntries(a *formats.CSR[float32]) (n int) {
	for i := range a.Rows {
		if a.RowPtr[i] < a.RowPtr[i+1] {
			n++
		}
	}
	return n
}

// Any type and any format is transposed.
func TestTransposeEncoded(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=30,cols=50,density=0.2")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		got := formats.Transpose(formats.ConvertTo(a, typ)).Sparse()
		want := formats.ConvertTo(sorted(t, a), typ)
		if got.Type() != typ || !formats.Convert[float32](got).Equal(formats.Convert[float32](want)) {
			t.Errorf("wrong transpose of %v", typ)
		}
	}
}

func TestCSCValidate(t *testing.T) {
	for name, x := range map[string]struct {
		m    formats.Encoded
		want string
	}{
		"rows that do not ascend": {&formats.CSC[float32]{Rows: 3, Cols: 1, ColPtr: []int64{0, 2}, RowIdx: []int32{1, 0}, Val: []float32{1, 2}}, "row 0, position 1: column 0 comes after column 1"},
		"a row too many":          {&formats.CSC[half.F16]{Rows: 1, Cols: 1, ColPtr: []int64{0, 1}, RowIdx: []int32{1}, Val: make([]half.F16, 1)}, "is outside the 1 columns"},
		"no pointers":             {&formats.CSC[float32]{Rows: 1, Cols: 1}, "0 row pointers for 1 rows"},
	} {
		if err := x.m.Validate(); err == nil || !strings.Contains(err.Error(), x.want) ||
			!strings.HasPrefix(err.Error(), "transposed, as csc is stored: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleCSC() {
	// 1 0 2
	// 0 0 3
	a := &formats.CSC[float32]{Rows: 2, Cols: 3, ColPtr: []int64{0, 1, 1, 3}, RowIdx: []int32{0, 0, 1},
		Val: []float32{1, 2, 3}}
	b := a.CSR()
	fmt.Println(b.RowPtr, b.ColIdx, b.Val)
	// Output: [0 2 3] [0 2 2] [1 2 3]
}
