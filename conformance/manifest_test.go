// Manifests: the checked-in ones hold, and false ones are found out.

package conformance

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/spec"
)

// checkedIn is embedded so that a compiled test needs no files.
//
//go:embed manifests/*.json
var checkedIn embed.FS

// TestManifests: every manifest that is checked in records no failure, its digests of exact cases are
// what the CPU computes, and all agree.
func TestManifests(t *testing.T) {
	files, err := checkedIn.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	var v Verifier
	var mans []*Manifest
	for _, f := range files {
		text, err := checkedIn.ReadFile("manifests/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		mans = append(mans, m)
		found := v.Verify(m)
		for _, w := range found.Wrong {
			t.Errorf("%s: %s", f.Name(), w)
		}
		if found.Right == 0 || m.Filter != "" || m.Bare {
			t.Errorf("%s: %d exact cases, filter %q, bare %v", f.Name(), found.Right, m.Filter, m.Bare)
		}
		t.Logf("%s: %v: %d exact outputs are right, %d cases are of another version, modules that have changed since: %v", f.Name(), m.Device, found.Right, found.Unknown, found.Stale)
	}
	for _, d := range Compare(mans...) {
		t.Error(d)
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
	m, err := Run(t.Context(), dev, Options{Filter: regexp.MustCompile(`^cvse/v8/(f16|tf32)/.*/m(67k129n7|40k60n20|61k300n19)/`)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManifestFile: what is written is read back, and the file is whole or not there.
func TestManifestFile(t *testing.T) {
	m := small(t)
	path := filepath.Join(t.TempDir(), "a.json")
	if err := m.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, got); d != "" {
		t.Error(d)
	}
	if err := m.WriteFile(filepath.Join(t.TempDir(), "none", "a.json")); err == nil {
		t.Error("no error where there is no folder")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files were left", len(left))
	}
	for _, text := range []string{"", "{}", `{"schema":1,"more":2}`, `{"schema":99}`} {
		if _, err := Decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q is taken for a manifest", text)
		}
	}
}

// TestStale: a module with another digest than this build's is named.
func TestStale(t *testing.T) {
	m := &Manifest{Modules: []Module{{Name: "csr/webgpu_f32", SHA256: "00"}, {Name: "csr/cpu_f32", Version: Suite}, {Name: "other/x", SHA256: "00"}}}
	if got := new(Verifier).Verify(m).Stale; len(got) != 1 || got[0] != "csr/webgpu_f32" {
		t.Errorf("stale: %q", got)
	}
}

// TestVerify: a manifest that was tampered with is found out.
func TestVerify(t *testing.T) {
	find := func(m *Manifest, class string) *Result {
		for i := range m.Cases {
			if m.Cases[i].Status == Pass && strings.Contains(m.Cases[i].ID, class) {
				return &m.Cases[i]
			}
		}
		t.Fatalf("no case of class %s passed", class)
		return nil
	}
	other := strings.Repeat("0", 64)
	var v Verifier
	for _, c := range []struct {
		name   string
		change func(m *Manifest)
		wrong  string // "": nothing is
	}{
		{"as it is", func(*Manifest) {}, ""},
		{"output", func(m *Manifest) { find(m, MixedSign).Output = other }, "output " + other},
		{"subnormal output", func(m *Manifest) { find(m, Subnormal).Output = other }, " or "},
		{"input", func(m *Manifest) { find(m, SameSign).Input = other }, "inputs"},
		{"input of T2", func(m *Manifest) { find(m, General).Input = other }, "inputs"},
		{"failed", func(m *Manifest) { find(m, General).Status = Fail }, "failed"},
		{"unknown case", func(m *Manifest) { find(m, General).ID += "/x" }, "no such case"},
		{"unknown case of another suite", func(m *Manifest) { find(m, General).ID += "/x"; m.Suite = "0" }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := small(t)
			c.change(m)
			found := v.Verify(m)
			if found.Right == 0 {
				t.Error("nothing is right")
			}
			if c.wrong == "" && len(found.Wrong) > 0 || c.wrong != "" && (len(found.Wrong) != 1 || !strings.Contains(found.Wrong[0], c.wrong)) {
				t.Errorf("wrong: %q", found.Wrong)
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

// TestUnsupportedIsNotPass: cases without a kernel on the device are recorded as such.
func TestUnsupportedIsNotPass(t *testing.T) {
	m := small(t)
	if m.Summary[Unsupported] == 0 || m.Summary[Pass] == 0 || m.Summary[Fail] > 0 {
		t.Errorf("summary %v", m.Summary)
	}
	for _, c := range m.Cases {
		if strings.Contains(c.ID, "/tf32/") != (c.Status == Unsupported) {
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
	for _, v := range cvse.Kernel.Variants {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no variant %s", name)
	return nil
}
