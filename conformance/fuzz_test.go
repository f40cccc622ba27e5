// Manifests that anybody may have written.

package conformance

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/spmmrun/spmm/backend"
)

// What is read as a manifest is written and read back as the same, and can be verified, compared and looked at,
// whatever it says. The seal is made right, so that what it says is looked at.
func FuzzManifest(f *testing.F) {
	d, err := backend.Find("cpu")
	if err != nil {
		f.Fatal(err)
	}
	dev, err := d.Open(f.Context(), backend.Info{Backend: "cpu"})
	if err != nil {
		f.Fatal(err)
	}
	defer dev.Close()
	filter := regexp.MustCompile(`^(nm/v8/f16/(T1±/m67|T2/m61)|cvse/f16/T3/m67k129n33.*/p23)`)
	run, err := Run(f.Context(), dev, Options{Filter: filter})
	if err != nil || run.Summary[Pass] < 2 {
		f.Fatal(run.Summary, err)
	}
	var text bytes.Buffer
	if err := run.Encode(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(run.Encode(z), z.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes())
	var v Verifier
	v.Verify(run)
	for id := range v.tests {
		if !filter.MatchString(id) {
			delete(v.tests, id) // what may be missing is as many cases as there are
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Decode(bytes.NewReader(text))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of several lines: %q", err)
			}
			return
		}
		var out bytes.Buffer
		if err := m.Encode(&out); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(&out)
		if err != nil {
			t.Fatalf("%v, of what was written for\n%s", err, text)
		}
		if found := v.Verify(again); len(found.Findings()) == 0 && len(m.Cases) < len(run.Cases) && m.Filter == run.Filter {
			t.Fatalf("%d cases of %d, and nothing is wrong:\n%s", len(m.Cases), len(run.Cases), text)
		}
		if wrong := Compare(again, run); len(wrong) > len(m.Cases) {
			t.Fatalf("%d cases, %d differ", len(m.Cases), len(wrong))
		}
	})
}
