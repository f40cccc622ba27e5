// The program on every device present, in small.

package main

import (
	"testing"

	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.Runs(t, run, "-graph ../../testdata/matrices/ca-CondMat.mtx.gz -steps 5 -sources 7", "checked  all 161931 temperatures")
}
