// The program on every device present, with few features; and what it refuses.

package main

import (
	"testing"

	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.Runs(t, run, "-graph ../../testdata/matrices/ca-CondMat.mtx.gz -features 20 -hidden 9 -classes 5", "checked  all 115665 outputs")
}

func TestRefusals(t *testing.T) {
	demotest.Refuses(t, run, []demotest.Refusal{
		{[]string{"-hidden", "0"}, "0 hidden units"},
		{[]string{"-graph", "gen:uniform,rows=3,cols=4"}, "a matrix of 3×4"},
		{[]string{"-graph", "nowhere.mtx"}, "nowhere.mtx"},
	})
}
