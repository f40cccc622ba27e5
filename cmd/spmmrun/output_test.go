// Files that appear whole or not at all.

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func put(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// Until it is complete a file has no name where the system has files without, so that a killed process leaves none;
// else one that end removes.
func TestOutputUnfinished(t *testing.T) {
	dir := t.TempDir()
	temp := new(temporaries)
	o, err := newOutput(filepath.Join(dir, "C.npy"), temp, false)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := unnamed(dir); err == nil {
		f.Close()
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	temp.end()
	if err := o.write(put("too late")); err == nil {
		t.Error("written after the end")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	o, err = newOutput(filepath.Join(dir, "D.npy"), new(temporaries), false)
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := o.write(func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "D.npy")); err == nil {
		t.Error("half a file has appeared")
	}
}
