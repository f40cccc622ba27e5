// The tables and pictures that are checked in are those that the reports give; lists that name what is not there are
// refused.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFiguresAreCurrent(t *testing.T) {
	const root = "../.."
	files, err := generated(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 3 {
		t.Fatalf("%d files have figures", len(files))
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from what bench/results gives (%v): make figures writes it anew", name, err)
		}
	}
}

const aReport = `{"version": 1, "environment": {"start": "2026-11-23T00:00:00Z", "command": ["./spmmrun", "bench"],
"note": "by hand", "devices": [{"backend": "cuda", "name": "A GPU", "driver": "1"}]},
"kept": [{"by": "cpu auto f32", "n": 8, "products": 3, "mean": 2.5, "least": 1.25, "least_at": "a.mtx"}],
"results": [
{"matrix": "a.mtx", "n": 32, "precision": "f32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 10, "asked_us": 8},
{"matrix": "a.mtx", "n": 8, "precision": "f32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 5, "asked_us": 6},
{"matrix": "a.mtx", "n": 32, "precision": "f32", "backend": "p", "format": "x", "mode": "fast", "median_us": 9},
{"matrix": "a.mtx", "n": 8, "precision": "f32", "backend": "p", "format": "x", "mode": "fast", "median_us": 20},
{"matrix": "gen:uniform,rows=9,density=0.5", "n": 8, "precision": "f32", "backend": "cuda", "format": "auto",
 "mode": "fast", "way": "apart", "chosen": "csr", "median_us": 7}]}`

const aPair = `{"version": 1, "environment": {"start": "2026-11-23T00:00:00Z", "command": ["./spmmrun", "bench"],
"note": "by hand", "devices": [{"backend": "cuda", "name": "A GPU", "driver": "1"}]},
"results": [
{"matrix": "a", "n": 32, "precision": "f32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 10},
{"matrix": "a", "n": 32, "precision": "tf32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 5},
{"matrix": "b", "n": 32, "precision": "tf32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 20},
{"matrix": "b", "n": 32, "precision": "f32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 10},
{"matrix": "b", "n": 8, "precision": "f16", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 3},
{"matrix": "b", "n": 8, "precision": "f32", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 4},
{"matrix": "c", "n": 8, "precision": "f16", "backend": "cuda", "format": "auto", "mode": "fast",
 "chosen": "csr", "median_us": 3, "attainable_us": 1.5}]}`

const anExample = `{"version": 1, "environment": {"start": "2026-11-27T00:00:00Z", "command": ["python3", "a.py"],
"note": "small", "devices": [{"backend": "cuda:0", "name": "A GPU", "driver": "1"}]},
"rows": [{"label": "a", "values": {"ms": 12.345, "rate": 7}}, {"label": "b", "values": {"ms": 3, "rate": 1234.5}},
{"label": "c", "values": {"rate": 5}}, {"label": "d", "values": {"other": 1}}, {"label": "z", "values": {"ms": 1}}]}`

// tree makes one of a report r, a list of figures and a document.
func tree(t *testing.T, list, document string) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "", "python/README.md": "", "docs/a.md": document, "docs/pictures/README": "",
		"bench/figures.json": list, "bench/results/r.json": aReport, "bench/results/e.json": anExample,
		"bench/results/o.json": aPair,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTables(t *testing.T) {
	const from = "\n*A GPU (1), 2026-11-23: [r](../bench/results/r.json), `spmmrun bench`; by hand.*\n"
	for name, c := range map[string]struct{ list, want string }{
		"times": {`{"tables": [{"name": "x", "kind": "times", "reports": ["r"], "kernels": true}]}`,
			"| µs | way | N=8 | N=32 |\n| --- | --- | --- | --- |\n| a |  | 5 csr (20) | **10** csr (9) |\n| 9², 50 % zeros | apart | 7 csr |  |\n" + from},
		"across": {`{"tables": [{"name": "x", "kind": "times", "reports": ["r"], "across": "way", "columns": [8]}]}`,
			"| µs |  | apart |\n| --- | --- | --- |\n| a | 5 (20) |  |\n| 9², 50 % zeros |  | 7 |\n" + from},
		"shares": {`{"tables": [{"name": "x", "kind": "times", "shares": true, "reports": ["o"], "matrix": "c"}]}`,
			"| µs | N=8 |\n| --- | --- |\n| c | 3, 50 % |\n" +
				strings.ReplaceAll(from, "r](../bench/results/r.", "o](../bench/results/o.")},
		"over": {`{"tables": [{"name": "x", "kind": "over", "reports": ["o"], "across": "precision", "base": "f32"}]}`,
			"| over f32 | products | tf32 | f16 |\n| --- | --- | --- | --- |\n| N=8 | 1 |  | 0.75, 0.75 at most |\n" +
				"| N=32 | 2 | 1.00, 2.00 at most |  |\n" +
				strings.ReplaceAll(from, "r](../bench/results/r.", "o](../bench/results/o.")},
		"asked": {`{"tables": [{"name": "x", "kind": "asked", "reports": ["r"]}]}`,
			"| matrix | N | device, format | target µs | measured µs | target / measured |\n| --- | --- | --- | --- | --- | --- |\n" +
				"| a | 32 | cuda auto | 8 | 10 | **0.80** |\n| a | 8 | cuda auto | 6 | 5 | 1.20 |\n" + from},
		"ratios": {`{"tables": [{"name": "x", "kind": "ratios", "reports": ["r"], "by": "auto$"}]}`,
			"| device, format, type | N | products | times as fast (geometric mean) | least | for matrix | peer |\n| --- | --- | --- | --- | --- | --- | --- |\n" +
				"| cpu auto f32 | 8 | 3 | 2.50 | 1.25 | a |  |\n| cuda auto f32 | 8 | 1 | 4.00 | 4.00 | a | p x |\n| cuda auto f32 | 32 | 1 | 0.90 | 0.90 | a | p x |\n" + from},
		"products": {`{"tables": [{"name": "x", "kind": "products", "lines": [{"label": "A", "others": "p", "reports": ["r"], "columns": [8]}]}]}`,
			"| A | type | columns of B | spmm | other | the fastest other | times faster |\n" +
				"| --- | --- | --- | --- | --- | --- | --- |\n| A | f32 | 8 | 5 | 20 | p | 4.0 |\n"},
		"numbers": {`{"tables": [{"name": "x", "kind": "numbers", "reports": ["e"], "rows": "^[a-d]$", "values": ["ms", "rate"], "best": {"ms": "least"}}]}`,
			"|  | ms | rate |\n| --- | --- | --- |\n| a | 12.3 | 7 |\n| b | **3** | 1234 |\n| c |  | 5 |\n\n" +
				"*A GPU (1), 2026-11-27: [e](../bench/results/e.json), `python3 a.py`; small.*\n"},
		"summary": {`{"tables": [{"name": "x", "kind": "summary", "lines": [{"label": "A", "others": "p", "reports": ["r"], "columns": [32]}]}]}`,
			"| A | compared with | columns of B | times as fast (geometric mean) | least |\n| --- | --- | --- | --- | --- |\n| A | p | 32 | 0.90 | 0.90 |\n"},
		"peers": {`{"tables": [{"name": "x", "kind": "summary", "lines": [{"label": "A", "others": "p", "reports": ["r"], "columns": [32], "peers": "^p x$"}]}]}`,
			"| A | compared with | columns of B | times as fast (geometric mean) | least |\n| --- | --- | --- | --- | --- |\n| A | p | 32 | 0.90 | 0.90 |\n"},
	} {
		root := tree(t, c.list, "Text.\n\n<!-- figures: x -->\nstale\n<!-- end -->\n\nMore.\n")
		if err := write(root); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "a.md"))
		if want := "Text.\n\n<!-- figures: x -->\n" + c.want + "<!-- end -->\n\nMore.\n"; err != nil || string(got) != want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	const here, x = "<!-- figures: x -->\n<!-- end -->\n", `{"name": "x", "kind": "times", "reports": ["r"]}`
	for name, c := range map[string]struct{ list, document, want string }{
		"no document": {`{"tables": [` + x + `]}`, "", "table x is in no document"},
		"no table":    {`{}`, here, "has no table x"},
		"no end":      {`{"tables": [` + x + `]}`, here + "<!-- figures: x -->\n", "without <!-- end -->"},
		"no report":   {`{"tables": [{"name": "x", "kind": "times", "reports": ["none"]}]}`, here, "none.json"},
		"no reports":  {`{"tables": [{"name": "x", "kind": "times"}]}`, here, "names no reports"},
		"no result": {`{"tables": [{"name": "x", "kind": "times", "reports": ["r"], "matrix": "z"}]}`, here,
			"no result is taken"},
		"no kind":      {`{"tables": [{"name": "x", "reports": ["r"]}]}`, here, `kind ""`},
		"no dimension": {`{"tables": [{"name": "x", "kind": "times", "across": "z", "reports": ["r"]}]}`, here, `across "z"`},
		"no other":     {`{"tables": [{"name": "x", "kind": "over", "across": "", "reports": ["o"]}]}`, here, `across ""`},
		"no base": {`{"tables": [{"name": "x", "kind": "over", "across": "mode", "base": "slow", "reports": ["o"]}]}`, here,
			"no result is taken"},
		"no pattern": {`{"tables": [{"name": "x", "kind": "times", "reports": ["r"], "by": "("}]}`, here,
			"missing closing )"},
		"no row":      {`{"tables": [{"name": "x", "kind": "numbers", "reports": ["e"], "rows": "y"}]}`, here, "no row is taken"},
		"two reports": {`{"tables": [{"name": "x", "kind": "numbers", "reports": ["e", "r"]}]}`, here, "want one"},
		"no rows":     {`{"tables": [{"name": "x", "kind": "numbers", "reports": ["e"], "rows": "("}]}`, here, "missing closing )"},
		"no example":  {`{"tables": [{"name": "x", "kind": "numbers", "reports": ["none"]}]}`, here, "none.json"},
		"twice":       {`{"tables": [` + x + "," + x + `]}`, here, "two tables have the name x"},
		"unknown":     {`{"charts": []}`, here, "unknown field"},
		"no product": {`{"tables": [{"name": "x", "kind": "products", "lines": [{"label": "A", "reports": ["r"], "matrix": "uniform"}]}]}`, here,
			`line "A": no result is taken`},
		"no peer": {`{"tables": [{"name": "x", "kind": "summary", "lines": [{"label": "A", "reports": ["r"], "columns": [32], "peers": "q"}]}]}`, here,
			`line "A": no result is taken`},
		"no pattern of peers": {`{"tables": [{"name": "x", "kind": "summary", "lines": [{"label": "A", "reports": ["r"], "peers": "("}]}]}`, here,
			"missing closing )"},
		"no line": {`{"tables": [{"name": "x", "kind": "summary", "lines": [{"label": "A", "reports": ["r"], "columns": [1]}]}]}`, here,
			`line "A": no result is taken`},
	} {
		if err := write(tree(t, c.list, c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
