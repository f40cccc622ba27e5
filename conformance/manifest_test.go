// Manifests: the checked-in ones hold, and false ones are found out.

package conformance

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/spec"
)

// anyMachine names the manifests that conformance/manifests/make makes on any machine.
var anyMachine = []string{"cpu", "vulkan-softvk-matrices", "vulkan-softvk-plain", "webgpu-softvk-matrices",
	"webgpu-chromium-swiftshader"}

// complete is set before a release: then manifests of GPUs must have all cases and variants, too.
var complete = flag.Bool("complete", false, "manifests of GPUs must have all cases and variants")

// TestManifests: every manifest that is checked in records no failure, its digests of exact cases equal the CPU's, and
// all agree. Those that any machine can make have all cases and variants. Together they are small.
func TestManifests(t *testing.T) {
	const folder, mostBytes = "manifests", 4 << 20
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("manifests are a module of their own, which is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var v Verifier
	var files []string
	var mans []*Manifest
	size := 0
	for _, e := range entries {
		f := e.Name()
		if !strings.Contains(f, ".json") {
			continue
		}
		if !strings.HasSuffix(f, ".json.gz") {
			t.Errorf("%s is not compressed: gzip -9 does it", f)
		}
		text, err := os.ReadFile(filepath.Join(folder, f))
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
		m, err := Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		files, mans = append(files, f), append(mans, m)
		found := v.Verify(m)
		wrong := found.Findings()
		if !*complete && !slices.Contains(anyMachine, strings.TrimSuffix(f, ".json.gz")) {
			wrong = found.Wrong
			t.Logf("%s: %d cases and variants were added since", f, len(found.Missing))
		}
		for i, w := range wrong {
			if i == 3 {
				t.Errorf("%s: and %d more; after a change of kernels, formats or problems make it anew: "+
					"conformance/manifests/make, or on its GPU make manifests", f, len(wrong)-i)
				break
			}
			t.Errorf("%s: %s", f, w)
		}
		if found.Right == 0 || m.Filter != "" || m.Bare {
			t.Errorf("%s: %d exact cases, filter %q, bare %v", f, found.Right, m.Filter, m.Bare)
		}
		if strings.HasSuffix(m.Commit, "+dirty") || len(m.Commit) != 40 {
			t.Errorf("%s: commit %q", f, m.Commit)
		}
		t.Logf("%s: %v: %d exact outputs are right, modules that have changed since: %v", f, m.Device, found.Right, found.Stale)
	}
	if size > mostBytes {
		t.Errorf("the manifests have %d bytes, want at most %d", size, mostBytes)
	}
	for _, d := range Compare(mans...) {
		t.Error(d)
	}
	// Those that any machine can make are there. All share cases of T1 and of T3, which Compare has found to agree.
	for _, name := range anyMachine {
		if !slices.Contains(files, name+".json.gz") {
			t.Errorf("%s.json.gz is not there: conformance/manifests/make makes it", name)
		}
	}
	for i := range mans {
		for j := range i {
			if n := shared(mans[i], mans[j]); n[MixedSign] < 100 || n[Reproducible] < 100 {
				t.Errorf("%v and %v share %v cases", mans[i].Device, mans[j].Device, n)
			}
		}
	}
}

func findings(v Verification) []string { return v.Findings() }

// shared counts the cases, by class, that two manifests have the same outputs of.
func shared(a, b *Manifest) map[string]int {
	n := map[string]int{}
	for _, x := range Agreements(a, b) {
		if _, same := x.Same(0, 1); same {
			n[Class(x.ID)]++
		}
	}
	return n
}

// TestVariantsComplete: a case that ran with one variant of those that its like ran with is found.
func TestVariantsComplete(t *testing.T) {
	m := small(t)
	for _, r := range m.Cases {
		if r.Status == Pass && strings.HasPrefix(r.ID, "cvse/v8/f16/") && !strings.Contains(r.ID, "/c:") {
			r.Variant = "second"
			m.Cases = append(m.Cases, r)
		}
	}
	count(m)
	var v Verifier
	if found := v.Verify(seal(t, m)); len(found.Findings()) > 0 {
		t.Fatalf("wrong: %q", found.Findings())
	}
	m.Cases = m.Cases[:len(m.Cases)-1]
	count(m)
	if found := v.Verify(seal(t, m)); len(found.Wrong) > 0 || len(found.Missing) != 1 ||
		!strings.Contains(found.Missing[0], "with second is missing") {
		t.Errorf("wrong: %q, missing: %q", found.Wrong, found.Missing)
	}
}

// small runs a few cases on the CPU.
func small(t *testing.T) *Manifest {
	t.Helper()
	d, err := backend.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := d.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Open(t.Context(), infos[0])
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m, err := Run(t.Context(), dev, Options{Filter: regexp.MustCompile(`^cvse/(v8/(f16|tf32)/.*/m(67k129n7|40k60n20|61k300n19)/|f16/T3/m67k129n33.*/p(23|auto))`)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// seal seals a manifest anew.
func seal(t *testing.T, m *Manifest) *Manifest {
	t.Helper()
	sum, err := m.seal()
	if err != nil {
		t.Fatal(err)
	}
	m.Seal = sum
	return m
}

// count makes a manifest's summary that of its cases.
func count(m *Manifest) {
	m.Summary = map[Status]int{}
	for _, r := range m.Cases {
		m.Summary[r.Status]++
	}
}

// TestRoundTrip: what is written is read back, and what is no manifest is refused.
func TestRoundTrip(t *testing.T) {
	m := small(t)
	var plain, packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(m.Encode(&plain), m.Encode(z), z.Close()); err != nil {
		t.Fatal(err)
	}
	cut := bytes.NewReader(packed.Bytes()[:packed.Len()-1])
	for _, text := range []io.Reader{&plain, &packed} {
		got, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Error(d)
		}
	}
	if _, err := Decode(cut); err == nil {
		t.Error("a compressed manifest without its end is read")
	}
	for _, text := range []string{"", "{}", `{"schema":1,"more":2}`, `{"schema":1}`, `{"schema":2}`, `{"schema":99}`,
		"\x1f\x8b"} {
		if _, err := Decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken for a manifest", text)
		}
	}
}

// TestStale: a module with another digest than this build's is named.
func TestStale(t *testing.T) {
	m := &Manifest{Modules: []Module{{Name: "csr/webgpu_f32", SHA256: "00"}, {Name: "csr/cpu_f32"},
		{Name: "other/x", SHA256: "00"}}}
	if got := new(Verifier).Verify(m).Stale; len(got) != 1 || got[0] != "csr/webgpu_f32" {
		t.Errorf("stale: %q", got)
	}
}

// tampering changes a manifest, and is found.
type tampering struct {
	name   string
	change func(m *Manifest)
	wrong  string // "": nothing is
}

// found tells whether the reported problem is the real one.
func (c tampering) found(found []string) bool {
	if c.wrong == "" {
		return len(found) == 0
	}
	return slices.ContainsFunc(found, func(w string) bool { return strings.Contains(w, c.wrong) })
}

// TestVerify: a manifest that was tampered with is found out.
func TestVerify(t *testing.T) {
	find := func(m *Manifest, class string) *Result {
		for i := range m.Cases {
			if m.Cases[i].Status == Pass && Class(m.Cases[i].ID) == class {
				return &m.Cases[i]
			}
		}
		t.Fatalf("no case of class %s passed", class)
		return nil
	}
	drop := func(m *Manifest, id, variant string) {
		m.Cases = slices.DeleteFunc(m.Cases, func(r Result) bool {
			out := r.ID == id && r.Variant == variant
			if out {
				m.Summary[r.Status]--
			}
			return out
		})
	}
	refuse := func(r *Result) {
		r.Status, r.Output, r.Error, r.Ratio, r.P, r.Lossless = Unsupported, "", "no kernel", nil, 0, false
	}
	unsupported := func(m *Manifest) *Result {
		return &m.Cases[slices.IndexFunc(m.Cases, func(r Result) bool { return r.Status == Unsupported })]
	}
	other := strings.Repeat("0", digestDigits)
	var v Verifier
	for _, c := range []tampering{
		{"as it is", func(*Manifest) {}, ""},
		{"output", func(m *Manifest) { find(m, MixedSign).Output = other }, "output " + other},
		{"subnormal output", func(m *Manifest) { find(m, Subnormal).Output = other }, " or "},
		{"input", func(m *Manifest) { find(m, SameSign).Input = other }, "inputs"},
		{"input of T2", func(m *Manifest) { find(m, General).Input = other }, "inputs"},
		{"output of T3", func(m *Manifest) { find(m, Reproducible).Output = other }, "output " + other},
		{"precision of T3", func(m *Manifest) { find(m, Reproducible).P = 15 }, "p = 15"},
		{"lossless", func(m *Manifest) { r := find(m, Reproducible); r.Lossless = !r.Lossless }, "lossless"},
		{"flushed", func(m *Manifest) { find(m, Subnormal).Note = "x" }, "note"},
		{"ratio", func(m *Manifest) { *find(m, General).Ratio = 2 }, "ratio"},
		{"ratio removed", func(m *Manifest) { find(m, General).Ratio = nil }, "ratio"},
		{"seed", func(m *Manifest) { find(m, General).ID += "/seed2" }, "inputs"},
		{"failed", func(m *Manifest) { r := find(m, General); r.Status = Fail; r.Error = "x" }, "failed"},
		{"unknown case", func(m *Manifest) { find(m, General).ID += "/x" }, "no such case"},
		{"another suite", func(m *Manifest) { m.Suite = "99" }, `suite "99" is not this version's`},
		{"removed", func(m *Manifest) { r := *find(m, Reproducible); drop(m, r.ID, r.Variant) }, "/T3/m67k129n33/eighth/spans/pauto/host is missing"},
		{"removed, T1", func(m *Manifest) { r := *find(m, MixedSign); drop(m, r.ID, r.Variant) }, "is missing"},
		{"unsupported, now passed", func(m *Manifest) { unsupported(m).Status = Pass }, "pass, with output"},
		{"waived", func(m *Manifest) { r := find(m, MixedSign); r.Status = Waived; r.Error = "x" }, "no waiver"},
		{"passed, now unsupported", func(m *Manifest) { refuse(find(m, MixedSign)) }, "must run it"},
		{"passed, now unsupported without a variant", func(m *Manifest) { r := find(m, General); refuse(r); r.Variant = "" }, "must run it"},
		{"all passed, now unsupported", func(m *Manifest) {
			for i := range m.Cases {
				if r := &m.Cases[i]; r.Status == Pass {
					refuse(r)
				}
			}
		}, "no case passed"},
		{"reproducible mode, now unsupported", func(m *Manifest) { refuse(find(m, Reproducible)) }, "must run it"},
		{"capabilities of another backend", func(m *Manifest) { m.Caps.Code = "wgsl" }, "backend cpu does not run wgsl"},
		{"no shape", func(m *Manifest) { m.Caps.Matrix = []string{"8×8 f16"} }, "matrix shape"},
		{"all cases of a kind removed", func(m *Manifest) {
			m.Cases = slices.DeleteFunc(m.Cases, func(r Result) bool { return strings.HasPrefix(r.ID, "cvse/v8/f16") })
		}, "is missing"},
		{"a variant removed", func(m *Manifest) {
			m.Cases = slices.DeleteFunc(m.Cases, func(r Result) bool { return r.Variant == "cpu_v8_f16" })
			m.Variants = slices.DeleteFunc(m.Variants, func(x Variant) bool { return x.Name == "cvse/cpu_v8_f16" })
		}, "is missing"},
		{"twice", func(m *Manifest) { m.Cases = append(m.Cases, *find(m, General)) }, "twice"},
		{"variant without cases", func(m *Manifest) { m.Variants[0].Name = "cvse/x" }, "ran no case"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := small(t)
			c.change(m)
			if sealed := len(findings(v.Verify(m))) == 0; sealed != (c.name == "as it is") {
				t.Errorf("with the old seal nothing wrong is found: %v", sealed)
			}
			count(m)
			if found := findings(v.Verify(seal(t, m))); !c.found(found) {
				t.Errorf("wrong: %q", found)
			}
		})
	}
	a, b := small(t), small(t)
	if d := Compare(a, b); len(d) > 0 {
		t.Errorf("two runs differ: %q", d)
	}
	find(b, MixedSign).Output = other
	if d := Compare(a, b); len(d) != 1 || !strings.Contains(d[0], find(a, MixedSign).ID) {
		t.Errorf("found %q", d)
	}
}

// TestTamperedText: of a manifest's file no byte that says anything can change unnoticed.
func TestTamperedText(t *testing.T) {
	var b bytes.Buffer
	if err := small(t).Encode(&b); err != nil {
		t.Fatal(err)
	}
	text := b.Bytes()
	var v Verifier
	check := func(text []byte) bool {
		m, err := Decode(bytes.NewReader(text))
		return err == nil && len(findings(v.Verify(m))) == 0
	}
	if !check(text) {
		t.Fatal("the manifest as it is is refused")
	}
	same := func(x, y []byte) bool {
		a, errA := Decode(bytes.NewReader(x))
		b, errB := Decode(bytes.NewReader(y))
		return errA == nil && errB == nil && cmp.Equal(a, b)
	}
	tried := 0
	for i := 0; i < len(text); i += 19 { // a prime: all parts of lines
		if !strings.ContainsRune("0123456789abcdef", rune(text[i])) {
			continue
		}
		changed := bytes.Clone(text)
		changed[i] ^= 1
		tried++
		if check(changed) && !same(changed, text) { // the last digit of a number may say nothing
			t.Errorf("byte %d changed: %s", i, changed[max(0, i-40):min(len(text), i+40)])
		}
	}
	if tried < 100 {
		t.Errorf("only %d bytes tried", tried)
	}
}

// endless is a file that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// TestMostBytes: of what does not end no more is read than a manifest may have, nor is more unpacked.
func TestMostBytes(t *testing.T) {
	const want = "more than 33554432 bytes"
	var e endless
	if _, err := Decode(&e); err == nil || !strings.Contains(err.Error(), want) || e.read > MostBytes+1 {
		t.Errorf("%v, after %d bytes", err, e.read)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, &e, 2*MostBytes); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	size := bomb.Len()
	if _, err := Decode(&bomb); err == nil || !strings.Contains(err.Error(), want) || bomb.Len() < size/4 {
		t.Errorf("%v, with %d of %d packed bytes left", err, bomb.Len(), size)
	}
}

// TestSchema: what is not of the schema's form is refused, in words that say where.
func TestSchema(t *testing.T) {
	var b bytes.Buffer
	if err := small(t).Encode(&b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ before, after, want string }{
		{`"tier": "quick"`, `"tier": "slow"`, "tier: want one of"},
		{`"index": 0`, `"index": -1`, "device.index: -1 is below 0"},
		{`"index": 0`, `"index": 0.5`, "device.index: want integer"},
		{`"index": 0,`, ``, `device: "index" is missing`},
		{`"index": 0,`, `"index": 0, "colour": 1,`, `device: unknown "colour"`},
		{`"status":"pass"`, `"status":"good"`, "].status: want one of"},
		{`"input":"`, `"input":"g`, "].input: "},
		{`"probes": null`, `"probes": 7`, "probes: want"},
		{`"schema": 1`, `"schema": 2`, "schema 2"},
		{`"schema": 1,`, ``, "names no schema"},
		{`"limits": `, `"limit": `, `caps: "limits" is missing`},
		{`"shared": `, `"shred": `, `caps.limits: `},
		{`"suite"`, `suite`, "invalid character"},
		{`"cases": [`, `"probe_errors": [` + strings.Repeat(`"",`, 1e5) + `""], "cases": [`, "probe_errors: a list of 1001"},
		{`"cases": [`, `"cases": 3, "cases": [`, "cases: want array, not 3"},
		{`"cases": [`, `"cases": [` + strings.Repeat("{},", 1e5), `cases[0]: "`},
		{`"tier": "quick"`, `"tier": "quick", "colour": [` + strings.Repeat("[],", 1e5) + `0]`,
			`the manifest: unknown "colour"`},
		{`"tier": "quick"`, `"tier": "quick", "filter": "` + strings.Repeat("a", mostOfValue) + `"`, "filter: 1048578 bytes"},
	} {
		text := b.String()
		if !strings.Contains(text, c.before) {
			t.Errorf("the manifest has no %s", c.before)
			continue
		}
		if _, err := Decode(strings.NewReader(strings.Replace(text, c.before, c.after, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.after, c.before, err, c.want)
		}
	}
}

// TestUnsupportedIsNotPass: cases without a kernel on the device are recorded as such.
func TestUnsupportedIsNotPass(t *testing.T) {
	m := small(t)
	if m.Summary[Unsupported] == 0 || m.Summary[Pass] == 0 || m.Summary[Fail] > 0 {
		t.Errorf("summary %v", m.Summary)
	}
	front := regexp.MustCompile("/(host|tensor|sequence)") // these compute tf32 in f32 where there are no units for it
	for _, c := range m.Cases {
		if (strings.Contains(c.ID, "/tf32/") && !front.MatchString(c.ID)) != (c.Status == Unsupported) {
			t.Errorf("%s: %s", c.ID, c.Status)
		}
	}
}

// TestWaiver: only failures of T1± on matrix units of the devices named are excused.
func TestWaiver(t *testing.T) {
	matrix, scalar := *variant(t, "vulkan_v16_16x16x16_sub32"), *variant(t, "vulkan_v16_f16")
	rdna3 := backend.Info{Name: "AMD Radeon RX 7900 XTX (RADV NAVI31)"}
	if waiverFor(rdna3, &matrix, MixedSign) == nil {
		t.Error("no waiver for RDNA3")
	}
	if waiverFor(rdna3, &matrix, SameSign) != nil || waiverFor(rdna3, &scalar, MixedSign) != nil ||
		waiverFor(backend.Info{Name: "NVIDIA H200"}, &matrix, MixedSign) != nil {
		t.Error("a waiver for what needs none")
	}
}

// variant finds one of package cvse.
func variant(t *testing.T, name string) *spec.Variant {
	for _, v := range cvse.Format.Variants {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no variant %s", name)
	return nil
}
