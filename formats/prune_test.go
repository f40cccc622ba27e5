package formats_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// Prune keeps what sorting by magnitude would, the first of equals.
func TestPrune(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols, pad := rapid.IntRange(0, 9).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "cols"),
			rapid.IntRange(0, 2).Draw(t, "pad")
		d := formats.NewDense[half.BF16](rows, cols+pad).Layout(rapid.Bool().Draw(t, "colMajor"), 0)
		d.Cols = cols
		if d.ColMajor {
			d.Data = d.Data[:cols*d.LD]
		}
		values := rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -1, 1.5, -2, 3e-39, float32(math.Inf(-1)),
			float32(math.NaN())})
		type element struct {
			at int
			v  float32
		}
		var all []element
		for i := range rows {
			for j := range cols {
				v := values.Draw(t, "v")
				d.Set(i, j, half.BF16From(v))
				all = append(all, element{i*cols + j, d.At(i, j).Float32()})
			}
		}
		keep := rapid.Float64Range(0, 1).Draw(t, "keep")
		magnitude := func(v float32) float64 {
			if v != v {
				return math.Inf(1)
			}
			return min(math.Abs(float64(v)), math.MaxFloat64)
		}
		slices.SortStableFunc(all, func(a, b element) int { return cmp.Compare(magnitude(b.v), magnitude(a.v)) })
		all = slices.DeleteFunc(all[:int(math.Round(keep*float64(len(all))))], func(e element) bool { return e.v == 0 })
		slices.SortFunc(all, func(a, b element) int { return a.at - b.at })
		a, err := d.Prune(keep)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		var got []element
		for i := range rows {
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				got = append(got, element{i*cols + int(a.ColIdx[e]), a.Val[e].Float32()})
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("%v of %v: kept %v, want %v", keep, d, got, all)
		}
	})
	for _, keep := range []float64{-0.1, 1.1, math.NaN()} {
		if _, err := formats.NewDense[float32](2, 2).Prune(keep); err == nil {
			t.Errorf("Prune(%v): no error", keep)
		}
	}
}

func ExampleDense_Prune() {
	d := formats.NewDense[float32](2, 3)
	copy(d.Data, []float32{0.1, -3, 0.5, 2, 0.25, -0.3})
	a, _ := d.Prune(0.5)
	fmt.Println(a.RowPtr, a.ColIdx, a.Val)
	// Output: [0 2 3] [1 2 0] [-3 0.5 2]
}
