// The program on every device present, checked against gonum; and what it refuses.

package main

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.Runs(t, run, "-matrix ../../testdata/matrices/dwt_992.mtx.gz", "1  λ = +17.73855", "checked  against gonum")
}

// Matrices smaller than a block, with negative eigenvalues, and without any but 0.
func TestSmall(t *testing.T) {
	for _, c := range []struct {
		path, k string
		want    []string
	}{
		{demotest.File(t, 3, 3, "1 1 -5", "2 2 3", "3 3 1"), "3", []string{"1  λ = -5.000000", "2  λ = +3.000000",
			"3  λ = +1.000000"}},
		{demotest.File(t, 2, 2, "1 2 2", "2 1 2"), "1", []string{"λ = "}},
		{demotest.File(t, 4, 4), "2", []string{"λ = +0.000000"}},
		{demotest.File(t, 1, 1, "1 1 7"), "1", []string{"λ = +7.000000"}},
	} {
		text, err := demotest.Output(run, "cpu", "-matrix", c.path, "-k", c.k)
		if err != nil {
			t.Errorf("%v: %v", c.want, err)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	square := demotest.File(t, 2, 2, "1 1 1", "2 2 2")
	demotest.Refuses(t, run, []demotest.Refusal{
		{[]string{"-matrix", demotest.File(t, 2, 2, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", demotest.File(t, 2, 3, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", square, "-k", "3"}, "3 eigenvalues of a matrix of 2 rows"},
		{[]string{"-matrix", square, "-k", "0"}, "0 eigenvalues"},
		{[]string{"-matrix", "nowhere.mtx"}, "nowhere.mtx"},
		{[]string{"-matrix", "../../testdata/matrices/jagmesh7.mtx.gz", "-tolerance", "1e-30"}, "have not converged"},
	})
}
