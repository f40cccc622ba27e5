package formats_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// numbered is a matrix whose elements are all different, with NaN-free padding that is not an element.
func numbered(rows, cols, pad int, colMajor bool) *formats.Dense[float32] {
	d := &formats.Dense[float32]{Rows: rows, Cols: cols, LD: cols + pad, ColMajor: colMajor}
	lines := rows
	if colMajor {
		d.LD, lines = rows+pad, cols
	}
	d.Data = make([]float32, lines*d.LD+pad)
	for i := range d.Data {
		d.Data[i] = -1
	}
	for i := range rows {
		for j := range cols {
			d.Set(i, j, float32(i*cols+j)) // the first is 0, which is stored too
		}
	}
	return d
}

// A dense matrix in any order, with padding or without, is the sparse one that stores every element; and back, also by
// way of what a file holds.
func TestDenseIsEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 40).Draw(t, "rows"), rapid.IntRange(0, 40).Draw(t, "cols")
		d := numbered(rows, cols, rapid.IntRange(0, 3).Draw(t, "pad"), rapid.Bool().Draw(t, "colMajor"))
		a := d.Sparse().(*formats.CSR[float32])
		if err := a.Validate(); err != nil || a.NNZ() != int64(rows*cols) || d.NNZ() != a.NNZ() || d.Format() != "dense" ||
			d.Type() != dtype.F32 {
			t.Fatalf("%d entries of %s of %v (%v)", a.NNZ(), d.Format(), d.Type(), err)
		}
		for i, x := range a.Val {
			if x != float32(i) {
				t.Fatalf("entry %d is %v", i, x)
			}
		}
		e, err := formats.DenseFormat.Encode(a, nil)
		if err != nil || !e.(*formats.Dense[float32]).Equal(d) {
			t.Fatalf("encoded otherwise (%v)", err)
		}
		read, err := formats.DenseFormat.Open(formats.NewContainer(d))
		if err != nil || !read.(*formats.Dense[float32]).Equal(d) {
			t.Fatalf("read otherwise (%v)", err)
		}
		if cols := d.PanelCols([]uint32{9}, 0); len(cols) != 1+d.Cols || cols[0] != 9 {
			t.Fatalf("a panel has columns %v", cols)
		}
		turned := d.Transpose()
		for i := range rows {
			for j := range cols {
				if turned.At(j, i) != d.At(i, j) {
					t.Fatalf("(%d, %d) of the transpose is %v", j, i, turned.At(j, i))
				}
			}
		}
		if x := formats.Transpose(d).(*formats.Dense[float32]); !x.Equal(turned) {
			t.Fatal("Transpose gives another matrix")
		}
		if x := formats.DenseTo(d, dtype.F16); x.Type() != dtype.F16 || !x.(*formats.Dense[half.F16]).Equal(formats.ConvertDense[half.F16](d)) {
			t.Fatal("DenseTo gives another matrix")
		}
	})
	if a := formats.NewDense[half.BF16](2, 2); formats.DenseTo(a, dtype.BF16) != formats.Encoded(a) {
		t.Error("DenseTo copies what has the type already")
	}
}

// Only what stores every element is dense, and the error names the row that does not.
func TestNotFull(t *testing.T) {
	full := func() *formats.CSR[float32] { return numbered(3, 4, 0, false).Sparse().(*formats.CSR[float32]) }
	for name, c := range map[string]struct {
		change func(a *formats.CSR[float32])
		want   string
	}{
		"an element is missing": {func(a *formats.CSR[float32]) {
			a.ColIdx, a.Val = a.ColIdx[:11], a.Val[:11]
			a.RowPtr[3] = 11
		}, "row 2 stores 3 of 4 elements"},
		"a column twice": {func(a *formats.CSR[float32]) { a.ColIdx[5] = 0 }, "column 0 appears twice"},
		"too short":      {func(a *formats.CSR[float32]) { a.Val = a.Val[:11] }, "12 column indices for 11 values"},
	} {
		a := full()
		c.change(a)
		_, err := formats.DenseFormat.Encode(a, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if errors.Is(err, formats.ErrNotFull) != (name == "an element is missing") {
			t.Errorf("%s: %v is ErrNotFull", name, err)
		}
	}
}

// FuzzDense: what Validate passes can be decoded, and encodes to the same elements again.
func FuzzDense(f *testing.F) {
	f.Add(2, 3, 3, false, 6)
	f.Add(3, 2, 5, true, 8)
	f.Add(-1, 1<<30, 0, false, 0)
	f.Fuzz(func(t *testing.T, rows, cols, ld int, colMajor bool, length int) {
		if length < 0 || length > 1<<16 || rows > 1<<16 || cols > 1<<16 { // with no elements any size is valid
			return
		}
		d := &formats.Dense[half.F16]{Rows: rows, Cols: cols, LD: ld, ColMajor: colMajor, Data: make([]half.F16, length)}
		for i := range d.Data {
			d.Data[i] = half.F16(i % 31744)
		}
		if d.Validate() != nil {
			return
		}
		a := d.Sparse().(*formats.CSR[half.F16])
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := a.Full()
		if err != nil || !again.Equal(d) {
			t.Fatalf("encoded again it is another matrix (%v)", err)
		}
	})
}
