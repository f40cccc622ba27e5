// Checking manifests without the devices they are of.

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
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
// words. Manifests of different versions of the suite are not compared.
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
			s := seen{m.Device.String() + " with " + r.Variant, r.Input, r.Output}
			f, ok := first[m.Suite+" "+r.ID]
			switch {
			case !ok:
				first[m.Suite+" "+r.ID] = s
			case f.input != s.input:
				out = append(out, fmt.Sprintf("%s: %s and %s had other inputs", r.ID, f.device, s.device))
			case f.output != s.output:
				out = append(out, fmt.Sprintf("%s: %s gave %s, %s gave %s", r.ID, f.device, f.output, s.device, s.output))
			}
		}
	}
	return out
}

// Verifier recomputes what manifests claim. It remembers what it computed from one to the next.
type Verifier struct {
	tests   map[string]*test
	answers map[recipe]*answer
}

// answer is what the outputs of a recipe must be.
type answer struct {
	input   string
	exact   bool
	outputs map[dtype.Type][]string // the right digests
}

// Verification is what a manifest's digests were found to be.
type Verification struct {
	Right   int      // outputs that are what the CPU alone computes by definition
	Unknown int      // cases that this version of the suite does not have
	Wrong   []string // what is not right, in words
	// Stale names modules that are not those of this build: the manifest is of other kernels.
	Stale []string
}

// Verify makes the inputs of a manifest's cases again, computes what the outputs must be by exact
// arithmetic, without any kernel, and compares digests. Cases of class T2 have their inputs checked
// alone; cases that are unsupported or waived claim nothing more.
func (v *Verifier) Verify(m *Manifest) Verification {
	if v.tests == nil {
		v.tests, v.answers = map[string]*test{}, map[recipe]*answer{}
		tests := list(shaders.Formats(), Full, func(string) bool { return true })
		for i := range tests {
			v.tests[tests[i].id()] = &tests[i]
		}
	}
	found := Verification{Stale: stale(m)}
	for i := range m.Cases {
		r := &m.Cases[i]
		t := v.tests[r.ID]
		switch {
		case r.Status == Fail:
			found.Wrong = append(found.Wrong, fmt.Sprintf("%s with %s failed: %s", r.ID, r.Variant, r.Error))
		case t == nil && m.Suite != Suite:
			found.Unknown++
		case t == nil:
			found.Wrong = append(found.Wrong, fmt.Sprintf("%s: suite %s has no such case", r.ID, Suite))
		default:
			v.check(t, r, &found)
		}
	}
	return found
}

// stale returns the modules of m that this build has with another digest.
func stale(m *Manifest) []string {
	sums := map[string]string{}
	for _, k := range shaders.All() {
		for _, v := range k.Variants {
			if b, err := k.Binary(v); err == nil {
				sums[b.Name] = module(&b).SHA256
			}
		}
	}
	var names []string
	for _, x := range m.Modules {
		if sum, ok := sums[x.Name]; ok && sum != x.SHA256 {
			names = append(names, x.Name)
		}
	}
	return names
}

// check checks the digests of a case that did not fail.
func (v *Verifier) check(t *test, r *Result, found *Verification) {
	a := v.answer(t)
	if r.Input != a.input {
		found.Wrong = append(found.Wrong, fmt.Sprintf("%s: the inputs have digest %s, not %s", r.ID, a.input, r.Input))
		return
	}
	if r.Status != Pass || !a.exact {
		return
	}
	if want := a.outputs[t.c]; !slices.Contains(want, r.Output) {
		found.Wrong = append(found.Wrong, fmt.Sprintf("%s with %s: output %s, must be %s", r.ID, r.Variant, r.Output, strings.Join(want, " or ")))
		return
	}
	found.Right++
}

// answer computes the answer to a case, once for all types of C.
func (v *Verifier) answer(t *test) *answer {
	if a := v.answers[t.recipe]; a != nil {
		return a
	}
	p := t.recipe.build()
	a := &answer{input: p.digest(), exact: p.want != nil, outputs: map[dtype.Type][]string{}}
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		a.outputs[c] = p.expect(c)
	}
	v.answers[t.recipe] = a
	return a
}
