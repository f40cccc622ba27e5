// What is read of a test binary's events, what the tables say, and a module whose tests are built once and run twice.

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const events = `{"Action":"run","Package":"m/a","Test":"TestX"}
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
{"Action":"run","Package":"m/b","Test":"TestZ"}
{"Action":"output","Package":"m/b","Test":"TestZ","Output":"z is wrong\nvery\n"}
{"Action":"fail","Package":"m/b","Test":"TestZ"}
{"Action":"run","Package":"m/b","Test":"TestPanic"}
{"Action":"output","Package":"m/b","Test":"TestPanic","Output":"goroutine 1\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.1s\n"}
{"Action":"fail","Package":"m/b"}
{"Action":"run","Package":"m/c","Test":"TestParent"}
{"Action":"run","Package":"m/c","Test":"TestParent/passes"}
{"Action":"pass","Package":"m/c","Test":"TestParent/passes"}
{"Action":"fail","Package":"m/c","Test":"TestParent"}
{"Action":"run","Package":"m/c","Test":"TestBelow"}
{"Action":"run","Package":"m/c","Test":"TestBelow/fails"}
{"Action":"fail","Package":"m/c","Test":"TestBelow/fails"}
{"Action":"fail","Package":"m/c","Test":"TestBelow"}
{"Action":"fail","Package":"m/c"}
{"Action":"fail","Package":"m/d"}
no event
`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReader(&out, "n")
	r.read(strings.NewReader(events))
	const want = "n: z is wrong\nn: very\nn: goroutine 1\nn: FAIL\tm/b\t0.1s\nn: no event\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
	s := r.summary()
	s.Name = "n"
	out.Reset()
	if err := report(&out, []*summary{s}); err != nil {
		t.Fatal(err)
	}
	// Failed: TestZ, TestPanic, m/d, TestParent, TestBelow/fails.
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
	both := &summary{Devices: map[string]*onDevice{}}
	both.add(s)
	both.add(s)
	if both.Passed != 4 || both.Failed != 10 || both.Devices["cpu:0 CPU (Go)"].Cases != 14 || len(both.Skips) != 2 {
		t.Errorf("the sum of two is %+v", both)
	}
}

// module makes a module of files the current folder.
func module(t *testing.T, files map[string]string) {
	t.Chdir(t.TempDir())
	files["go.mod"] = "module m\n"
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Tests are built once for two runs; what fails, crashes, or did not run on a device that must have is told, and the
// others run all the same.
func TestRun(t *testing.T) {
	const body = `package x
import ("os"; "testing")
func TestX(t *testing.T) { t.Attr("device", "cpu:0 x") }
func TestY(t *testing.T) { if os.Getenv("FAIL") != "" { t.Error("wrong") } }
func TestZ(t *testing.T) { if os.Getenv("CRASH") != "" { os.Exit(7) } }
`
	module(t, map[string]string{"x/x_test.go": body, "y/x/x_test.go": body, "none/none.go": "package none\n"})
	c := &config{name: "c"}
	chosen := []*run{
		{name: "good", config: c, packages: []string{"./y/x", "./..."}, env: []string{"SPMM_REQUIRE=cpu"}},
		{name: "bad", config: c, packages: []string{"./x/..."}, env: []string{"FAIL=1"}},
		{name: "crash", config: c, packages: []string{"./x"}, env: []string{"CRASH=1"}},
		{name: "hollow", config: c, packages: []string{"./x"}, env: []string{"SPMM_REQUIRE=cuda"}},
		{name: "command", config: c, command: []string{"echo", "SKIPPED [1] x.py:3: no GPU\n3 passed, 1 skipped in 0.12s"}},
		{name: "wrong", config: c, command: []string{"sh", "-c", "echo '2 failed, 1 passed, 1 error in 1s'; exit 1"}},
		{name: "broken", config: c, command: []string{"sh", "-c", "echo no file; exit 2"}},
		{name: "missing", config: c, command: []string{"no such program"}},
	}
	b := &builder{dir: "results"}
	if err := b.build(t.Context(), chosen); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, p := range b.of(chosen[0]) {
		order = append(order, p.rel)
	}
	if !slices.Equal(order, []string{"./y/x", "./x"}) {
		t.Errorf("the packages are %v", order)
	}
	all, err := runAll(t.Context(), b, chosen, 2)
	for _, want := range []string{"bad: 1 tests failed", "crash: 1 tests failed",
		"hollow: SPMM_REQUIRE: no test passed on a device of cuda", "wrong: 3 tests failed", "broken: 1 tests failed",
		"missing: no such program: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "good") {
		t.Error(err)
	}
	if want := []string{"command x.py:3 1: no GPU"}; !slices.Equal(all[4].Skips, want) {
		t.Errorf("%q were skipped, want %q", all[4].Skips, want)
	}
	for i, want := range []int{6, 2, 2, 3, 3, 1, 0, 0} {
		if all[i].Passed != want {
			t.Errorf("%s: %d passed, want %d", all[i].Name, all[i].Passed, want)
		}
		if _, err := os.Stat("results/" + all[i].Name + ".json"); err != nil {
			t.Error(err)
		}
	}
}

// Go test keeps the results of a cached run, and they count again. What other runs have too, what is to run again and,
// of a fresh run, all, runs each time.
func TestCached(t *testing.T) {
	const body = `package x
import ("os"; "testing")
func TestX(t *testing.T) {
	t.Attr("device", "cpu:0 x")
	f, err := os.OpenFile(os.Getenv("LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil { t.Fatal(err) }
	f.WriteString("NAME ")
	f.Close()
	if os.Getenv("FAIL") != "" { t.Error("wrong") }
}
`
	files := map[string]string{}
	for _, name := range []string{"kept", "again", "both"} {
		files[name+"/x_test.go"] = strings.ReplaceAll(body, "NAME", name)
	}
	module(t, files)
	log := filepath.Join(t.TempDir(), "log")
	c := &config{name: "c"}
	env := []string{"LOG=" + log, "SPMM_REQUIRE=cpu"}
	chosen := []*run{
		{name: "host", config: c, packages: []string{"./..."}, cached: true, again: []string{"./again"}, env: env},
		{name: "other", config: c, packages: []string{"./both"}, env: env},
	}
	for _, step := range []struct {
		fail, fresh bool
		want        string // the packages that ran
	}{
		{want: "again both both kept"},
		{want: "again both both"},
		{fresh: true, want: "again both both kept"},
		{fail: true, want: "again both both kept"},
		{fail: true, want: "again both both kept"}, // what failed is not kept
	} {
		if step.fail {
			t.Setenv("FAIL", "1")
		}
		b := &builder{dir: "results", fresh: step.fresh}
		if err := b.build(t.Context(), chosen); err != nil {
			t.Fatal(err)
		}
		all, err := runAll(t.Context(), b, chosen, 2)
		if (err != nil) != step.fail {
			t.Errorf("%+v: %v", step, err)
		}
		if host := all[0]; host.Packages != 3 || host.Passed+host.Failed != 3 || host.Failed > 0 != step.fail {
			t.Errorf("%+v: %+v", step, host)
		}
		ran, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(log)
		names := strings.Fields(string(ran))
		slices.Sort(names)
		if got := strings.Join(names, " "); got != step.want {
			t.Errorf("%+v: %s ran", step, got)
		}
	}
}

// The table is sound: names once, sets and drivers that exist, and what is chosen of it.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table {
		if seen[r.name] || !slices.Contains(sets, r.set) || r.config == nil || (len(r.packages) == 0) == (r.command == nil) {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
		if _, ok := wrappers[r.driver]; r.driver != machine && !ok || r.driver != machine && setups[r.driver] == nil {
			t.Errorf("%s: no driver %q", r.name, r.driver)
		}
	}
	count := map[string]int{}
	for _, set := range sets {
		chosen, err := choose(set, nil)
		if err != nil {
			t.Error(err)
		}
		count[set] = len(chosen)
	}
	if !(0 < count[setTest] && count[setTest] < count[setAll] && count[setAll] < count[setNight] &&
		count[setNight] == len(table)) {
		t.Errorf("the sets have %v of %d runs", count, len(table))
	}
	one, err := choose("", []string{"host"})
	if err != nil || len(one) != 1 || one[0].name != "host" {
		t.Errorf("host: %v, %v", one, err)
	}
	for _, c := range []struct {
		set   string
		names []string
	}{{"", nil}, {"some", nil}, {"", []string{"nothing"}}, {"", []string{"host", "nothing"}}} {
		if _, err := choose(c.set, c.names); err == nil {
			t.Errorf("%+v is refused", c)
		}
	}
}

// TestMain lets go test run this binary as the program that keeps what it builds.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "keep" {
		if err := command(context.Background(), os.Args[1:]); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}
