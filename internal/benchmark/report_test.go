package benchmark

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// sample is a report with all that a report may have: times of four who compute two products, a format that refused,
// and a wrong answer.
func sample() *Report {
	at := func(matrix, backend, format string, samples ...float64) Result {
		low, high := Interval(samples)
		return Result{
			Case: Case{Matrix: matrix, N: 32, Precision: "f32", Backend: backend, Format: format, Mode: Fast},
			Rows: 100, Cols: 200, NNZ: 1000, Chosen: "csr", Variant: "cpu_f32", Clock: "device", Samples: samples, Batch: 7,
			Median: Median(samples), Low: low, High: high, Settled: true, AttainableUS: 5, BoundBy: "cache", Bytes: 4000,
			EncodeS: 0.25,
		}
	}
	peer := at("dir/a.mtx", "eigen", "rows", 20, 20, 21, 21, 22, 22)
	peer.Chosen, peer.Variant, peer.AttainableUS, peer.BoundBy, peer.Settled = "", "", 0, "", false
	beaten, slow := at("dir/a.mtx", "cpu", "auto", 10, 10, 10, 10.1, 10.1, 10.2), peer
	beaten.BoundBy, beaten.ReadGBS, beaten.Clamped = "memory", 3000, true
	slow.Format, slow.Once = "slow", true
	refused := Result{
		Case:  Case{Matrix: "gen:uniform,rows=9", N: 32, Precision: "f32", Backend: "cpu", Format: "nm", Mode: Fast},
		Error: "nm: no pattern\x1b[2J fits",
	}
	wrong := Result{
		Case:  Case{Matrix: "gen:uniform,rows=9", N: 32, Precision: "f32", Backend: "eigen", Format: "a|b", Mode: Fast},
		Error: "wrong answer: C[0,0] is 1, must be 2 within " + strings.Repeat("0", 50), Wrong: true,
	}
	return &Report{
		Version: ReportVersion,
		Environment: Environment{
			Program: "spmmrun 1", System: "linux/amd64", Processor: "Some CPU", Threads: 2,
			Start: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), Seconds: 12.3,
			Devices: []Device{{
				Backend: "cpu", Name: "Some CPU", Driver: "Go 1", Copy: 1e10, Flops: 1e11, Peaks: map[string]float64{"f32": 1e11},
			}},
			Peers:  []string{"Eigen 3.4"},
			Before: State{Load: []float64{0.5, 1, 2}, MHz: 2500, GPUs: []string{"H200, 1980 MHz"}},
		},
		Results: []Result{
			beaten, peer,
			at("gen:uniform,rows=9", "cpu", "auto", 1234, 1234, 1234, 1234, 1234, 1240), refused, wrong, slow,
		},
	}
}

func TestPrint(t *testing.T) {
	for name, print := range map[string]func(*Report, *bytes.Buffer) error{
		"table.txt":  func(r *Report, w *bytes.Buffer) error { return r.Print(w) },
		"table.md":   func(r *Report, w *bytes.Buffer) error { return r.Markdown(w) },
		"table.csv":  func(r *Report, w *bytes.Buffer) error { return r.CSV(w) },
		"table.json": func(r *Report, w *bytes.Buffer) error { return r.Write(w) },
	} {
		var got bytes.Buffer
		if err := print(sample(), &got); err != nil {
			t.Fatal(err)
		}
		golden(t, name, got.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// The fastest peer at each product counts, whatever its algorithm; products that no peer has computed do not.
func TestVersus(t *testing.T) {
	r := &Report{}
	add := func(matrix string, n int, by, chosen string, us float64) {
		of := Case{Matrix: matrix, N: n, Precision: "f32", Backend: by, Format: "x", Mode: Fast}
		r.Results = append(r.Results, Result{Case: of, Chosen: chosen, Median: us})
	}
	add("a", 128, "cpu", "csr", 10)
	add("a", 128, "p", "", 40)
	add("a", 128, "q", "", 20)
	add("b", 128, "cpu", "csr", 10)
	add("b", 128, "q", "", 5)
	add("c", 128, "cpu", "csr", 10)
	add("a", 32, "cpu", "csr", 10)
	add("a", 32, "p", "", 30)
	want := []Versus{
		{By: "cpu x f32", N: 32, Products: 1, Mean: 3, Least: 3, LeastAt: "a", LeastPeer: "p x"},
		{By: "cpu x f32", N: 128, Products: 2, Mean: 1, Least: 0.5, LeastAt: "b", LeastPeer: "q x", Slower: 1},
	}
	if d := cmp.Diff(want, r.Versus(), cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestReadReport(t *testing.T) {
	var text bytes.Buffer
	if err := sample().Write(&text); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(bytes.NewReader(text.Bytes()), "a.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), got); d != "" {
		t.Errorf("what was written is read as another (-want +got):\n%s", d)
	}
	twice := sample()
	twice.Results = append(twice.Results, twice.Results[0])
	none := sample()
	none.Results[0].Median = 0
	for name, c := range map[string]struct {
		text func(*bytes.Buffer)
		want string
	}{
		"empty": {func(*bytes.Buffer) {}, "a.json is no report of spmmrun bench: EOF"},
		"cut": {func(b *bytes.Buffer) { b.Write(text.Bytes()[:500]) },
			"a.json is no report of spmmrun bench: unexpected EOF"},
		"version":  {func(b *bytes.Buffer) { b.WriteString(`{"version":2}`) }, "another version: version 2, want 1"},
		"manifest": {func(b *bytes.Buffer) { b.WriteString(`{"cases":[]}`) }, "version 0, want 1"},
		"twice":    {func(b *bytes.Buffer) { twice.Write(b) }, "two results of dir/a.mtx, N=32, f32: cpu auto"},
		"list": {func(b *bytes.Buffer) { b.WriteString(`[{"version":1}]`) },
			"no report of spmmrun bench: [ where { is expected"},
		"number": {func(b *bytes.Buffer) { b.WriteString(`{"version":1,"results":5}`) }, "5 where [ is expected"},
		"many": {func(b *bytes.Buffer) { b.WriteString(`{"version":1,"results":[` + strings.Repeat("{},", 1e5)) },
			"a.json says of "},
		"long": {func(b *bytes.Buffer) {
			b.WriteString(`{"environment":{"devices":[` + strings.Repeat("{},", mostOfPart/3) + `{}]}}`)
		}, "a part of it has 1048"},
		"unknown": {func(b *bytes.Buffer) { b.WriteString(`{"else":[` + strings.Repeat("0,", mostOfPart/2) + `0]}`) },
			"a part of it has 1048"},
		"no time": {func(b *bytes.Buffer) { none.Write(b) },
			"a.json says of dir/a.mtx, N=32, f32: cpu auto: its time is 0 µs"},
	} {
		var b bytes.Buffer
		c.text(&b)
		if _, err := ReadReport(&b, "a.json"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func FuzzReadReport(f *testing.F) {
	var text bytes.Buffer
	if err := sample().Write(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadReport(bytes.NewReader(text), "a.json")
		if err != nil {
			return
		}
		c := Compare(r, r)
		if err := c.Print(&bytes.Buffer{}, 0.05); err != nil {
			t.Fatal(err)
		}
		if err := r.Print(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCompare(t *testing.T) {
	old, now := sample(), sample()
	old.Results, now.Results = old.Results[:5], now.Results[:5] // without what would not change
	slower := &now.Results[0]
	for i := range slower.Samples {
		slower.Samples[i] *= 1.1
	}
	slower.Median *= 1.1
	now.Results[2].Error, now.Results[2].Median, now.Results[2].Samples = "out of memory", 0, nil
	now.Results = append(now.Results[:1], now.Results[2:]...) // without the peer
	c := Compare(old, now)
	if len(c.Changes) != 1 || len(c.Lost) != 1 || c.Missing != 1 {
		t.Fatalf("changes %v, lost %v, missing %d: want one each", c.Changes, c.Lost, c.Missing)
	}
	for _, x := range []struct {
		tolerance float64
		want      int
	}{{0.05, 2}, {0.2, 1}} {
		if got := c.Regressions(x.tolerance); got != x.want {
			t.Errorf("tolerance %v: %d regressions, want %d", x.tolerance, got, x.want)
		}
	}
	var got bytes.Buffer
	if err := c.Print(&got, 0.05); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", got.Bytes())
}

// A difference that few samples show may be chance, however large.
func TestChance(t *testing.T) {
	old, now := sample(), sample()
	now.Results[0].Samples, now.Results[0].Median = []float64{20, 20}, 20
	now.Results = now.Results[:1]
	if c := Compare(old, now); c.Regressions(0.05) != 0 {
		t.Errorf("a regression by 2 samples: %+v", c.Changes)
	}
}

// What several reports know is one report; a case that two of them have is an error.
func TestMerge(t *testing.T) {
	a, b := sample(), sample()
	for i := range b.Results {
		b.Results[i].N = 64
	}
	b.Environment.Devices = append(b.Environment.Devices, Device{Backend: "cuda", Name: "H200"})
	b.Environment.Peers = []string{"librsb"}
	a.Environment.Command, b.Environment.Command = []string{"spmmrun", "bench"}, []string{
		"spmmrun", "bench", "-n", "64", "dir/b.mtx",
	}
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	e := m.Environment
	if len(m.Results) != len(a.Results)+len(b.Results) || len(e.Devices) != 2 || len(e.Peers) != 2 || e.Seconds != 24.6 {
		t.Errorf("%d results, devices %v, peers %q, %v s", len(m.Results), e.Devices, e.Peers, e.Seconds)
	}
	var text bytes.Buffer
	if err := m.Markdown(&text); err != nil ||
		!strings.Contains(text.String(), "- command: `spmmrun bench`\n- command: `spmmrun bench -n 64 b.mtx`\n") {
		t.Errorf("not both commands in %s (%v)", text.String(), err)
	}
	if len(sample().Results) != len(a.Results) || len(a.Environment.Devices) != 1 {
		t.Error("the first report is changed")
	}
	if _, err := Merge(a, sample()); err == nil || !strings.Contains(err.Error(), a.Results[0].Case.String()) {
		t.Errorf("error %v for two results of a case", err)
	}
}
