// What is read of go test -json, and what the tables say of it.

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const events = `{"Action":"build-output","ImportPath":"m/broken","Output":"broken.go:1: no\n"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestX/cpu"}
{"Action":"attr","Package":"m/a","Test":"TestX/cpu","Key":"device","Value":"cpu:0 CPU (Go)"}
{"Action":"attr","Package":"m/a","Test":"TestX/cpu","Key":"cases","Value":"7"}
{"Action":"run","Package":"m/a","Test":"TestX/cpu/one"}
{"Action":"output","Package":"m/a","Test":"TestX/cpu/one","Output":"quiet\n"}
{"Action":"pass","Package":"m/a","Test":"TestX/cpu/one"}
{"Action":"pass","Package":"m/a","Test":"TestX/cpu"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestY"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"=== RUN   TestY\n"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"    y_test.go:3: there is no GPU\n"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"--- SKIP: TestY (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestY"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"run","Package":"m/b","Test":"TestZ"}
{"Action":"output","Package":"m/b","Test":"TestZ","Output":"z is wrong\nvery\n"}
{"Action":"fail","Package":"m/b","Test":"TestZ"}
{"Action":"run","Package":"m/b","Test":"TestPanic"}
{"Action":"output","Package":"m/b","Test":"TestPanic","Output":"goroutine 1\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.1s\n"}
{"Action":"fail","Package":"m/b"}
{"Action":"output","Package":"m/broken","Output":"FAIL\tm/broken [build failed]\n"}
{"Action":"fail","Package":"m/broken"}
{"Action":"run","Package":"m/c","Test":"TestParent"}
{"Action":"run","Package":"m/c","Test":"TestParent/passes"}
{"Action":"pass","Package":"m/c","Test":"TestParent/passes"}
{"Action":"fail","Package":"m/c","Test":"TestParent"}
{"Action":"run","Package":"m/c","Test":"TestBelow"}
{"Action":"run","Package":"m/c","Test":"TestBelow/fails"}
{"Action":"fail","Package":"m/c","Test":"TestBelow/fails"}
{"Action":"fail","Package":"m/c","Test":"TestBelow"}
{"Action":"fail","Package":"m/c"}
no event
`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReader(&out, "n")
	r.read(strings.NewReader(events))
	const want = "n: broken.go:1: no\nn: ok  \tm/a\t0.1s\nn: z is wrong\nn: very\nn: goroutine 1\nn: FAIL\tm/b\t0.1s\nn: FAIL\tm/broken [build failed]\nn: no event\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
	dir := t.TempDir()
	s := r.summary()
	s.Name = "n"
	if err := s.write(filepath.Join(dir, "n.json")); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := report(&out, dir); err != nil {
		t.Fatal(err)
	}
	// Failed: TestZ, TestPanic, m/broken, TestParent, TestBelow/fails.
	for _, want := range []string{"n 4 2 1 5 0 0", "n 1 1 7 cpu:0 CPU (Go)", "skipped in n: m/a TestY: there is no GPU"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	if err := s.require([]string{"cpu", "vulkan-matrices"}); err != nil {
		t.Error(err)
	}
	if err := s.require([]string{"vulkan"}); err == nil {
		t.Error("no test ran on vulkan, and that is right")
	}
	if err := report(&out, t.TempDir()); err == nil {
		t.Error("a report of nothing")
	}
}

// A run's results are there whether its tests pass or fail, and a backend that is required must have run.
func TestRun(t *testing.T) {
	m := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module m\n",
		"x_test.go": "package m\nimport \"testing\"\nfunc TestX(t *testing.T) { t.Attr(\"device\", \"cpu:0 x\") }\nfunc TestY(t *testing.T) { t.Error(1) }\n",
	} {
		if err := os.WriteFile(filepath.Join(m, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(m)
	for _, c := range []struct{ require, run, err string }{
		{"cpu", "TestX", ""}, {"cpu", "Test", "exit status 1"}, {"cuda", "TestX", "no test passed on a device of cuda"},
	} {
		t.Setenv("SPMM_REQUIRE", c.require)
		err := run("results", "name", []string{"-run", c.run, "."})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := os.Stat("results/name.json"); err != nil {
			t.Error(err)
		}
	}
}
