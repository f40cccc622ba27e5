// Reading what go test -json prints.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output, Key, Value string
}

// id names a test.
type id struct{ pkg, test string }

// parent is the test that a subtest is of, and whether there is one.
func (t id) parent() (id, bool) {
	i := strings.LastIndexByte(t.test, '/')
	if i < 0 {
		return id{}, false
	}
	return id{t.pkg, t.test[:i]}, true
}

// reader collects the results of tests, and prints what a person wants to see at once.
type reader struct {
	w       io.Writer
	name    string          // begins each line that is printed
	outputs map[id][]string // of tests that have not passed
	parents map[id]bool     // tests that have subtests
	below   map[id]bool     // tests that have subtests which failed
	results map[id]string   // pass, skip, fail
	devices map[id]string
	reasons map[id]string // why a test was skipped
	cases   map[string]int
	order   []id
}

func newReader(w io.Writer, name string) *reader {
	return &reader{
		w: w, name: name, outputs: map[id][]string{}, parents: map[id]bool{}, below: map[id]bool{}, results: map[id]string{},
		devices: map[id]string{},
		reasons: map[id]string{}, cases: map[string]int{},
	}
}

// read reads to the end. A line that is no event is printed.
func (r *reader) read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
			r.print(line)
		} else {
			r.take(&e)
		}
		if err != nil {
			return
		}
	}
}

func (r *reader) take(e *event) {
	t := id{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		r.print(e.Output)
	case e.Action == "output" && e.Test == "":
		r.line(e.Package, e.Output)
	case e.Action == "output":
		r.outputs[t] = append(r.outputs[t], e.Output)
	case e.Action == "attr" && e.Key == "device":
		r.devices[t] = e.Value
	case e.Action == "attr" && e.Key == "cases":
		n, _ := strconv.Atoi(e.Value)
		r.cases[r.device(t)] += n
	case e.Test == "" && e.Action == "fail":
		r.fail(e.Package)
	case e.Test == "":
	case e.Action == "run":
		if up, ok := t.parent(); ok {
			r.parents[up] = true
		}
	case e.Action == "pass" || e.Action == "skip" || e.Action == "fail":
		r.end(t, e.Action)
	}
}

// line prints what a package as a whole says: its last line, and what is no test's.
func (r *reader) line(pkg, text string) {
	if text == "PASS\n" || strings.HasPrefix(text, "?") || strings.HasPrefix(text, "testing: warning: no tests to run") ||
		strings.HasSuffix(text, "[no tests to run]\n") {
		return
	}
	if strings.HasPrefix(text, "FAIL\t") {
		r.abort(pkg)
	}
	r.print(text)
}

// abort ends as failed the tests of a package that never ended, because the process did.
func (r *reader) abort(pkg string) {
	names := slices.SortedFunc(maps.Keys(r.outputs), func(x, y id) int { return strings.Compare(x.test, y.test) })
	for _, t := range names {
		if t.pkg == pkg && r.results[t] == "" {
			r.end(t, "fail")
		}
	}
}

// fail counts a package that failed although none of its tests did: one that does not compile, say.
func (r *reader) fail(pkg string) {
	if !slices.ContainsFunc(r.order, func(t id) bool { return t.pkg == pkg && r.results[t] == "fail" }) {
		r.end(id{pkg: pkg}, "fail")
	}
}

// print prints lines at once, so that those of other runs do not come between.
func (r *reader) print(text string) {
	if text != "" {
		fmt.Fprintf(r.w, "%s: %s\n", r.name, strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+r.name+": "))
	}
}

// end keeps a test's result.
func (r *reader) end(t id, result string) {
	r.results[t] = result
	r.order = append(r.order, t)
	out := r.outputs[t]
	delete(r.outputs, t)
	switch result {
	case "fail":
		if up, ok := t.parent(); ok {
			r.below[up] = true
		}
		r.print(strings.Join(out, ""))
	case "skip":
		for _, s := range out {
			if s = strings.TrimSpace(s); !strings.HasPrefix(s, "===") && !strings.HasPrefix(s, "---") {
				_, why, _ := strings.Cut(s, ": ")
				r.reasons[t] = why
			}
		}
	}
}

// device is the device that a test, or one that it is part of, says that it runs on.
func (r *reader) device(t id) string {
	for ok := true; ok; t, ok = t.parent() {
		if d := r.devices[t]; d != "" {
			return d
		}
	}
	return ""
}
