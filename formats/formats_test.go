// Conversions between the kinds of matrices, held against simple ones, and what Validate finds.

package formats_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// drawCOO draws entries in any order, some of them at the same place.
func drawCOO(t *rapid.T) *formats.COO[float32] {
	a := &formats.COO[float32]{Rows: rapid.IntRange(0, 40).Draw(t, "rows"), Cols: rapid.IntRange(0, 90).Draw(t, "cols")}
	if a.Rows == 0 || a.Cols == 0 {
		return a
	}
	for range rapid.IntRange(0, 400).Draw(t, "entries") {
		a.Row = append(a.Row, rapid.Int32Range(0, int32(a.Rows-1)).Draw(t, "i"))
		a.Col = append(a.Col, rapid.Int32Range(0, int32(a.Cols-1)).Draw(t, "j"))
		a.Val = append(a.Val, rapid.Float32Range(-9, 9).Draw(t, "v"))
	}
	return a
}

func TestToCSRSumsDuplicates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coo := drawCOO(t)
		want := map[[2]int32]float64{}
		for p, v := range coo.Val {
			want[[2]int32{coo.Row[p], coo.Col[p]}] += float64(v)
		}
		a, err := coo.ToCSR(formats.SumDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		if a.NNZ() != int64(len(want)) {
			t.Fatalf("%d entries, want %d", a.NNZ(), len(want))
		}
		back := a.ToCOO()
		for p, v := range back.Val {
			if w := want[[2]int32{back.Row[p], back.Col[p]}]; v != float32(w) {
				t.Fatalf("entry (%d, %d) is %v, want %v", back.Row[p], back.Col[p], v, w)
			}
		}
		_, err = coo.ToCSR(formats.RefuseDuplicates)
		if refused := err != nil; refused != (len(want) < len(coo.Val)) {
			t.Fatalf("%d entries at %d places: RefuseDuplicates says %v", len(coo.Val), len(want), err)
		}
	})
}

func TestCSRThroughCOOInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := drawCOO(t).ToCSR(formats.SumDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		coo := a.ToCOO()
		order := rapid.Permutation(upTo(len(coo.Val))).Draw(t, "order")
		mixed := &formats.COO[float32]{Rows: a.Rows, Cols: a.Cols}
		for _, p := range order {
			mixed.Row, mixed.Col = append(mixed.Row, coo.Row[p]), append(mixed.Col, coo.Col[p])
			mixed.Val = append(mixed.Val, coo.Val[p])
		}
		back, err := mixed.ToCSR(formats.RefuseDuplicates)
		if err != nil || !back.Equal(a) {
			t.Fatalf("CSR → COO → CSR changes the matrix (%v)", err)
		}
	})
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// Rows long enough for the parallel path and the sort of long rows.
func TestToCSRLarge(t *testing.T) {
	want, err := gen.CSR("gen:uniform,rows=300,cols=5000,density=0.1")
	if err != nil {
		t.Fatal(err)
	}
	coo := want.ToCOO()
	slices.Reverse(coo.Row)
	slices.Reverse(coo.Col)
	slices.Reverse(coo.Val)
	got, err := coo.ToCSR(formats.RefuseDuplicates)
	if err != nil || !got.Equal(want) {
		t.Fatalf("reversed entries give another matrix (%v)", err)
	}
}

// Three terms whose sum rounds differently in float32, in binary16, and when rounded twice.
func TestDuplicatesAreSummedExactly(t *testing.T) {
	coo := &formats.COO[float32]{Rows: 1, Cols: 1, Row: []int32{0, 0, 0}, Col: []int32{0, 0, 0},
		Val: []float32{1 << 24, 1, 1}}
	a, err := coo.ToCSR(formats.SumDuplicates)
	if err != nil || a.Val[0] != 1<<24+2 {
		t.Errorf("2²⁴ + 1 + 1 = %v (%v)", a.Val, err)
	}
	one, bit := half.F16From(1), half.F16From(0x1p-24)
	// 1 + 2⁻¹¹ + 2⁻²⁴ is just above the midpoint of 1 and its successor; float32 rounds it to that midpoint.
	h := &formats.COO[half.F16]{Rows: 1, Cols: 1, Row: []int32{0, 0, 0}, Col: []int32{0, 0, 0},
		Val: []half.F16{one, half.F16From(0x1p-11), bit}}
	b, err := h.ToCSR(formats.SumDuplicates)
	if err != nil || b.Val[0] != one+1 {
		t.Errorf("1 + 2⁻¹¹ + 2⁻²⁴ in f16 = %v (%v), want %v", b.Val[0].Float32(), err, (one + 1).Float32())
	}
}

func TestValidate(t *testing.T) {
	type csr = formats.CSR[float32]
	v := make([]float32, 9)
	tests := []struct {
		a    interface{ Validate() error }
		want string
	}{
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 3, 1}, Val: v[:3]}, ""},
		{&csr{RowPtr: []int64{0}}, ""},
		{&csr{}, "0 row pointers for 0 rows, want 1"},
		{&csr{Rows: -1, RowPtr: []int64{}}, "negative size -1×0"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 2}}, "2 row pointers for 2 rows, want 3"},
		{&csr{Rows: 1, Cols: 4, RowPtr: []int64{1, 1}, ColIdx: []int32{0}, Val: v[:1]}, "row 0: starts at 1, want 0"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 3, 2}, ColIdx: []int32{0, 1}, Val: v[:2]},
			"row 1: ends at 2, before its start 3"},
		{&csr{Rows: 1, Cols: 4, RowPtr: []int64{0, 3}, ColIdx: []int32{0, 1}, Val: v[:2]},
			"row pointers end at 3, but there are 2 entries"},
		{&csr{Rows: 1, Cols: 4, RowPtr: []int64{0, 2}, ColIdx: []int32{0}, Val: v[:2]}, "1 column indices for 2 values"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 1, 3}, ColIdx: []int32{0, 2, 4}, Val: v[:3]},
			"row 1, position 2: column 4 is outside the 4 columns"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 1, 3}, ColIdx: []int32{0, -1, 1}, Val: v[:3]},
			"row 1, position 1: column -1 is outside the 4 columns"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 1, 3}, ColIdx: []int32{0, 2, 1}, Val: v[:3]},
			"row 1, position 2: column 1 comes after column 2"},
		{&csr{Rows: 2, Cols: 4, RowPtr: []int64{0, 1, 3}, ColIdx: []int32{0, 2, 2}, Val: v[:3]},
			"row 1, position 2: column 2 appears twice"},
		{&formats.COO[float32]{Rows: 2, Cols: 2, Row: []int32{1, 1}, Col: []int32{0, 0}, Val: v[:2]}, ""},
		{&formats.COO[float32]{Rows: 2, Cols: 2, Row: []int32{1, 2}, Col: []int32{0, 0}, Val: v[:2]},
			"position 1: row 2 is outside the 2 rows"},
		{&formats.COO[float32]{Rows: 2, Cols: 2, Row: []int32{1, 1}, Col: []int32{0, -1}, Val: v[:2]},
			"position 1: column -1 is outside"},
		{&formats.COO[float32]{Rows: 2, Cols: 2, Row: []int32{1}, Col: []int32{0, 0}, Val: v[:2]},
			"1 rows and 2 columns for 2 values"},
		{&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 5, Data: v[:8]}, ""},
		{&formats.Dense[float32]{Rows: 0, Cols: 3, LD: 3}, ""},
		{&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 2, Data: v}, "leading dimension 2 is less than 3"},
		{&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 2, Data: v, ColMajor: true}, ""},
		{&formats.Dense[float32]{Rows: 2, Cols: 3, LD: 5, Data: v[:7]}, "7 elements of data, want at least 8 for 2×3 with leading dimension 5"},
		{&formats.Dense[float32]{Rows: 3, Cols: 3, LD: math.MaxInt - 4, Data: v}, "overflows"},
	}
	for _, tt := range tests {
		err := tt.a.Validate()
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %v, want %q", tt.a, err, tt.want)
		}
	}
}

func TestNewCSR(t *testing.T) {
	a, err := formats.NewCSR(2, 5, []int64{0, 3, 4}, []int32{4, 0, 4, 2}, []float32{1, 2, 3, 4}, formats.SumDuplicates)
	want := &formats.CSR[float32]{Rows: 2, Cols: 5, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 4, 2},
		Val: []float32{2, 4, 4}}
	if err != nil || !a.Equal(want) {
		t.Errorf("%+v (%v), want %+v", a, err, want)
	}
	for _, tt := range []struct {
		idx  []int32
		want string
	}{
		{[]int32{4, 0, 4, 2}, "row 0, column 4 (from 0): more than one entry"},
		{[]int32{4, 0, 3, 5}, "row 1, position 3: column 5 is outside the 5 columns"},
		{[]int32{4, 0, 3}, "3 column indices for 4 values"},
	} {
		_, err := formats.NewCSR(2, 5, []int64{0, 3, 4}, tt.idx, make([]float32, 4), formats.RefuseDuplicates)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.idx, err, tt.want)
		}
	}
}

func TestConvert(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 1, Cols: 3, RowPtr: []int64{0, 3}, ColIdx: []int32{0, 1, 2},
		Val: []float32{1.0 / 3, 1e5, 0x1p-25}}
	f16, bf16 := formats.Convert[half.F16](a), formats.Convert[half.BF16](a)
	if !slices.Equal(f16.Val, []half.F16{0x3555, 0x7c00, 0}) ||
		!slices.Equal(bf16.Val, []half.BF16{0x3eab, 0x47c3, 0x3300}) {
		t.Errorf("f16 %#x, bf16 %#x", f16.Val, bf16.Val)
	}
	if &f16.ColIdx[0] != &a.ColIdx[0] {
		t.Error("the pattern was copied")
	}
	for _, typ := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.TF32} {
		for _, s := range []formats.Sparse{a, f16, bf16} {
			d := formats.ConvertTo(s, typ)
			if d.Type() != typ.Storage() || d.Validate() != nil {
				t.Errorf("%v to %v gives %v", s.Type(), typ, d.Type())
			}
			if s.Type() == typ.Storage() && d != s {
				t.Errorf("%v to %v copies", s.Type(), typ)
			}
		}
	}
	got := formats.Convert[half.BF16](f16)
	for p := range got.Val {
		if want := half.BF16From(f16.Val[p].Float32()); got.Val[p] != want {
			t.Errorf("f16 %#x to bf16 is %#x, want %#x", f16.Val[p], got.Val[p], want)
		}
	}
	long := make([]half.F16, 5000)
	for i := range long {
		long[i] = half.F16(i)
	}
	dst := make([]half.BF16, 5000)
	formats.ConvertSlice(dst, long)
	for i := range long {
		if want := half.BF16From(long[i].Float32()); dst[i] != want {
			t.Fatalf("element %d of a long slice is %#x, want %#x", i, dst[i], want)
		}
	}
}

func TestDenseLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 70).Draw(t, "rows"), rapid.IntRange(0, 70).Draw(t, "cols")
		a := gen.Dense(rows, cols, 1, gen.Values{})
		b := a.Layout(rapid.Bool().Draw(t, "colMajor"), rapid.IntRange(0, 90).Draw(t, "ld"))
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		if !a.Equal(b) || !b.Equal(a) || !b.Layout(false, 0).Equal(a) {
			t.Fatal("layout changes the matrix")
		}
		for i := range rows {
			for j := range cols {
				if a.At(i, j) != b.At(i, j) {
					t.Fatalf("element (%d, %d) moved", i, j)
				}
			}
		}
		h := formats.ConvertDense[half.F16](b)
		if rows*cols > 0 {
			i, j := rapid.IntRange(0, rows-1).Draw(t, "i"), rapid.IntRange(0, cols-1).Draw(t, "j")
			if h.At(i, j) != half.F16From(a.At(i, j)) {
				t.Fatalf("element (%d, %d) is converted wrongly", i, j)
			}
			b.Set(i, j, a.At(i, j)+1)
			if a.Equal(b) {
				t.Fatal("Equal misses a difference")
			}
		}
	})
}

func TestDenseToCSR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := drawCOO(t).ToCSR(formats.SumDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		for p := range a.Val {
			a.Val[p] = float32(p + 1)
		}
		d := &formats.Dense[float32]{Rows: a.Rows, Cols: a.Cols, LD: a.Cols + 3, Data: make([]float32, a.Rows*(a.Cols+3))}
		for p, coo := 0, a.ToCOO(); p < len(coo.Val); p++ {
			d.Set(int(coo.Row[p]), int(coo.Col[p]), coo.Val[p])
		}
		if !d.ToCSR().Equal(a) || !d.Layout(true, 0).ToCSR().Equal(a) {
			t.Fatal("CSR → Dense → CSR changes the matrix")
		}
	})
}

// Padding may hold anything.
func TestDenseEqualIgnoresPadding(t *testing.T) {
	nan := float32(math.NaN())
	a := &formats.Dense[float32]{Rows: 2, Cols: 2, LD: 3, Data: []float32{1, 2, nan, 3, 4}}
	b := &formats.Dense[float32]{Rows: 2, Cols: 2, LD: 2, Data: []float32{1, 3, 2, 4}, ColMajor: true}
	if !a.Equal(b) || !b.Equal(a) {
		t.Error("equal matrices differ")
	}
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		lim             formats.Limits
		rows, cols, nnz int64
		want            string
	}{
		{formats.Limits{}, 1 << 20, 1 << 31 / 2, 1 << 22, ""},
		{formats.Limits{}, 1 << 24, 5, 0, ""},
		{formats.Limits{}, 1 << 31, 5, 1 << 33, "2147483648 rows are beyond the limit of 2147483647"},
		{formats.Limits{}, 5, 1 << 31, 1, "2147483648 columns are beyond"},
		{formats.Limits{}, 2e9, 5, 7, "2000000000 rows for 7 entries: nearly all rows are empty"},
		{formats.Limits{Rows: 2e9}, 2e9, 5, 7, ""},
		{formats.Limits{}, 100, 100, -1, "negative number of entries"},
		{formats.Limits{}, -1, 100, 1, "negative size"},
		{formats.Limits{NNZ: 10}, 100, 100, 11, "11 entries are beyond the limit of 10"},
		{formats.Limits{Bytes: 100}, 10, 100, 11, "take 176 bytes, beyond the limit of 100"},
		{formats.Limits{Rows: 1 << 40}, 1 << 31, 5, 1 << 33, "beyond the limit of 2147483647"},
	} {
		err := tt.lim.Check(tt.rows, tt.cols, tt.nnz)
		if tt.want == "" && err != nil || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%+v: %v, want %q", tt, err, tt.want)
		}
	}
	if err := (formats.Limits{Bytes: 1000}).CheckDense(10, 26, 4); err == nil {
		t.Error("1040 bytes are within a limit of 1000")
	}
	if err := (formats.Limits{Bytes: 1000}).CheckDense(10, 25, 4); err != nil {
		t.Error(err)
	}
}

func ExampleCOO_ToCSR() {
	coo := &formats.COO[float32]{
		Rows: 3, Cols: 4,
		Row: []int32{2, 0, 2, 0},
		Col: []int32{3, 1, 0, 1},
		Val: []float32{5, 1, 4, 2},
	}
	a, err := coo.ToCSR(formats.SumDuplicates)
	fmt.Println(a.RowPtr, a.ColIdx, a.Val, err)
	// Output: [0 1 1 3] [1 0 3] [3 4 5] <nil>
}

func ExampleCSR_Validate() {
	a := &formats.CSR[float32]{Rows: 1, Cols: 2, RowPtr: []int64{0, 2}, ColIdx: []int32{1, 2}, Val: []float32{1, 2}}
	fmt.Println(a.Validate())
	// Output: row 0, position 1: column 2 is outside the 2 columns
}

func ExampleConvert() {
	a := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0}, Val: []float32{0.1}}
	fmt.Println(formats.Convert[half.F16](a).Val[0].Float32())
	// Output: 0.099975586
}

// byColumn returns a's entries in column order, as files list them.
func byColumn(a *formats.CSR[float32]) *formats.COO[float32] {
	t := a.Transpose().ToCOO()
	return &formats.COO[float32]{Rows: a.Rows, Cols: a.Cols, Row: t.Col, Col: t.Row, Val: t.Val}
}

func BenchmarkToCSR(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=100000,cols=100000,nnz-per-row=20")
	if err != nil {
		b.Fatal(err)
	}
	for name, coo := range map[string]*formats.COO[float32]{"by row": a.ToCOO(), "by column": byColumn(a)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(12 * a.NNZ())
			for b.Loop() {
				if _, err := coo.ToCSR(formats.SumDuplicates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTranspose(b *testing.B) {
	for _, spec := range []string{"gen:uniform,rows=4096,density=0.1",
		"gen:uniform,rows=100000,cols=100000,nnz-per-row=20"} {
		a, err := gen.CSR(spec)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(spec, func(b *testing.B) {
			b.SetBytes(8 * a.NNZ())
			for b.Loop() {
				a.Transpose()
			}
		})
	}
}

func BenchmarkConvertF16(b *testing.B) {
	a, err := gen.CSR("gen:uniform,rows=4096,density=0.1")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(4 * a.NNZ())
	for b.Loop() {
		formats.Convert[half.F16](a)
	}
}
