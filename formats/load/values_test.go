// New values in a matrix of any format, and copies of it.

package load_test

import (
	"reflect"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"pgregory.net/rapid"
)

// drawMatrix returns a matrix with empty rows, a heavy one, and zeros that are stored.
func drawMatrix(t *rapid.T) *formats.CSR[float32] {
	rows, cols := rapid.IntRange(0, 70).Draw(t, "rows"), rapid.IntRange(1, 90).Draw(t, "cols")
	every := rapid.IntRange(1, 20).Draw(t, "every")
	heavy := rapid.IntRange(0, 70).Draw(t, "heavy row")
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	mix := rapid.Uint32().Draw(t, "pattern")
	for i := range rows {
		for j := range cols {
			mix = mix*1664525 + 1013904223
			if i == heavy || i%4 != 0 && int(mix>>16)%every == 0 {
				a.ColIdx = append(a.ColIdx, int32(j))
				a.Val = append(a.Val, float32(mix>>20%3))
			}
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	return a
}

// A matrix with other values is that which is encoded of them.
func TestWithValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMatrix(t)
		testWithValues[float32](t, a)
		testWithValues[half.F16](t, a)
		testWithValues[half.BF16](t, a)
	})
}

// valued is a matrix that takes other values.
type valued[T formats.Value] interface {
	formats.Encoded
	WithValues([]T) formats.Encoded
	WithoutValues() formats.Encoded
}

func testWithValues[T formats.Value](t *rapid.T, m *formats.CSR[float32]) {
	a := formats.Convert[T](m)
	b := &formats.CSR[T]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: make([]T, len(a.Val))}
	for i := range b.Val {
		formats.ConvertSlice(b.Val[i:i+1], []float32{float32(i%2039 - 1000)})
	}
	for _, f := range load.Formats() {
		packed, err := f.Encode(a, nil)
		if err != nil {
			continue // one that cannot hold it
		}
		m, ok := packed.(valued[T])
		if !ok {
			if f.Name != "csr" {
				t.Errorf("format %s takes no other values", f.Name)
			}
			continue
		}
		want, err := f.Encode(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := formats.Clone(packed)
		got := m.WithValues(b.Val)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("format %s of %v: other values give another matrix than encoding them", f.Name, a.Type())
		}
		less := formats.Clone(m.WithoutValues())
		if saved := arrayBytes[T](packed) - arrayBytes[T](less); saved < m.NNZ()*int64(a.Type().Size()) {
			t.Errorf("format %s without its %d values takes %d bytes less", f.Name, m.NNZ(), saved)
		}
		if !reflect.DeepEqual(less.(valued[T]).WithValues(b.Val), want) {
			t.Errorf("format %s: a matrix without values takes others to other places", f.Name)
		}
		if !reflect.DeepEqual(packed, before) {
			t.Errorf("format %s: other values change the matrix itself", f.Name)
		}
		for _, array := range formats.NewContainer(packed).Arrays {
			clearArray(array.Data)
		}
		if !before.Sparse().(*formats.CSR[T]).Equal(a) {
			t.Errorf("format %s: a clone shares memory", f.Name)
		}
	}
}

// arrayBytes is how much memory a matrix's arrays take.
func arrayBytes[T formats.Value](m formats.Encoded) (n int64) {
	if d, ok := m.(*formats.Dense[T]); ok { // which has arrays for files only with its elements
		return int64(len(d.Data) * d.Type().Size())
	}
	for _, a := range formats.NewContainer(m).Arrays {
		data := reflect.ValueOf(a.Data)
		n += int64(data.Len()) * int64(data.Type().Elem().Size())
	}
	return n
}

func clearArray(data any) {
	switch s := data.(type) {
	case []uint32:
		clear(s)
	case []half.F16:
		clear(s)
	case []half.BF16:
		clear(s)
	case []float32:
		clear(s)
	}
}
