// Whatever a report says: it is printed and drawn, or refused.

package benchmark

import (
	"bytes"
	"io"
	"testing"
)

// Whatever a report says that can be read: it is printed and drawn, or refused.
func FuzzDraw(f *testing.F) {
	const head = `{"version": 1, "environment": {"devices": [{"backend": "cpu", "copy_bytes_s": 1e10, "flops": 1e11, "peaks": {"f32": 1e11}}]}, "results": [`
	const one = `{"matrix": "a.mtx", "n": 8, "precision": "f32", "backend": "cpu", "format": "csr",
		"mode": "fast", "rows": 3, "cols": 4, "nnz": 5, "chosen": "csr", "bytes": 100,
		"samples_us": [1, 2, 1], "median_us": 1, "low_us": 1, "high_us": 2, "attainable_us": 0.5}`
	f.Add([]byte(head + one + `]}`))
	f.Add([]byte(head + one + `, {"matrix": "a.mtx", "n": -8, "precision": "f32", "backend": "cpu", "format": "csr", "mode": "fast", "median_us": 1e-308}]}`))
	f.Add([]byte(head + one + `, {"matrix": "b.mtx", "n": 9, "rows": -1, "cols": 1, "nnz": -5, "bytes": -1, "median_us": 1e300, "attainable_us": -1e300}]}`))
	f.Add([]byte(`{"version": 1, "environment": {"devices": [{"copy_bytes_s": 1e-300, "flops": 1e300, "peaks": {"f32": 1e300}}]}, "results": [` + one + `]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadReport(bytes.NewReader(text), "a.json")
		if err != nil || len(r.Results) == 0 {
			return
		}
		c := Compare(r, r)
		for _, err := range []error{
			r.Print(io.Discard), r.Markdown(io.Discard), r.CSV(io.Discard), r.Draw(io.Discard), c.Print(io.Discard, 0.05),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
