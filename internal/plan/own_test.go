// A device's own model in the cache folder: it is taken for that of its kind, and tuning adds to it.

package plan_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
)

// writeModel makes text the device's own model.
func writeModel(t *testing.T, d *device.Device, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(os.Getenv("SPMM_CACHE"), choose.ModelFile(d.Info())), []byte(text),
		0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOwnModel(t *testing.T) {
	t.Setenv("SPMM_CACHE", filepath.Join(t.TempDir(), "cache"))
	a := matrix(t, "gen:uniform,rows=300,density=0.2")
	o := work.Work{Cols: 64}
	if i := info(t, openCPU(t), a, o); i.Format != "csr" {
		t.Fatalf("without one: %s because %s", i.Format, i.Why)
	}
	const good = `{"version": 3, "code": "go", "measured": {"device": "slow rows"}, "costs": [{"variants": ["csr/*"], "start_us": 9999}]}`
	for name, c := range map[string]struct {
		text string
		csr  bool
	}{
		"slow rows":         {good, false},
		"of another kind":   {strings.Replace(good, `"go"`, `"ptx"`, 1), true},
		"of another format": {strings.Replace(good, `"version": 3`, `"version": 99`, 1), true},
		"negative":          {strings.Replace(good, `9999`, `-9999`, 1), true},
		"broken":            {good[:50], true},
		"empty":             {"", true},
		"corrected": {`{"version": 3, "code": "go", "measured": {},
			"corrections": {"csr/cpu_f32": {"ratio": 1000, "samples": 50}}}`, false},
		"corrected by nothing": {`{"version": 3, "code": "go", "measured": {}, "corrections": {"csr/cpu_f32": {"ratio": 1000, "samples": 0}}}`, true},
	} {
		d := openCPU(t)
		writeModel(t, d, c.text)
		if i := info(t, d, a, o); (i.Format == "csr") != c.csr {
			t.Errorf("%s: picked %s because %s", name, i.Format, i.Why)
		}
	}
}

// Tuning remembers how far off predictions were, each matrix once, and keeps the costs that are there.
func TestTuningLearns(t *testing.T) {
	t.Setenv("SPMM_CACHE", filepath.Join(t.TempDir(), "cache"))
	d := openCPU(t)
	o := work.Work{Cols: 16, Tune: true, Format: "cvse"} // two packings
	a := matrix(t, "gen:vector,rows=256,cols=256,v=8,density=0.1")
	read := func() *model.DeviceModel {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(os.Getenv("SPMM_CACHE"), choose.ModelFile(d.Info())))
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	samples := func(want int) {
		t.Helper()
		for _, v := range []string{"cvse/cpu_v8_f32", "cvse/cpu_v16_f32"} {
			if c := read().Corrections[v]; c.Samples != want || c.Ratio <= 0 {
				t.Errorf("%s: %+v, want %d samples", v, c, want)
			}
		}
	}
	info(t, d, a, o)
	samples(1)
	if m := read(); m.Measured.Device != d.Info().Name || m.Measured.Date == "" || m.Code != "go" {
		t.Errorf("it says that it is of %+v", m.Measured)
	}
	info(t, d, a, o)
	samples(1)
	m := read()
	m.Costs = []model.Cost{{Variants: []string{"csr/*"}, StartUS: 0.5}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	writeModel(t, d, string(text))
	info(t, openCPU(t), matrix(t, "gen:vector,rows=256,cols=256,v=8,density=0.1,seed=9"), o)
	samples(2)
	if got := read().Costs; len(got) != 1 || got[0].StartUS != 0.5 {
		t.Errorf("costs became %+v", got)
	}
}
