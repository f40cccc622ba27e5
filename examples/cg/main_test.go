// The program on every device present: those without kernels for f64 say so; and what it refuses.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
)

func TestRun(t *testing.T) {
	infos, _ := spmm.Devices(context.Background())
	for _, info := range infos {
		device := fmt.Sprintf("%s:%d", info.Backend, info.Index)
		for _, matrix := range []string{"jagmesh7", "dwt_992"} {
			t.Run(device+"/"+matrix, func(t *testing.T) {
				dev, err := spmm.Open(context.Background(), device)
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				var out strings.Builder
				err = run(context.Background(), []string{"-device", device, "-matrix", "../../testdata/matrices/" + matrix + ".mtx.gz"}, &out)
				t.Log(out.String())
				if !dev.Caps().F64 {
					if !errors.Is(err, spmm.ErrUnsupported) {
						t.Errorf("without kernels for f64: %v", err)
					}
					return
				}
				if err != nil || !strings.Contains(out.String(), "precision f64") || !strings.Contains(out.String(), "checked  |B − A·X|") {
					t.Errorf("error %v", err)
				}
			})
		}
	}
	dev, err := spmm.OpenFor(context.Background(), "auto", dtype.F64)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if !dev.Caps().F64 {
		t.Errorf("for f64, auto takes %v", dev.Info())
	}
}

// file writes a matrix of some entries "row column value".
func file(t *testing.T, rows, cols int, entries ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.mtx")
	text := fmt.Sprintf("%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n%s\n", rows, cols, len(entries), strings.Join(entries, "\n"))
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Columns that depend on each other from the first iteration on, and a matrix whose values only float64 tells from singular ones.
func TestSmall(t *testing.T) {
	for _, args := range [][]string{
		{"-matrix", file(t, 3, 3, "1 1 2", "2 2 2", "3 3 2"), "-n", "3", "-laplacian=false", "-shift", "0"},
		{"-matrix", file(t, 2, 2, "1 1 1", "2 2 1", "1 2 0.99999999", "2 1 0.99999999"), "-n", "1", "-laplacian=false", "-shift", "0", "-tolerance", "1e-7"},
		{"-matrix", file(t, 1, 1, "1 1 7"), "-n", "1"},
		{"-matrix", file(t, 3, 3, "1 1 1e-9", "2 2 1", "3 3 1e9"), "-n", "1", "-laplacian=false", "-shift", "0", "-iterations", "1"},
		{"-matrix", file(t, 3, 3, "1 1 1e-2", "2 2 1", "3 3 1e2"), "-n", "1", "-laplacian=false", "-shift", "0", "-scale=false"},
	} {
		var out strings.Builder
		if err := run(context.Background(), append([]string{"-device", "cpu"}, args...), &out); err != nil {
			t.Errorf("%v: %v\n%s", args, err, &out)
		}
	}
}

func TestRefused(t *testing.T) {
	square := file(t, 2, 2, "1 1 1", "2 2 2")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-matrix", file(t, 2, 2, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", file(t, 2, 3, "1 2 1")}, "not symmetric"},
		{[]string{"-matrix", square, "-n", "3"}, "3 right-hand sides for a matrix of 2 rows"},
		{[]string{"-matrix", square, "-n", "0"}, "0 right-hand sides"},
		{[]string{"-matrix", "nowhere.mtx"}, "nowhere.mtx"},
		{[]string{"-matrix", file(t, 2, 2, "1 1 1", "2 2 -2"), "-n", "2", "-laplacian=false", "-shift", "0"}, "not positive definite"},
		{[]string{"-matrix", "../../testdata/matrices/jagmesh7.mtx.gz", "-iterations", "3"}, "in 3 iterations"},
	} {
		err := run(context.Background(), append([]string{"-device", "cpu"}, c.args...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
