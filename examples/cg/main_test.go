// The program on every device present: those without kernels for f64 say so; and what it refuses.

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/examples/internal/demotest"
)

func TestRun(t *testing.T) {
	demotest.EachDevice(t, func(t *testing.T, device string) {
		dev, err := spmm.Open(t.Context(), device)
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		for _, matrix := range []string{"jagmesh7", "dwt_992"} {
			t.Run(matrix, func(t *testing.T) {
				text, err := demotest.Output(run, device, "-matrix", "../../testdata/matrices/"+matrix+".mtx.gz")
				t.Log(text)
				if !dev.Caps().F64 {
					if !errors.Is(err, spmm.ErrUnsupported) {
						t.Errorf("without kernels for f64: %v", err)
					}
					return
				}
				if err != nil || !strings.Contains(text, "precision f64") || !strings.Contains(text, "checked  |B − A·X|") {
					t.Errorf("error %v", err)
				}
			})
		}
	})
	dev, err := spmm.OpenFor(t.Context(), "auto", dtype.F64)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if !dev.Caps().F64 {
		t.Errorf("for f64, auto takes %v", dev.Info())
	}
}

// Columns that depend on each other from the first iteration on, and a matrix whose values only float64 tells from
// singular ones.
func TestSmall(t *testing.T) {
	for _, args := range [][]string{
		{"-matrix", demotest.File(t, 3, 3, "1 1 2", "2 2 2", "3 3 2"), "-n", "3", "-laplacian=false", "-shift", "0"},
		{"-matrix", demotest.File(t, 2, 2, "1 1 1", "2 2 1", "1 2 0.99999999", "2 1 0.99999999"), "-n", "1",
			"-laplacian=false", "-shift", "0", "-tolerance", "1e-7"},
		{"-matrix", demotest.File(t, 1, 1, "1 1 7"), "-n", "1"},
		{"-matrix", demotest.File(t, 3, 3, "1 1 1e-9", "2 2 1", "3 3 1e9"), "-n", "1", "-laplacian=false", "-shift", "0",
			"-iterations", "1"},
		{"-matrix", demotest.File(t, 3, 3, "1 1 1e-2", "2 2 1", "3 3 1e2"), "-n", "1", "-laplacian=false", "-shift", "0",
			"-scale=false"},
	} {
		if text, err := demotest.Output(run, "cpu", args...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
	}
}

func TestRefused(t *testing.T) {
	square := demotest.File(t, 2, 2, "1 1 1", "2 2 2")
	demotest.Refuses(t, run, []demotest.Refusal{
		{[]string{"-matrix", demotest.File(t, 2, 2, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", demotest.File(t, 2, 3, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", square, "-n", "3"}, "3 right-hand sides for a matrix of 2 rows"},
		{[]string{"-matrix", square, "-n", "0"}, "0 right-hand sides"},
		{[]string{"-matrix", "nowhere.mtx"}, "nowhere.mtx"},
		{[]string{"-matrix", demotest.File(t, 2, 2, "1 1 1", "2 2 -2"), "-n", "2", "-laplacian=false", "-shift", "0"},
			"not positive definite"},
		{[]string{"-matrix", "../../testdata/matrices/jagmesh7.mtx.gz", "-iterations", "3"}, "in 3 iterations"},
	})
}
