// Checkpoints that are there, that are not what was written, and that cannot be written.

package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/npy"
)

func folder(dir string) *Folder {
	return &Folder{Dir: dir, Job: Job{"graph": "1", "x0": "2", "cols": "2"}, Rows: 3, Cols: 2}
}

// rowsOf gives rows one by one.
func rowsOf(x *formats.Dense[float32]) func(func(*formats.Dense[float32]) error) error {
	return func(give func(*formats.Dense[float32]) error) error {
		for i := range x.Rows {
			if err := give(&formats.Dense[float32]{Rows: 1, Cols: x.Cols, LD: x.Cols, Data: x.Line(i)}); err != nil {
				return err
			}
		}
		return nil
	}
}

// What was saved last is found, by the same job; others get an error that says what to do.
func TestSave(t *testing.T) {
	f := folder(filepath.Join(t.TempDir(), "[a]"))
	if x, step, err := f.Open(9); x != nil || step != 0 || err != nil {
		t.Fatalf("an empty folder: %v, step %d, %v", x, step, err)
	}
	want := gen.Dense(3, 2, 1, gen.Values{})
	for step := 1; step < 4; step++ {
		want.Set(0, 0, float32(step))
		if err := f.Save(step, rowsOf(want)); err != nil {
			t.Fatal(err)
		}
	}
	if x, step, err := f.Open(3); err != nil || step != 3 || !x.Equal(want) {
		t.Errorf("step %d, %v, %v", step, x, err)
	}
	if names, _ := os.ReadDir(f.Dir); len(names) != 2 {
		t.Errorf("%v: want the state and the description", names)
	}
	other := folder(f.Dir)
	other.Job["cols"] = "4\n"
	if _, _, err := other.Open(9); err == nil || !strings.Contains(err.Error(), "another job (cols: 2 there, 4") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("another job: %v", err)
	}
	if _, _, err := f.Open(2); err == nil || !strings.Contains(err.Error(), "step 3, beyond --steps 2") {
		t.Errorf("a job of two steps: %v", err)
	}
}

// A failure leaves the state before, and rows is called whatever fails.
func TestSaveFails(t *testing.T) {
	f := folder(t.TempDir())
	want := gen.Dense(3, 2, 1, gen.Values{})
	if err := f.Save(1, rowsOf(want)); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("a rank was lost")
	if err := f.Save(2, func(func(*formats.Dense[float32]) error) error { return lost }); !errors.Is(err, lost) {
		t.Errorf("rows that fail: %v", err)
	}
	if err := f.Save(2, func(func(*formats.Dense[float32]) error) error { return nil }); err == nil {
		t.Error("rows are missing, and no error")
	}
	if x, step, err := f.Open(9); err != nil || step != 1 || !x.Equal(want) {
		t.Errorf("step %d, %v, %v", step, x, err)
	}
	if names, _ := os.ReadDir(f.Dir); len(names) != 2 {
		t.Errorf("%v: want the state and the description", names)
	}
	calls := 0
	f.Dir = filepath.Join(f.Dir, "missing")
	err := f.Save(3, func(give func(*formats.Dense[float32]) error) error { calls++; return give(want) })
	if err == nil || calls != 1 {
		t.Errorf("a folder that is missing: %v, and rows is called %d times", err, calls)
	}
}

// The sums of shares add up to the whole's, and an element that changes its value or its place changes them.
func TestDigests(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=20,cols=9,density=0.3")
	if err != nil {
		t.Fatal(err)
	}
	if SumOfEntries(0, a) != SumOfEntries(0, a.Range(0, 7))+SumOfEntries(7, a.Range(7, 20)) {
		t.Error("entries: shares add up to another sum than the whole")
	}
	x := gen.Dense(20, 3, 1, gen.Values{})
	if SumOfElements(0, x) != SumOfElements(0, gen.DenseRows(0, 7, 3, 1, gen.Values{}))+SumOfElements(7,
		gen.DenseRows(7, 20, 3, 1, gen.Values{})) {
		t.Error("elements: shares add up to another sum than the whole")
	}
	entries, elements := SumOfEntries(0, a), SumOfElements(0, x)
	if SumOfEntries(1, a) == entries || SumOfElements(1, x) == elements {
		t.Error("other rows have the same sum")
	}
	a.Val[3]++
	x.Set(2, 1, x.At(2, 1)+1)
	if SumOfEntries(0, a) == entries || SumOfElements(0, x) == elements {
		t.Error("another value has the same sum")
	}
}

// Whatever is in the folder: the state of a step of this job, or an error of one line. With sealed the description has
// the digest of the state, so that the state is looked at.
func FuzzCheckpoint(f *testing.F) {
	k := &Folder{Rows: 3, Cols: 2, Job: Job{"graph": "1", "x0": "2", "vertices": "3", "cols": "2", "restart": "0",
		"mode": "fast", "format": "auto", "normalise": "row"}}
	c := description{Job: k.Job, Step: 2, File: "step-2.npy", SHA256: strings.Repeat("0", 64)}
	text, err := json.Marshal(c)
	if err != nil {
		f.Fatal(err)
	}
	var state bytes.Buffer
	if err := npy.Write(&state, formats.NewDense[float32](3, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(text, state.Bytes(), false)
	f.Add(text, state.Bytes(), true)
	f.Fuzz(func(t *testing.T, text, state []byte, sealed bool) {
		if sealed {
			sum := sha256.Sum256(state)
			text = bytes.ReplaceAll(text, []byte(c.SHA256), []byte(hex.EncodeToString(sum[:])))
		}
		d, err := k.parse(bytes.NewReader(text), 5)
		var x *formats.Dense[float32]
		if err == nil {
			x, err = k.read(d, bytes.NewReader(state))
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("an error of several lines: %q", err)
		case err == nil && (d.Step < 1 || d.Step > 5 || x.Rows != 3 || x.Cols != 2 || x.Validate() != nil):
			t.Fatalf("step %d of %+v", d.Step, x)
		}
	})
}
