// Adapted programs run, and files that are no programs are refused.

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sh is a small dynamically linked program that every machine has, and its loader.
func sh(t *testing.T) (file, loader string) {
	t.Helper()
	file, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return file, interpreter(t, f)
}

func interpreter(t *testing.T, f *elf.File) string {
	t.Helper()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
			return strings.TrimRight(string(b), "\x00")
		}
	}
	t.Fatal("no loader")
	return ""
}

// The copy runs, with the loader it was given, and searches the folder it was given first; adapting
// the copy again searches both folders.
func TestAdaptedProgramRuns(t *testing.T) {
	program, loader := sh(t)
	dir := t.TempDir()
	own := filepath.Join(dir, "a loader")
	if err := os.Symlink(loader, own); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if err := adaptFile(program, first, own, "/first/libs"); err != nil {
		t.Fatal(err)
	}
	if err := adaptFile(first, second, own, "/second/libs"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, search string }{
		{first, "/first/libs"}, {second, "/second/libs:/first/libs"},
	} {
		f, err := elf.Open(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := interpreter(t, f); got != own {
			t.Errorf("the loader is %s, want %s", got, own)
		}
		f.Close()
		cmd := exec.Command(c.file, "-c", "readlink /proc/$$/exe; exit 7")
		cmd.Env = append(os.Environ(), "LD_DEBUG=libs")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Fatalf("%s: %v\n%s", c.file, err, &stderr)
		}
		if got := strings.TrimSpace(string(out)); got != c.file {
			t.Errorf("the program finds itself as %s, want %s", got, c.file)
		}
		var found bool
		for line := range strings.Lines(stderr.String()) {
			_, path, _ := strings.Cut(line, "search path=")
			path, _, _ = strings.Cut(path, "\t")
			// The loader lists variants of each folder for newer processors; those aside.
			var dirs []string
			for d := range strings.SplitSeq(path, ":") {
				if strings.HasSuffix(d, "/libs") {
					dirs = append(dirs, d)
				}
			}
			found = found || strings.Join(dirs, ":") == c.search
		}
		if !found {
			t.Errorf("%s is not searched:\n%s", c.search, &stderr)
		}
	}
}

func TestNothingToAdapt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"script": "#!/bin/sh\n", "empty": "", "other machine": "\x7fELF\x01\x01" +
		strings.Repeat("\x00", 80)} {
		if _, err := adapt([]byte(text), "/loader", "/libs"); !errors.Is(err, errStatic) {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := adaptFile(filepath.Join(dir, "absent"), filepath.Join(dir, "copy"), "/loader", "/libs")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
}

// A damaged program is an error or a copy of some kind, never a panic.
func TestDamaged(t *testing.T) {
	program, _ := sh(t)
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adapt(whole[:len(whole)/2], "/loader", "/libs"); err == nil {
		t.Error("half a program is adapted")
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(whole[:rapid.SampledFrom([]int{63, 64, 200, 4096, len(whole)}).Draw(t, "size")])
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			within := rapid.SampledFrom([]int{min(len(b), 1024), len(b)}).Draw(t, "within") // headers, or all
			b[rapid.IntRange(0, within-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		_, _ = adapt(b, "/loader", "/libs")
	})
}

// A position independent program of Go alone has a loader and needs no library.
func TestAdaptNeedsLibraries(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-buildvcs=false", "-buildmode=pie", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := adapt(text, "/loader", "/libs"); !errors.Is(err, errStatic) {
		t.Errorf("%v, want %v", err, errStatic)
	}
}
