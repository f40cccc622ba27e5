// Fitting: costs are found again from the times that they predict, and files that say otherwise are refused.

package benchmark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/model"
)

// GPUs on which a variant takes exactly what a cost of its own predicts. What is not fitted stays what it was.
func TestFitFindsCosts(t *testing.T) {
	pairs, _ := model.For(backend.CodePTX, "").Cost("lanestream", "cuda_pairs_n16_f16")
	for _, c := range []struct {
		code            backend.Code
		format, variant string
		truth           model.Cost
	}{
		{backend.CodeSPIRV, "hrpb", "vulkan_f32", model.Cost{Arithmetic: 0.5, StartUS: 1, StepUS: 0.02}},
		{
			backend.CodePTX, "lanestream", "cuda_pairs_n16_f16",
			model.Cost{
				Arithmetic: pairs.Arithmetic, Columns: pairs.Columns, Fetch: 3, StartUS: 3, Overlap: true, Busy: pairs.Busy,
			},
		},
	} {
		t.Run(c.format+"/"+c.variant, func(t *testing.T) { fitFinds(t, c.code, c.format, c.variant, c.truth) })
	}
}

func fitFinds(t *testing.T, code backend.Code, format, name string, truth model.Cost) {
	dev := Device{Backend: "vulkan", Name: "a GPU never seen", Driver: "1", Facts: &DeviceFacts{
		Code: code.String(), Units: 40, Rates: &model.Rates{
			Version: model.RatesVersion, Rates: spmm.Rates{
				Copy:  []spmm.Bandwidth{{Bytes: 1 << 21, PerSecond: 5e11}, {Bytes: 1 << 27, PerSecond: 4e11}},
				Cache: 2e12, FMA: 2e13, LaunchUS: 4, LatencyUS: 0.3,
			},
		},
	}}
	v := variant(&measurement{Result: &Result{Chosen: format, Variant: name}}, code)
	if v == nil {
		t.Fatal("there is no such variant")
	}
	r := &Report{Version: ReportVersion, Environment: Environment{Devices: []Device{dev}}}
	for rows := 100; rows <= 100_000; rows *= 10 {
		for _, each := range []int64{1, 10, 100} {
			for _, n := range []int{8, 128, 512} {
				nnz := int64(rows) * each
				of := &Predicted{
					Items:   int64(rows),
					Product: &model.Product{Rows: rows, Cols: rows, N: n, Longest: 4 * each, Nearby: nnz / 2},
					Stats: &formats.Stats{
						StoredBytes: 8 * nnz, Slots: nnz, MACs: nnz, Gathers: nnz, Longest: 4 * each,
					},
				}
				p := model.Predictor{
					Product: *of.Product, Rates: dev.Facts.Rates, Model: model.For(code, ""),
					Units: dev.Facts.Units,
				}
				_, took := p.TimeAt(truth, v, *of.Stats, of.Items)
				r.Results = append(r.Results, Result{
					Case: Case{
						Matrix: fmt.Sprintf("%d rows of %d", rows, each), N: n, Precision: "f32", Backend: "vulkan",
						Format: format + "/" + name, Mode: Fast,
					},
					Chosen: format, Variant: name, Median: micros(took), Predicted: of,
				})
			}
		}
	}
	var notes bytes.Buffer
	fitted, err := Fit(read(t, r), &notes)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(fitted)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Parse(out)
	if err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if m.Code != code.String() || m.Measured.Device != dev.Name || m.Measured.LatencyUS != 0.3 || len(m.Costs) != 1 ||
		m.Costs[0].Variants[0] != format+"/"+name {
		t.Fatalf("%+v", m)
	}
	got := m.Costs[0]
	for name, x := range map[string][2]float64{
		"arithmetic": {got.Arithmetic, truth.Arithmetic}, "fetch": {got.Fetch, truth.Fetch},
		"start": {got.StartUS, truth.StartUS}, "step": {got.StepUS, truth.StepUS},
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

// read is a report as it is read from a file.
func read(t *testing.T, r *Report) *Report {
	t.Helper()
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	out, err := ReadReport(&text, "a.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a sweep of packings reports can be fitted, and what is fitted is the device's model from then on.
func TestFitOfPackings(t *testing.T) {
	t.Setenv("SPMM_CACHE", filepath.Join(t.TempDir(), "cache"))
	s := small()
	s.Facts = true
	s.Products[0].Matrices, s.Products[0].Columns = []string{"gen:uniform,rows=100,density=0.05"}, []int{1, 2, 4, 8}
	s.Products[0].Formats = []string{"auto", Packings}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		format, variant, _ := strings.Cut(x.Format, "/")
		if !x.Measured() || x.Format != "auto" && (x.Chosen != format || x.Variant != variant || x.Predicted == nil) {
			t.Errorf("%+v", x)
		}
	}
	r = read(t, r)
	var notes bytes.Buffer
	m, err := Fit(r, &notes)
	if err != nil {
		t.Fatal(err)
	}
	if m.Measured.Device != r.Environment.Devices[0].Name || len(m.Costs) < 5 {
		t.Errorf("%+v\n%s", m, &notes)
	}
	name, err := Install(m, r)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("SPMM_CACHE"), "model-cpu-*.json"))
	if err != nil || len(files) != 1 || files[0] != name {
		t.Fatalf("wrote %v, %v, said %s", files, err, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := model.Parse(text); err != nil || len(m.Costs) < 5 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Near has no packing that is predicted to take more than twice as long as the fastest; several devices have none.
func TestNear(t *testing.T) {
	s := small()
	s.Products[0].Matrices, s.Products[0].Formats = []string{"gen:powerlaw,rows=2000,nnz-per-row=8"}, []string{Near}
	near, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	least := math.Inf(1)
	for _, x := range near.Results {
		least = min(least, x.Predicted.US)
	}
	for _, x := range near.Results {
		if x.Predicted.US > 2*least {
			t.Errorf("%v is predicted to take %v µs, the fastest %v", x.Case, x.Predicted.US, least)
		}
	}
	s.Products[0].Formats = []string{Packings}
	if all, err := s.Run(t.Context()); err != nil || len(all.Results) <= len(near.Results) || len(near.Results) == 0 {
		t.Errorf("%d packings are near, %d there are (%v)", len(near.Results), len(all.Results), err)
	}
	s.Products[0].Backends = []string{"cpu+cpu"}
	if _, err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "cpu+cpu is several devices") {
		t.Errorf("packings of several devices: %v", err)
	}
}

func TestFitRefuses(t *testing.T) {
	rates := func() *model.Rates {
		return &model.Rates{
			Version: model.RatesVersion,
			Rates:   spmm.Rates{Copy: []spmm.Bandwidth{{Bytes: 1, PerSecond: 1e9}}, Cache: 1e9, FMA: 1e9},
		}
	}
	dev := func(name, code string, r *model.Rates) Device {
		return Device{Backend: name, Name: name, Facts: &DeviceFacts{Code: code, Units: 1, Rates: r}}
	}
	full := func(n int) Result {
		return Result{
			Case: Case{
				Matrix: "a", N: n, Backend: "x", Format: "csr/cpu_f32", Mode: Fast,
			}, Chosen: "csr", Variant: "cpu_f32", Median: 1,
			Predicted: &Predicted{Product: &model.Product{}, Stats: &formats.Stats{}},
		}
	}
	plain := full(1)
	plain.Predicted = nil
	broken := rates()
	broken.Cache = -1
	for name, c := range map[string]struct {
		devices []Device
		results []Result
		want    string
	}{
		"nothing": {nil, nil, "no device"},
		"another device": {
			[]Device{dev("x", "go", rates()), dev("y", "go", rates())}, []Result{full(1)}, "devices y and x",
		},
		"a device without facts": {
			[]Device{{Backend: "x"}}, []Result{full(1)}, "device x has no facts: measure with --spec",
		},
		"a device without rates":    {[]Device{dev("x", "go", nil)}, []Result{full(1)}, "device x has no facts"},
		"rates that cannot be":      {[]Device{dev("x", "go", broken)}, []Result{full(1)}, "device x: "},
		"a device of no known kind": {[]Device{dev("x", "basic", rates())}, []Result{full(1)}, `"basic"`},
		"measured without facts": {
			[]Device{dev("x", "go", rates())}, []Result{plain}, "no result says what predictions are made from",
		},
		"too little": {
			[]Device{dev("x", "go", rates())}, []Result{full(1), full(2)}, "no variant was measured 4 times",
		},
	} {
		r := &Report{Version: ReportVersion, Environment: Environment{Devices: c.devices}, Results: c.results}
		if _, err := Fit(r, new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
