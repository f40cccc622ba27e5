//go:build unix

// The permissions of files that are written.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOutputModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	path := filepath.Join(dir, "C.npy")
	write := func(text string) {
		t.Helper()
		o, err := newOutput(path, new(temporaries), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.write(put(text)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, text string, mode os.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		info, err2 := os.Lstat(path)
		if err != nil || err2 != nil || string(got) != text || info.Mode() != mode {
			t.Errorf("%s: %q, %v, want %q, %v (%v, %v)", what, got, info.Mode(), text, mode, err, err2)
		}
	}
	write("new")
	check("a new file", "new", 0o640)
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	write("newer")
	check("an old file", "newer", 0o604)

	target := filepath.Join(dir, "target")
	if err := errors.Join(os.Rename(path, target), os.Symlink("target", path)); err != nil {
		t.Fatal(err)
	}
	write("newest")
	path = target
	check("behind a link", "newest", 0o604)
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}
