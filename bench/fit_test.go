// Fitting: costs are found again from the times that they predict, and files that say otherwise are refused.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/model"
)

// GPUs on which a variant takes exactly what a cost of its own predicts. What is not fitted stays what it was.
func TestFitFindsCosts(t *testing.T) {
	for _, c := range []struct {
		code            backend.Code
		format, variant string
		truth           model.Cost
	}{
		{backend.CodeSPIRV, "hrpb", "vulkan_f32", model.Cost{Efficiency: 0.5, StartUS: 1, StepUS: 0.02}},
		{backend.CodePTX, "lanestream", "cuda_pairs_n16_f16", model.Cost{Fetch: 3, StartUS: 3, Overlap: true, Busy: 3.5}},
	} {
		t.Run(c.format+"/"+c.variant, func(t *testing.T) { fitFinds(t, c.code, c.format, c.variant, c.truth) })
	}
}

func fitFinds(t *testing.T, code backend.Code, format, name string, truth model.Cost) {
	dev := &measuredDevice{
		Info: backend.Info{Backend: "vulkan", Name: "a GPU never seen", Driver: "1"}, Code: code.String(), Units: 40,
		Rates: &model.Rates{
			Version: model.RatesVersion, Stream: []model.Bandwidth{{Bytes: 1 << 21, PerSecond: 5e11}, {Bytes: 1 << 27, PerSecond: 4e11}},
			Gather: 2e12, FMA: 2e13, LaunchUS: 4, LatencyUS: 0.3,
		},
	}
	v := variant(&Measurement{Format: format, Variant: name}, code)
	if v == nil {
		t.Fatal("there is no such variant")
	}
	lines := []dataLine{{Device: dev}}
	for rows := 100; rows <= 100_000; rows *= 10 {
		for _, each := range []int64{1, 10, 100} {
			for _, n := range []int{8, 128, 512} {
				nnz := int64(rows) * each
				m := &Measurement{
					Format: format, Variant: name, N: n, Items: int64(rows),
					Product: &model.Product{Rows: rows, Cols: rows, N: n, Longest: 4 * each, Nearby: nnz / 2},
					Stats:   &formats.Stats{StoredBytes: 8 * nnz, Slots: nnz, MACs: nnz, Gathers: nnz, Longest: 4 * each},
				}
				p := model.Predictor{Product: *m.Product, Rates: dev.Rates, Model: model.For(code, ""), Units: dev.Units}
				_, took := p.TimeAt(truth, v, *m.Stats, m.Items)
				m.US = micros(took)
				lines = append(lines, dataLine{Measurement: m})
			}
		}
	}
	var out, notes bytes.Buffer
	if err := fit([]string{dataFile(t, lines)}, false, &out, &notes); err != nil {
		t.Fatal(err)
	}
	m, err := model.Parse(out.Bytes())
	if err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if m.Code != code.String() || m.Measured.Device != dev.Name || m.Measured.LatencyUS != 0.3 || len(m.Costs) != 1 || m.Costs[0].Variants[0] != format+"/"+name {
		t.Fatalf("%+v", m)
	}
	got := m.Costs[0]
	for name, x := range map[string][2]float64{
		"efficiency": {got.Efficiency, truth.Efficiency}, "fetch": {got.Fetch, truth.Fetch}, "start": {got.StartUS, truth.StartUS}, "step": {got.StepUS, truth.StepUS},
	} {
		if x[1] != 0 && !(math.Abs(math.Log(x[0]/x[1])) < math.Log(1.1)) {
			t.Errorf("%s %v, want %v within a tenth\n%s", name, x[0], x[1], notes.String())
		}
	}
	if got.Overlap != truth.Overlap || got.Busy != truth.Busy {
		t.Errorf("fitted %+v, want overlap and busy items as in %+v", got, truth)
	}
	if !strings.Contains(notes.String(), format+"/"+name+"\t36\t") {
		t.Errorf("notes:\n%s", notes.String())
	}
}

// dataFile writes lines as -data does.
func dataFile(t *testing.T, lines []dataLine) string {
	t.Helper()
	r := &runner{data: filepath.Join(t.TempDir(), "data")}
	for _, l := range lines {
		if err := r.appendData(l); err != nil {
			t.Fatal(err)
		}
	}
	return r.data
}

// What choice writes can be fitted, and what is fitted is the device's model from then on.
func TestFitOfChoice(t *testing.T) {
	t.Setenv("SPMM_CACHE", filepath.Join(t.TempDir(), "cache"))
	r := &runner{data: filepath.Join(t.TempDir(), "data"), predict: true}
	for n := 1; n <= 8; n *= 2 {
		if err := choose(context.Background(), r, []string{"gen:uniform,rows=100,density=0.05"}, "cpu", "f32", n); err != nil {
			t.Fatal(err)
		}
	}
	var out, notes bytes.Buffer
	if err := fit([]string{r.data}, true, &out, &notes); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("SPMM_CACHE"), "model-cpu-*.json"))
	if err != nil || len(files) != 1 || out.Len() != 0 || !strings.Contains(notes.String(), files[0]) {
		t.Fatalf("wrote %v, %v; printed %s and %s", files, err, &out, &notes)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if m, err := model.Parse(text); err != nil || len(m.Costs) < 5 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestFitRefuses(t *testing.T) {
	rates := &model.Rates{Version: model.RatesVersion, Stream: []model.Bandwidth{{Bytes: 1, PerSecond: 1e9}}, Gather: 1e9, FMA: 1e9}
	dev := func(name string) dataLine {
		return dataLine{Device: &measuredDevice{Info: backend.Info{Name: name}, Code: "go", Units: 1, Rates: rates}}
	}
	full := func(us float64) dataLine {
		return dataLine{Measurement: &Measurement{Format: "csr", Variant: "cpu_f32", US: us, Product: &model.Product{}, Stats: &formats.Stats{}}}
	}
	plain := dataLine{Measurement: &Measurement{US: 1}}
	bare := dev("x")
	bare.Device = &measuredDevice{}
	strange := dev("x")
	strange.Device = &measuredDevice{Code: "basic", Rates: rates}
	for name, c := range map[string]struct {
		lines []dataLine
		want  string
	}{
		"nothing":                   {nil, "-predict"},
		"no device":                 {[]dataLine{full(1)}, "line 1: no measurement, or of no device"},
		"another device":            {[]dataLine{dev("x"), full(1), dev("y")}, "line 3: "},
		"a device without rates":    {[]dataLine{bare}, "without rates"},
		"a device of no known kind": {[]dataLine{strange, full(1)}, `"basic"`},
		"measured without -predict": {[]dataLine{dev("x"), plain, plain}, "(2 lines left out)"},
		"no time":                   {[]dataLine{dev("x"), full(0)}, "line 2: a time of 0"},
		"too little":                {[]dataLine{dev("x"), full(1), full(1)}, "no variant was measured 4 times"},
	} {
		err := fit([]string{dataFile(t, c.lines)}, false, new(bytes.Buffer), new(bytes.Buffer))
		if c.lines == nil {
			err = fit([]string{os.DevNull}, false, new(bytes.Buffer), new(bytes.Buffer))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if fit(nil, false, nil, nil) == nil || fit([]string{"none"}, false, nil, nil) == nil {
		t.Error("no file is fitted")
	}
	broken := filepath.Join(t.TempDir(), "broken")
	text, err := json.Marshal(dev("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, append(text, "\n{"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fit([]string{broken}, false, nil, nil); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("cut off: %v", err)
	}
}
