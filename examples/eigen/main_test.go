// The program on every device present, checked against gonum; and what it refuses.

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
)

func TestRun(t *testing.T) {
	infos, _ := spmm.Devices(context.Background())
	for _, info := range infos {
		device := fmt.Sprintf("%s:%d", info.Backend, info.Index)
		t.Run(device, func(t *testing.T) {
			var out strings.Builder
			err := run(context.Background(), []string{"-device", device, "-matrix", "../../testdata/matrices/dwt_992.mtx.gz"}, &out)
			t.Log(out.String())
			if err != nil || !strings.Contains(out.String(), "1  λ = +17.73855") || !strings.Contains(out.String(), "checked  against gonum") {
				t.Errorf("error %v", err)
			}
		})
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

// Matrices smaller than a block, with negative eigenvalues, and without any but 0.
func TestSmall(t *testing.T) {
	for _, c := range []struct {
		path, k string
		want    []string
	}{
		{file(t, 3, 3, "1 1 -5", "2 2 3", "3 3 1"), "3", []string{"1  λ = -5.000000", "2  λ = +3.000000", "3  λ = +1.000000"}},
		{file(t, 2, 2, "1 2 2", "2 1 2"), "1", []string{"λ = "}},
		{file(t, 4, 4), "2", []string{"λ = +0.000000"}},
		{file(t, 1, 1, "1 1 7"), "1", []string{"λ = +7.000000"}},
	} {
		var out strings.Builder
		if err := run(context.Background(), []string{"-device", "cpu", "-matrix", c.path, "-k", c.k}, &out); err != nil {
			t.Errorf("%v: %v", c.want, err)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("no %q in\n%s", w, out.String())
			}
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
		{[]string{"-matrix", square, "-k", "3"}, "3 eigenvalues of a matrix of 2 rows"},
		{[]string{"-matrix", square, "-k", "0"}, "0 eigenvalues"},
		{[]string{"-matrix", "nowhere.mtx"}, "nowhere.mtx"},
		{[]string{"-matrix", "../../testdata/matrices/jagmesh7.mtx.gz", "-tolerance", "1e-30"}, "have not converged"},
	} {
		err := run(context.Background(), append([]string{"-device", "cpu"}, c.args...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
