// The program on every device present, in small.

package main

import (
	"testing"

	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.Runs(t, run, "-width 96 -inner 201 -heads 4 -tokens 1,19 -zeros 0.5,0.9 -runs 2", "checked  outputs of each")
}
