// What became of tests: written after each run, and read for the tables.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// summary is the result of a run, or of one package of it. Of a test with subtests only these are counted, unless the
// test fails and none of them does. A package that fails without a failed test counts as a failed test.
type summary struct {
	Name                    string
	Packages                int
	Passed, Skipped, Failed int
	Wall, CPU               float64 // seconds, of all packages together
	Devices                 map[string]*onDevice
	Skips                   []string // tests, and why
}

// onDevice counts the tests that ran on a device.
type onDevice struct {
	Packages, Passed int
	Cases            int // of the conformance suite, with all variants
}

func (r *reader) summary() *summary {
	s := &summary{Devices: map[string]*onDevice{}}
	packages := map[string]map[string]bool{} // by device, "" for all
	for _, t := range r.order {
		if r.parents[t] && (r.results[t] != "fail" || r.below[t]) {
			continue
		}
		d := r.device(t)
		switch r.results[t] {
		case "fail":
			s.Failed++
		case "skip":
			s.Skipped++
			s.Skips = append(s.Skips, fmt.Sprintf("%s %s: %s", t.pkg, t.test, r.reasons[t]))
		default:
			s.Passed++
			if d != "" {
				s.on(d).Passed++
			}
		}
		for _, d := range []string{"", d} {
			if packages[d] == nil {
				packages[d] = map[string]bool{}
			}
			packages[d][t.pkg] = true
		}
	}
	for d, n := range r.cases {
		s.on(d).Cases += n
	}
	for d, p := range packages {
		if d == "" {
			s.Packages = len(p)
		} else {
			s.on(d).Packages = len(p)
		}
	}
	return s
}

// add adds the results of another package.
func (s *summary) add(x *summary) {
	s.Packages, s.Passed, s.Skipped, s.Failed = s.Packages+x.Packages, s.Passed+x.Passed, s.Skipped+x.Skipped,
		s.Failed+x.Failed
	s.Wall, s.CPU, s.Skips = s.Wall+x.Wall, s.CPU+x.CPU, append(s.Skips, x.Skips...)
	for name, d := range x.Devices {
		on := s.on(name)
		on.Packages, on.Passed, on.Cases = on.Packages+d.Packages, on.Passed+d.Passed, on.Cases+d.Cases
	}
}

func (s *summary) on(device string) *onDevice {
	if s.Devices[device] == nil {
		s.Devices[device] = &onDevice{}
	}
	return s.Devices[device]
}

// require fails unless some test has passed on a device of each backend. (Of other names, such as vulkan-matrices, the
// tests themselves see to it.)
func (s *summary) require(backends []string) error {
	for _, b := range backends {
		if strings.Contains(b, "-") {
			continue
		}
		ran := false
		for d, x := range s.Devices {
			ran = ran || strings.HasPrefix(d, b+":") && x.Passed > 0
		}
		if !ran {
			return fmt.Errorf("%s: SPMM_REQUIRE: no test passed on a device of %s", s.Name, b)
		}
	}
	return nil
}

func (s *summary) write(file string) error {
	text, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o666)
}

// report prints what all runs came to.
func report(w io.Writer, all []*summary) error {
	var sum summary
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nRUN\tPACKAGES\tPASSED\tSKIPPED\tFAILED\tSECONDS\tOF CPU")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%.0f\t%.0f\n", s.Name, s.Packages, s.Passed, s.Skipped, s.Failed, s.Wall, s.CPU)
		sum.Passed, sum.Skipped, sum.Failed, sum.CPU = sum.Passed+s.Passed, sum.Skipped+s.Skipped, sum.Failed+s.Failed,
			sum.CPU+s.CPU
	}
	fmt.Fprintf(t, "all\t\t%d\t%d\t%d\t\t%.0f\n", sum.Passed, sum.Skipped, sum.Failed, sum.CPU)
	t.Flush()
	fmt.Fprintln(t, "\nRUN\tPACKAGES\tPASSED\tCASES\tDEVICE")
	for _, s := range all {
		for _, d := range slices.Sorted(maps.Keys(s.Devices)) {
			x := s.Devices[d]
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", s.Name, x.Packages, x.Passed, x.Cases, d)
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	for _, s := range all {
		for _, skip := range s.Skips {
			fmt.Fprintf(w, "skipped in %s: %s\n", s.Name, skip)
		}
	}
	return nil
}
