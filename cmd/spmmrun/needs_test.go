// What a job will need is summed before anything is made.

package main

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/internal/memory"
)

func TestNeeds(t *testing.T) {
	cpu, gpu := spmm.Info{Kind: "cpu"}, spmm.Info{Kind: "discrete"}
	const m, k, n, nnz = 1000, 500, 200, 4000
	fast := job{matrix: "a", verify: "sample"}
	full := job{matrix: "a", verify: "full", mode: reproducible, beta: 1}
	none := job{matrix: "a", verify: "none", bFile: "B.npy"}
	for name, tt := range map[string]struct {
		job  job
		dev  spmm.Info
		size int
		want [4]float64
	}{
		"on the CPU": {fast, cpu, 4, [4]float64{2 * (4*m + 8*nnz), 2 * 4 * k * n, 2 * 4 * m * n, 0}},
		"on a GPU":   {fast, gpu, 4, [4]float64{4*m + 8*nnz, 4 * k * n, 4 * m * n, 0}},
		"f16": {fast, gpu, 2, [4]float64{8*m + 6*nnz + 2*k*n + 4*m + 6*nnz, 4 * k * n, 4 * m * n, 8*m +
			8*nnz + 4*k*n}},
		"reproducible, verified": {full, cpu, 4, [4]float64{2 * (4*m + 8*nnz), 2 * 4 * k * n, 3 * 4 * m * n, 8*k*128 + 8*nnz +
			4*m*n}},
		"B from a file": {none, cpu, 4, [4]float64{2 * (4*m + 8*nnz), 4 * k * n, 2 * 4 * m * n, 0}},
	} {
		for i, p := range newNeed(&tt.job, tt.dev, m, k, n, nnz, tt.size).parts() {
			if p.bytes != tt.want[i] {
				t.Errorf("%s: %s takes %v, want %v", name, p.what, p.bytes, tt.want[i])
			}
		}
	}
}

// A job that takes more than there is says of what, and what to change.
func TestNeedsMore(t *testing.T) {
	have := memory.Available()
	if have == 0 {
		t.Skip("this system does not tell what memory is available")
	}
	const rows = 1 << 24
	cols := int(have/rows/4) * 3 / 2 // half as much again as there is
	for what, j := range map[string]job{
		"use fewer columns (-n)":                          {matrix: "tall.mtx", verify: "sample"},
		"use a B of fewer columns":                        {matrix: "tall.mtx", bFile: "B.npy", verify: "none"},
		"use --verify sample or none, or fewer columns (": {matrix: "tall.mtx", verify: "full", mode: reproducible},
	} {
		n, dev := cols, spmm.Info{Kind: "discrete"}
		if j.mode == reproducible {
			n = cols / 2
		}
		err := newNeed(&j, dev, rows, 1, n, 1, 4).check()
		if err == nil || !strings.HasPrefix(err.Error(), "tall.mtx: this takes ") ||
			!strings.Contains(err.Error(), "C (16777216×") || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
		if err := newNeed(&j, dev, rows/16, 1, n/2, 1, 4).check(); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// A generated matrix whose C alone is too large is refused before it is made.
func TestGeneratedFits(t *testing.T) {
	j := job{matrix: "gen:onedense,rows=2147483647,cols=4,nnz-per-row=1", cols: 1 << 20, verify: "none"}
	err := j.generatedFits(spmm.Info{Kind: "cpu"})
	if memory.Available() > 0 && (err == nil || !strings.Contains(err.Error(), "C (2147483647×1048576)")) {
		t.Errorf("error %v", err)
	}
	j.matrix = "gen:onedense,rows=100,cols=100"
	j.cols = 8
	if err := j.generatedFits(spmm.Info{Kind: "cpu"}); err != nil {
		t.Error(err)
	}
}
