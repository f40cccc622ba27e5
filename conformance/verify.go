// Checking manifests without the devices they are of.

package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// kernel is the format that a case is of.
func (r *Result) kernel() string {
	k, _, _ := strings.Cut(r.ID, "/")
	return k
}

// exact tells whether right outputs have one digest on every device.
func (r *Result) exact() bool { return r.Ratio == nil && r.Note == "" && r.Status == Pass }

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
	// Of class T3: the precision of the product, and whether it was found to lose nothing.
	bits     int
	lossless bool
}

// Verification is what a manifest's digests were found to be.
type Verification struct {
	Right   int      // outputs that are what the CPU alone computes by definition
	Unknown int      // cases that this version of the suite does not have, or not so
	Wrong   []string // what is not right, in words
	// Stale names modules that are not those of this build: the manifest is of other kernels.
	Stale []string
}

// Verify makes the inputs of a manifest's cases again, computes what the outputs of classes T1 and T3 must
// be by exact arithmetic, without any kernel, and compares digests. Of class T2 it checks the inputs, and
// that the ratio bears the verdict out. A manifest of this version of the suite must have all its cases.
func (v *Verifier) Verify(m *Manifest) Verification {
	if v.tests == nil {
		v.tests, v.answers = map[string]*test{}, map[recipe]*answer{}
		tests := list(shaders.Formats(), Full, func(string) bool { return true })
		for i := range tests {
			v.tests[tests[i].id()] = &tests[i]
		}
	}
	found := Verification{Stale: stale(m), Wrong: consistent(m)}
	for i := range m.Cases {
		r := &m.Cases[i]
		t := v.tests[r.ID]
		switch {
		case r.Status == Fail:
			found.wrong("%s with %s failed: %s", r.ID, r.Variant, r.Error)
		case t == nil && m.Suite != Suite:
			found.Unknown++
		case t == nil:
			found.wrong("%s: suite %s has no such case", r.ID, Suite)
		default:
			v.check(m, t, r, &found)
		}
	}
	if m.Suite == Suite {
		v.complete(m, &found)
	}
	return found
}

func (v *Verification) wrong(format string, a ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, a...))
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

// check checks a case that did not fail.
func (v *Verifier) check(m *Manifest, t *test, r *Result, found *Verification) {
	a := v.answer(t)
	if r.Input != a.input {
		if m.Suite != Suite {
			found.Unknown++
			return
		}
		found.wrong("%s: the inputs have digest %s, not %s", r.ID, a.input, r.Input)
		return
	}
	if r.Tier != t.tier || r.Generator != t.recipe.name() || r.Seed != t.seed {
		found.wrong("%s is %s with seed %d of tier %s, not %s, %d, %s", r.ID, t.recipe.name(), t.seed, t.tier, r.Generator, r.Seed, r.Tier)
	}
	switch {
	case r.Status == Waived && !granted(m, t, r):
		found.wrong("%s with %s: no waiver is for it", r.ID, r.Variant)
	case r.Status != Pass:
	case a.exact:
		v.exact(t, r, a, found)
	case r.Ratio == nil || *r.Ratio > 1:
		found.wrong("%s with %s: passed without a ratio of at most 1", r.ID, r.Variant)
	}
}

// exact checks the output of a case that has one right answer, or two.
func (v *Verifier) exact(t *test, r *Result, a *answer, found *Verification) {
	want := a.outputs[t.c]
	switch at := slices.Index(want, r.Output); {
	case at < 0:
		found.wrong("%s with %s: output %s, must be %s", r.ID, r.Variant, r.Output, strings.Join(want, " or "))
	case r.Ratio != nil || (r.Note != "") != (at > 0):
		found.wrong("%s with %s: ratio or note %q are not those of its output", r.ID, r.Variant, r.Note)
	case r.P != a.bits || r.Lossless != a.lossless:
		found.wrong("%s with %s: p = %d, lossless %v; must be %d, %v", r.ID, r.Variant, r.P, r.Lossless, a.bits, a.lossless)
	default:
		found.Right++
	}
}

// granted tells whether a published waiver, which the manifest lists, covers a case.
func granted(m *Manifest, t *test, r *Result) bool {
	matrix := slices.ContainsFunc(m.Variants, func(x Variant) bool { return x.Name == r.kernel()+"/"+r.Variant && x.Matrix })
	w := waiverFor(m.Device, &spec.Variant{Matrix: matrix}, t.class)
	return w != nil && slices.Contains(m.Waivers, *w)
}

// consistent says what in a manifest contradicts the rest of it.
func consistent(m *Manifest) []string {
	var v Verification
	if seal, err := m.seal(); err != nil || m.Seal != seal {
		v.wrong("the seal is broken: the manifest was changed after it was written (%s, its contents have %s)", m.Seal, seal)
	}
	for _, e := range m.ProbeErrors {
		v.wrong("a probe could not be made: %s", e)
	}
	counts := map[Status]int{}
	type key struct{ id, variant string }
	seen, ran := map[key]bool{}, map[string]bool{}
	for i := range m.Cases {
		r := &m.Cases[i]
		k := key{r.ID, r.Variant}
		if seen[k] {
			v.wrong("%s with %s is there twice", r.ID, r.Variant)
		}
		seen[k], ran[r.Variant] = true, true
		counts[r.Status]++
		if (r.Status == Pass) != (r.Error == "") || r.Status == Pass && r.Output == "" || r.Status == Unsupported && r.Output != "" {
			v.wrong("%s with %s: %s, with output %q and error %q", r.ID, r.Variant, r.Status, r.Output, r.Error)
		}
	}
	if !maps.Equal(counts, m.Summary) {
		v.wrong("the summary is %v, the cases have %v", m.Summary, counts)
	}
	for _, x := range m.Variants {
		if _, name, _ := strings.Cut(x.Name, "/"); !ran[name] {
			v.wrong("variant %s ran no case", x.Name)
		}
	}
	return v.Wrong
}

// complete says which cases of the suite a manifest of its version lacks.
func (v *Verifier) complete(m *Manifest, found *Verification) {
	filter, err := regexp.Compile(m.Filter)
	if err != nil {
		found.wrong("filter: %v", err)
		return
	}
	ran := map[string]map[string]bool{} // variants by case
	like := map[string]map[string]bool{}
	for i := range m.Cases {
		r := &m.Cases[i]
		mark(ran, r.ID, r.Variant)
		if t := v.tests[r.ID]; t != nil && t.path == direct {
			mark(like, t.likes(), r.Variant)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.tests)) {
		t := v.tests[id]
		if t.tier == Full && m.Tier != Full || !filter.MatchString(id) {
			continue
		}
		if len(ran[id]) == 0 {
			found.wrong("%s is missing", id)
		}
		for variant := range like[t.likes()] {
			if t.path == direct && !ran[id][variant] {
				found.wrong("%s with %s is missing", id, variant)
			}
		}
	}
}

// likes names the cases that run with the same variants.
func (t *test) likes() string { return fmt.Sprintf("%s/%v/%v/%d", t.target.name(), t.prec, t.c, t.p) }

func mark(sets map[string]map[string]bool, key, member string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][member] = true
}

// answer computes the answer to a case, once for all types of C.
func (v *Verifier) answer(t *test) *answer {
	if a := v.answers[t.recipe]; a != nil {
		return a
	}
	p := t.recipe.build()
	a := &answer{input: p.digest(), exact: p.want != nil, outputs: map[dtype.Type][]string{}, bits: p.bits, lossless: p.lossless}
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
		a.outputs[c] = p.expect(c)
	}
	v.answers[t.recipe] = a
	return a
}
