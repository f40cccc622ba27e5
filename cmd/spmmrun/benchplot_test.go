package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// The documents' pictures of measurements are drawn from the reports that are checked in. -update draws them.
func TestDocumentsPictures(t *testing.T) {
	for picture, names := range map[string][]string{
		"h200.svg":       {"h200-peers.json"},
		"h200-types.svg": {"h200-graphs.json"},
	} {
		var reports []*benchmark.Report
		for _, name := range names {
			r, err := readBench(filepath.Join("../../bench/results", name))
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, r)
		}
		r, err := benchmark.Merge(reports...)
		if err != nil {
			t.Fatal(err)
		}
		var drawn bytes.Buffer
		if err := writePlot(&drawn, r); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("../../docs/pictures", picture)
		if *update {
			if err := os.WriteFile(path, drawn.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, drawn.Bytes()) {
			t.Errorf("%s is not what %v show: go test ./cmd/spmmrun -run Pictures -update (%v)", path, names, err)
		}
	}
}

// Whatever a report says that can be read: it is printed and drawn, or refused.
func FuzzReport(f *testing.F) {
	const head = `{"version": 1, "environment": {"devices": [{"backend": "cpu", "copy_bytes_s": 1e10, "flops": 1e11, "peaks": {"f32": 1e11}}]}, "results": [`
	const one = `{"matrix": "a.mtx", "n": 8, "precision": "f32", "backend": "cpu", "format": "csr", "mode": "fast", "rows": 3, "cols": 4, "nnz": 5, "chosen": "csr", "bytes": 100,
		"samples_us": [1, 2, 1], "median_us": 1, "low_us": 1, "high_us": 2, "attainable_us": 0.5}`
	f.Add([]byte(head + one + `]}`))
	f.Add([]byte(head + one + `, {"matrix": "a.mtx", "n": -8, "precision": "f32", "backend": "cpu", "format": "csr", "mode": "fast", "median_us": 1e-308}]}`))
	f.Add([]byte(head + one + `, {"matrix": "b.mtx", "n": 9, "rows": -1, "cols": 1, "nnz": -5, "bytes": -1, "median_us": 1e300, "attainable_us": -1e300}]}`))
	f.Add([]byte(`{"version": 1, "environment": {"devices": [{"copy_bytes_s": 1e-300, "flops": 1e300, "peaks": {"f32": 1e300}}]}, "results": [` + one + `]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := benchmark.ReadReport(bytes.NewReader(text), "a.json")
		if err != nil || len(r.Results) == 0 {
			return
		}
		c := benchmark.Compare(r, r)
		for _, err := range []error{r.Print(io.Discard), r.Markdown(io.Discard), r.CSV(io.Discard), writePlot(io.Discard, r), c.Print(io.Discard, 0.05)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
