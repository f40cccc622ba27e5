// Tuning on the CPU: what was measured is remembered, for that matrix and device, and taken.

package plan_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/work"
)

func openCPU(t *testing.T) *device.Device {
	t.Helper()
	return device.New(backendtest.Open(t, backendtest.Find(t, "cpu")))
}

func matrix(t *testing.T, spec string) *formats.CSR[float32] {
	t.Helper()
	a, err := gen.CSR(spec)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// info prepares a matrix and returns what was chosen.
func info(t *testing.T, d *device.Device, a formats.Encoded, o work.Work) api.PlanInfo {
	t.Helper()
	p, err := plan.New(ctx, d, a, o, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return p.PlanInfo
}

// records returns the files of a cache folder that tuning has made.
func records(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "tuned-cpu-*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	t.Setenv("SPMM_CACHE", dir)
	d, a := openCPU(t), matrix(t, "gen:vector,rows=256,cols=256,v=8,density=0.1")
	o := work.Work{Cols: 16}
	if i := info(t, d, a, o); !strings.HasPrefix(i.Why, "it is predicted to take ") || len(records(t, dir)) != 0 {
		t.Errorf("before: chosen because %s; records %v", i.Why, records(t, dir))
	}
	o.Tune = true
	tuned := info(t, d, a, o)
	if !strings.HasPrefix(tuned.Why, "it took ") || !strings.Contains(tuned.Why, " when measured, and ") {
		t.Errorf("tuned: chosen because %s", tuned.Why)
	}
	files := records(t, dir)
	if len(files) != 1 || !strings.HasPrefix(filepath.Base(files[0]), "auto-f32-n16-256x256-") {
		t.Fatalf("records %v", files)
	}

	// Whatever the record says was fastest is taken.
	var r map[string]any
	b, err := os.ReadFile(files[0])
	if err != nil || json.Unmarshal(b, &r) != nil {
		t.Fatalf("%v: %s", err, b)
	}
	times := r["times"].([]any)
	last := len(times) - 1
	times[0], times[last] = times[last], times[0]
	slowest := times[0].(map[string]any)["variant"]
	write := func(r any) {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[0], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(r)
	o.Tune = false
	if i := info(t, d, a, o); i.Variant != slowest || !strings.Contains(i.Why, " when this matrix was tuned") {
		t.Errorf("picked %s because %s; the record says %v", i.Variant, i.Why, slowest)
	}
	if i := info(t, openCPU(t), a, o); i.Variant != slowest {
		t.Errorf("another Device picked %s", i.Variant)
	}
	e, err := cvse.Encode(a, cvse.Options{V: 8})
	if err != nil {
		t.Fatal(err)
	}
	fromFile := work.Work{Cols: 16}
	if i := info(t, d, e, fromFile); i.Variant != slowest {
		t.Errorf("picked %s for the matrix from a file", i.Variant)
	}
	fromFile.Cols = 17
	if i := info(t, d, e, fromFile); i.Why != "the matrix comes packed for it" {
		t.Errorf("for other columns of the matrix from a file: because %s", i.Why)
	}

	// But not for anything else.
	other := matrix(t, "gen:vector,rows=256,cols=256,v=8,density=0.1,seed=9")
	for name, i := range map[string]api.PlanInfo{
		"columns":   info(t, d, a, work.Work{Cols: 17}),
		"precision": info(t, d, a, work.Work{Cols: 16, Precision: dtype.F16}),
		"matrix":    info(t, d, other, o),
		"format":    info(t, d, a, work.Work{Cols: 16, Format: "cvse"}),
	} {
		if !strings.HasPrefix(i.Why, "it is predicted") {
			t.Errorf("another %s: picked because %s", name, i.Why)
		}
	}

	// And not if it is another version's, of other candidates, or broken.
	for name, value := range map[string]any{"version": 99, "driver": "another", "matrix": "another",
		"among": []string{"csr/cpu_f32"}, "times": nil} {
		spoiled := map[string]any{}
		for k, v := range r {
			spoiled[k] = v
		}
		spoiled[name] = value
		write(spoiled)
		if i := info(t, d, a, o); !strings.HasPrefix(i.Why, "it is predicted") {
			t.Errorf("with %s %v: picked because %s", name, value, i.Why)
		}
	}
	write("{")
	if i := info(t, d, a, o); !strings.HasPrefix(i.Why, "it is predicted") {
		t.Errorf("with a broken record: picked because %s", i.Why)
	}
}

// Tuning one format compares its packings; where there is nothing to compare, nothing is measured; and
// without a place to remember it in, the fastest is taken all the same.
func TestTuneFew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	t.Setenv("SPMM_CACHE", dir)
	d, a := openCPU(t), matrix(t, "gen:vector,rows=100,v=8,density=0.1")
	if i := info(t, d, a, work.Work{Format: "cvse", Tune: true, Cols: 3}); i.Format != "cvse" ||
		!strings.Contains(i.Why, "and cvse/") {
		t.Errorf("%s because %s", i.Format, i.Why)
	}
	if i := info(t, d, a, work.Work{Format: "csr", Tune: true}); i.Format != "csr" || i.Why != "there is no other kernel for format csr and f32 on this device" {
		t.Errorf("%s because %s", i.Format, i.Why)
	}
	if i := info(t, d, a, work.Work{Format: "cvse", Variant: "cpu_v8_f32",
		Tune: true}); i.Why != "there is no other variant cpu_v8_f32" {
		t.Errorf("because %s", i.Why)
	}
	if n := len(records(t, dir)); n != 1 {
		t.Errorf("%d records", n)
	}
	if i := info(t, d, matrix(t, "gen:uniform,rows=5,nnz-per-row=0"), work.Work{Tune: true}); i.NNZ != 0 {
		t.Errorf("no entries: %+v", i)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPMM_CACHE", file)
	if i := info(t, d, a, work.Work{Tune: true, Cols: 3}); !strings.Contains(i.Why, "when measured") {
		t.Errorf("without a cache folder: because %s", i.Why)
	}
}
