package digests

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/conformance"
)

// manifest makes one of a device that gave outputs for cases: ID, input and output.
func manifest(device string, cases ...[3]string) *conformance.Manifest {
	m := &conformance.Manifest{Device: backend.Info{Name: device, Backend: "b", Driver: "driver of " + device}}
	for _, c := range cases {
		m.Cases = append(m.Cases, conformance.Result{ID: c[0], Input: strings.Repeat(c[1], 64),
			Output: strings.Repeat(c[2], 64), Status: conformance.Pass})
	}
	return m
}

func TestCompare(t *testing.T) {
	const one, two, general = "csr/f32/T1±/one", "csr/f32/T3/two", "csr/f32/T2/three"
	table := &Table{}
	for _, m := range []*conformance.Manifest{
		manifest("x", [3]string{one, "1", "a"}, [3]string{two, "2", "b"}, [3]string{general, "3", "c"}),
		manifest("y", [3]string{one, "1", "a"}, [3]string{two, "2", "e"}),
		manifest("old", [3]string{one, "9", "f"}),
		manifest("empty"),
		manifest("x"),
	} {
		if err := table.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	if err := table.Write(&text); err != nil {
		t.Fatal(err)
	}
	table, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	failed := manifest("mine", [3]string{one, "1", "a"}, [3]string{one, "1", "a"}, [3]string{two, "2", "b"},
		[3]string{general, "3", "d"}, [3]string{"csr/f32/T1±/fails", "1", "a"})
	failed.Cases[4].Status = conformance.Fail
	want := []Agreement{{"x (b)", 2, 2, []string{}}, {"y (b)", 1, 2, []string{two}}, {"old (b)", 0, 0, []string{}},
		{"empty (b)", 0, 0, []string{}}, {"x (b, driver of x)", 0, 0, []string{}}}
	if d := cmp.Diff(want, table.Compare(failed)); d != "" {
		t.Error(d)
	}
	if _, err := Read(strings.NewReader("[")); err == nil {
		t.Error("a table is read that is none")
	}
}
