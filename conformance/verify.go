// Checking manifests without the devices they are of.

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/shaders"
)

// kernel is the format that a case is of.
func (r *Result) kernel() string {
	k, _, _ := strings.Cut(r.ID, "/")
	return k
}

// exact tells whether right outputs have one digest on every device.
func (r *Result) exact() bool { return r.Ratio == nil && r.Note == "" && r.Status == Pass }

// Compare returns the cases whose outputs must be the same in all of the manifests and are not, in
// words.
func Compare(mans ...*Manifest) []string {
	type seen struct{ device, input, output string }
	first := map[string]seen{}
	var out []string
	for _, m := range mans {
		for i := range m.Cases {
			r := &m.Cases[i]
			if !r.exact() {
				continue
			}
			s := seen{m.Device.String() + ", " + r.Variant, r.Input, r.Output}
			f, ok := first[m.Suite+r.ID]
			switch {
			case !ok:
				first[m.Suite+r.ID] = s
			case f.input != s.input:
				out = append(out, fmt.Sprintf("%s: %s and %s had other inputs", r.ID, f.device, s.device))
			case f.output != s.output:
				out = append(out, fmt.Sprintf("%s: %s gave %s, %s gave %s", r.ID, f.device, f.output, s.device, s.output))
			}
		}
	}
	return out
}

// Verification is what a manifest's digests were found to be.
type Verification struct {
	Right   int      // outputs that are what the CPU alone computes by definition
	Unknown int      // cases that this version of the suite does not have
	Wrong   []string // what is not right, in words
}

// Verify makes the inputs of a manifest's cases again, computes what the outputs must be by exact
// arithmetic, without any kernel, and compares digests. Cases of class T2 have their inputs checked
// alone; cases that did not pass claim nothing.
func Verify(m *Manifest) Verification {
	known := map[string]*test{}
	tests := list(shaders.Formats(), Full, func(string) bool { return true })
	for i := range tests {
		known[tests[i].id()] = &tests[i]
	}
	var v Verification
	var p *problem
	var input string
	for i := range m.Cases {
		r := &m.Cases[i]
		t := known[r.ID]
		if t == nil {
			v.Unknown++
			if m.Suite == Suite {
				v.Wrong = append(v.Wrong, fmt.Sprintf("%s: suite %s has no such case", r.ID, Suite))
			}
			continue
		}
		if p == nil || p.recipe != t.recipe {
			p = t.recipe.build()
			input = p.digest()
		}
		switch {
		case r.Status != Pass && r.Status != Waived && r.Status != Unsupported:
			v.Wrong = append(v.Wrong, fmt.Sprintf("%s with %s: %s %s", r.ID, r.Variant, r.Status, r.Error))
		case r.Input != input:
			v.Wrong = append(v.Wrong, fmt.Sprintf("%s: the inputs have digest %s, not %s", r.ID, input, r.Input))
		case r.Status == Pass && p.want != nil && !slices.Contains(p.expect(t.c), r.Output):
			v.Wrong = append(v.Wrong, fmt.Sprintf("%s with %s: output %s, must be %s", r.ID, r.Variant, r.Output, p.expect(t.c)[0]))
		case r.Status == Pass && p.want != nil:
			v.Right++
		}
	}
	return v
}
