// The program on every device present, in small.

package main

import (
	"testing"

	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.Runs(t, run, "-inputs 130 -hidden 201 -outputs 37 -batch 19", "checked  all 703 outputs")
}
