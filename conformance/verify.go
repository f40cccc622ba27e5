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

// exact reports whether right outputs have one digest on every device.
func (r *Result) exact() bool { return r.Ratio == nil && r.Note == "" && r.Status == Pass }

// Verifier recomputes the claims of manifests. It keeps what it computed for the next manifest.
type Verifier struct {
	tests   map[string]*test // of the suite, by name
	answers map[recipe]*answer
	last    *instance         // that was built last
	modules map[string]form   // of this build, by name
	digests map[string]string // of those that manifests have named
}

// answer has the right outputs of a recipe.
type answer struct {
	input   string
	exact   bool
	outputs map[dtype.Type][]string // the right digests
	// Of class T3: the precision of the product, and whether it was found to lose nothing.
	bits     int
	lossless bool
}

// Verification is the result of verifying a manifest.
type Verification struct {
	Right int      // outputs that equal those computed on the CPU by definition
	Wrong []string // what is not right, in words
	// Missing names the cases, and the variants of a case, that did not run though the device has what they need. A
	// manifest of an earlier build lacks those that were added since.
	Missing []string
	// Stale names modules that are not those of this build: the manifest is of other kernels.
	Stale []string
}

// Verify makes the inputs of a manifest's cases again, computes the outputs of classes T1 and T3 by exact arithmetic,
// without any kernel, and compares digests. For class T2 it checks the inputs, and that the verdict follows from the
// recorded ratio. From the recorded capabilities it derives which cases and variants must have run; it accepts
// "unsupported" only if it follows from them. A manifest of another version of the suite is verified by the releases
// with that version.
func (v *Verifier) Verify(m *Manifest) Verification {
	if v.tests == nil {
		v.tests, v.answers = map[string]*test{}, map[recipe]*answer{}
		tests := list(shaders.Formats(), Full, func(string) bool { return true })
		for i := range tests {
			v.tests[tests[i].id()] = &tests[i]
		}
	}
	found := Verification{Stale: v.stale(m), Wrong: consistent(m)}
	if m.Suite != Suite {
		found.wrong("suite %q is not this version's, which is %q: verify it with the release that has it", m.Suite, Suite)
		return found
	}
	caps, err := m.device()
	if err != nil {
		found.wrong("%v", err)
		return found
	}
	c := &claim{v, m, newEligibility(caps, m.Unlisted), &found}
	for i := range m.Cases {
		r := &m.Cases[i]
		t := v.tests[r.ID]
		switch {
		case r.Status == Fail:
			found.wrong("%s with %s failed: %s", r.ID, r.Variant, r.Error)
		case t == nil:
			found.wrong("%s: suite %s has no such case", r.ID, m.Suite)
		default:
			c.check(t, r)
		}
	}
	c.complete()
	c.core()
	return found
}

// claim is a manifest under verification.
type claim struct {
	*Verifier
	m     *Manifest
	may   *eligibility
	found *Verification
}

func (v *Verification) wrong(format string, a ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, a...))
}

// Findings returns what is wrong, and what is missing.
func (v *Verification) Findings() []string { return slices.Concat(v.Wrong, v.Missing) }

func (v *Verification) missing(format string, a ...any) {
	v.Missing = append(v.Missing, fmt.Sprintf(format, a...)+" is missing")
}

// digest returns the digest of this build's module with that name, and whether there is one. It reads no other module.
func (v *Verifier) digest(name string) (sum string, ok bool) {
	if v.modules == nil {
		v.modules, v.digests = map[string]form{}, map[string]string{}
		for _, k := range shaders.All() {
			for _, x := range k.Forms() {
				v.modules[k.Name+"/"+x.Name] = form{k, x}
			}
		}
	}
	if sum, ok = v.digests[name]; ok {
		return sum, true
	}
	f, ok := v.modules[name]
	if !ok {
		return "", false
	}
	b, err := f.of.Binary(f.v)
	if err != nil {
		return "", false
	}
	v.digests[name] = module(&b).SHA256
	return v.digests[name], true
}

// stale returns the modules of m that this build has with another digest.
func (v *Verifier) stale(m *Manifest) []string {
	var names []string
	for _, x := range m.Modules {
		if sum, ok := v.digest(x.Name); ok && sum != x.SHA256 {
			names = append(names, x.Name)
		}
	}
	return names
}

// check checks a case that did not fail.
func (c *claim) check(t *test, r *Result) {
	a := c.answer(t)
	if r.Input != a.input {
		c.found.wrong("%s: the inputs have digest %s, not %s", r.ID, a.input, r.Input)
		return
	}
	switch {
	case r.Status == Waived && !granted(c.m, t, r):
		c.found.wrong("%s with %s: no waiver is for it", r.ID, r.Variant)
	case r.Status == Unsupported && !c.unsupported(t, r):
		c.found.wrong("%s with %q: is said to be unsupported, but a device of these capabilities must run it", r.ID, r.Variant)
	case r.Status != Pass:
	case a.exact:
		c.exact(t, r, a)
	case r.Ratio == nil || *r.Ratio > 1:
		c.found.wrong("%s with %s: passed without a ratio of at most 1", r.ID, r.Variant)
	}
}

// unsupported reports whether the device has no variant for a case, or the format refuses it.
func (c *claim) unsupported(t *test, r *Result) bool {
	vs, _ := c.may.variants(t)
	if len(vs) == 0 {
		return true
	}
	if r.Variant == "" {
		return false
	}
	if v := c.may.named(t.kernel, r.Variant); v != nil {
		vs = []*spec.Variant{v}
	}
	if c.last == nil || c.last.of != t.recipe {
		c.last = t.recipe.inputs()
	}
	return !slices.ContainsFunc(vs, func(v *spec.Variant) bool { return !refuses(t, c.last, v, c.may.caps) })
}

// exact checks the output of a case that has one right answer, or two.
func (c *claim) exact(t *test, r *Result, a *answer) {
	found := c.found
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

// granted reports whether a published waiver, which the manifest lists, covers a case.
func granted(m *Manifest, t *test, r *Result) bool {
	matrix := slices.ContainsFunc(m.Variants, func(x Variant) bool {
		return x.Name == r.kernel()+"/"+r.Variant &&
			x.Matrix
	})
	w := waiverFor(m.Device, &spec.Variant{Matrix: matrix}, t.class)
	return w != nil && slices.Contains(m.Waivers, *w)
}

// consistent says what in a manifest contradicts its other contents.
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
		if (r.Status == Pass) != (r.Error == "") || r.Status == Pass && r.Output == "" || r.Status == Unsupported &&
			r.Output != "" {
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

// complete says which cases and variants the manifest lacks that the suite and its device's
// capabilities demand.
func (c *claim) complete() {
	filter, err := regexp.Compile(c.m.Filter)
	if err != nil {
		c.found.wrong("filter: %v", err)
		return
	}
	ran := map[string]map[string]bool{} // variants by case
	like := map[string]map[string]bool{}
	for i := range c.m.Cases {
		r := &c.m.Cases[i]
		mark(ran, r.ID, r.Variant)
		if t := c.tests[r.ID]; t != nil && t.path == direct {
			mark(like, t.likes(), r.Variant)
		}
	}
	whole, cases := c.m.Incomplete == nil, Part{Ran: len(ran)}
	for _, id := range slices.Sorted(maps.Keys(c.tests)) {
		t := c.tests[id]
		if t.tier == Full && c.m.Tier != Full || !filter.MatchString(id) {
			continue
		}
		cases.Of++
		if len(ran[id]) == 0 {
			if whole {
				c.found.missing("%s", id)
			}
			continue
		}
		for _, variant := range c.due(t, like[t.likes()]) {
			if !ran[id][variant] {
				c.found.missing("%s with %s", id, variant)
			}
		}
	}
	if !whole && *c.m.Incomplete != cases {
		c.found.wrong("it says that it has %v, it has %v", c.m.Incomplete, cases)
	}
}

// due names the variants that must have run a case: those that the device's capabilities admit, and those that ran
// cases like it (which this build may no longer have).
func (c *claim) due(t *test, like map[string]bool) []string {
	if t.path != direct {
		return nil // any one, which package spmm took
	}
	names := map[string]bool{}
	maps.Copy(names, like)
	vs, _ := c.may.variants(t)
	for _, v := range vs {
		names[v.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// core reports the cases that did not pass and that every device must pass, whatever its capabilities: format csr in
// f32, of each class that has such cases.
func (c *claim) core() {
	if c.m.Summary[Pass] == 0 {
		c.found.wrong("no case passed")
	}
	if c.m.Filter != "" || c.m.Incomplete != nil {
		return
	}
	passed := map[string]bool{}
	for i := range c.m.Cases {
		if r := &c.m.Cases[i]; r.Status == Pass && strings.HasPrefix(r.ID, "csr/f32/") {
			passed[Class(r.ID)] = true
		}
	}
	for _, class := range []string{SameSign, MixedSign, NonFinite, Subnormal, General, Reproducible} {
		if !passed[class] {
			c.found.wrong("no case of class %s of csr/f32 passed, which every device must run", class)
		}
	}
}

// likes names the cases that run with the same variants. Those of kind most run with fewer (see eligibility.variants).
func (t *test) likes() string {
	return fmt.Sprintf("%s/%v/%v/%d/%v/%v", t.target.name(), t.prec, t.c, t.p, t.kind == most, t.doubles())
}

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
	a := &answer{input: p.digest(), exact: p.want != nil, outputs: map[dtype.Type][]string{}, bits: p.bits,
		lossless: p.lossless}
	for _, c := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		a.outputs[c] = p.expect(c)
	}
	v.answers[t.recipe] = a
	return a
}
