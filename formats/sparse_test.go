// Matrices whose element type is known at run time only.

package formats_test

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// typeName is called by Dispatch: its instances know their type.
func typeName[T formats.Value](a *formats.CSR[T]) dtype.Type { return formats.TypeOf[T]() }

// spoil changes the values of a.
func spoil[T formats.Value](a *formats.CSR[T]) int {
	for p := range a.Val {
		formats.ConvertSlice(a.Val[p:p+1], []float32{-1})
	}
	return len(a.Val)
}

func TestSparse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f32, err := drawCOO(t).ToCSR(formats.SumDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			a := formats.ConvertTo(f32, typ)
			if got := formats.Dispatch(a, typeName[half.F16], typeName[half.BF16], typeName[float32],
				typeName[float64]); got != typ || a.Type() != typ {
				t.Fatalf("a matrix of %v is dispatched as %v", typ, got)
			}
			if formats.ConvertTo(a, typ) != a {
				t.Fatal("a conversion to the same type copies")
			}
			want := formats.Convert[float32](a)
			checkRange(t, a, want)
			c := a.Clone()
			formats.Dispatch(c, spoil[half.F16], spoil[half.BF16], spoil[float32], spoil[float64])
			ptr, idx := c.Pattern()
			clear(ptr)
			clear(idx)
			if !formats.Convert[float32](a).Equal(want) {
				t.Fatal("a clone shares memory")
			}
		}
	})
}

// checkRange holds a range of a's rows against the entries of want.
func checkRange(t *rapid.T, a formats.Sparse, want *formats.CSR[float32]) {
	lo := rapid.IntRange(0, want.Rows).Draw(t, "lo")
	hi := rapid.IntRange(lo, want.Rows).Draw(t, "hi")
	part := formats.Convert[float32](a.RowRange(lo, hi))
	if err := part.Validate(); err != nil || part.Rows != hi-lo || part.Cols != want.Cols {
		t.Fatalf("rows %d to %d of %d×%d are %d×%d (%v)", lo, hi, want.Rows, want.Cols, part.Rows, part.Cols, err)
	}
	for i := range part.Rows {
		p, q, u, v := part.RowPtr[i], part.RowPtr[i+1], want.RowPtr[lo+i], want.RowPtr[lo+i+1]
		if !slices.Equal(part.ColIdx[p:q], want.ColIdx[u:v]) || !slices.Equal(part.Val[p:q], want.Val[u:v]) {
			t.Fatalf("row %d of rows %d to %d differs", i, lo, hi)
		}
	}
}

// A list of entries may be changed without changing the matrix that it was made from.
func TestToCOOCopies(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 1, Cols: 3, RowPtr: []int64{0, 2}, ColIdx: []int32{0, 2}, Val: []float32{3, 4}}
	coo := a.ToCOO()
	coo.Val[0], coo.Col[1] = 1, 1
	if a.Val[0] != 3 || a.ColIdx[1] != 2 {
		t.Errorf("the matrix became %v at columns %v", a.Val, a.ColIdx)
	}
}

// named is a matrix of another package's, which embeds one of ours.
type named struct {
	*formats.CSR[float32]
	name string
}

func TestEmbedded(t *testing.T) {
	a := named{&formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 1}, ColIdx: []int32{1}, Val: []float32{3}}, "a"}
	if got := formats.Convert[half.F16](a); got.Rows != 1 || got.Val[0].Float32() != 3 {
		t.Errorf("converted to %+v", got)
	}
	if formats.Convert[float32](a) != a.CSR {
		t.Error("a conversion to the same type copies")
	}
	if got := formats.Dispatch(a, typeName[half.F16], typeName[half.BF16], typeName[float32],
		typeName[float64]); got != dtype.F32 {
		t.Errorf("dispatched as %v", got)
	}
}
