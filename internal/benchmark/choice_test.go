package benchmark

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/gen"
)

// TestChoiceMatrices checks that every matrix can be generated, is of a size that all formats pack, and depends on the
// seed alone.
func TestChoiceMatrices(t *testing.T) {
	all := ChoiceMatrices(200, 1)
	if !slices.Equal(all, ChoiceMatrices(200, 1)) || slices.Equal(all, ChoiceMatrices(200, 2)) {
		t.Error("the matrices do not depend on the seed alone")
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m] {
			t.Errorf("%s twice", m)
		}
		seen[m] = true
		s, err := gen.Parse(m, 1)
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		if int64(s.Rows)*int64(s.Cols) > 4e8 {
			t.Errorf("%s has %d×%d elements", m, s.Rows, s.Cols)
		}
	}
	for _, m := range all[:len(choiceKinds)] {
		if _, err := gen.CSR(m); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestChoiceProducts(t *testing.T) {
	of := Products{
		Matrices: []string{"a", "b"}, Columns: []int{1, 2, 3}, Backends: []string{"cpu"},
		Precisions: []dtype.Type{dtype.F32, dtype.F16},
	}
	if all := ChoiceProducts(of, false, 0, 1); len(all) != 12 {
		t.Errorf("%d products of all, want 12", len(all))
	}
	if all := ChoiceProducts(of, true, 0, 1); !slices.Equal(all[0].Formats, []string{Tuned, Rivals}) {
		t.Errorf("tuned: %v, want tuned and its rivals", all[0].Formats)
	}
	some := ChoiceProducts(of, false, 5, 1)
	if len(some) != 5 || some[0].count() != 1 || !slices.Equal(some[0].Formats, []string{"auto", Rivals}) {
		t.Errorf("drawn: %+v, want 5 of one product each, by auto and its rivals", some)
	}
}

// TestChoices checks what a report says of choices: a wrong one, a right one whose two times differ by chance, one
// without rivals and one that failed.
func TestChoices(t *testing.T) {
	at := func(n int, format, chosen string, us, predicted float64) Result {
		r := Result{
			Case: Case{Matrix: "m", N: n, Precision: "f32", Backend: "cpu", Format: format, Mode: Fast}, Median: us,
			Chosen: chosen, Variant: "v",
		}
		if predicted > 0 {
			r.Predicted = &Predicted{US: predicted}
		}
		return r
	}
	failed := at(4, "auto", "csr", 0, 0)
	failed.Error = "out of memory"
	c := NewChoices(&Report{Results: []Result{
		at(1, "auto", "csr", 11, 0), at(1, "csr/v", "csr", 10, 9), at(1, "nm/v", "nm", 12, 20),
		at(2, Tuned, "csr", 40, 0), at(2, "csr/v", "csr", 41, 9), at(2, "nm/v", "nm", 10, 20),
		at(3, "auto", "csr", 10, 0), failed, at(4, "nm/v", "nm", 10, 20),
	}})
	if c.Products != 2 || c.Worst != 4 || c.Mean != 2 || len(c.All) != 2 {
		t.Fatalf("%+v: want two products, at worst 4, in the mean 2", c)
	}
	want := Choice{
		Case: at(2, Tuned, "", 0, 0).Case, Took: "csr/v", US: 40, PredictedUS: 9, Best: "nm/v", BestUS: 10,
		BestPredUS: 20, Over: 4,
	}
	if c.All[0] != want {
		t.Errorf("the worst is %+v, want %+v", c.All[0], want)
	}
	var out bytes.Buffer
	if err := c.Print(&out); err != nil || !strings.Contains(out.String(), "4.00  m       2  f32") {
		t.Errorf("%v, printed:\n%s", err, &out)
	}
}
