//go:build linux

// Files that cannot be written to the end, because the system lets no file grow beyond a size (RLIMIT_FSIZE), as a disk
// that is full: the error names the file, no part of a file is left, and what was there before stays.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// sizeLimit is in the environment of a child that must not write larger files.
const sizeLimit = "SPMM_TEST_FILE_SIZE"

func init() { programs["limited"] = limited }

// limited is spmmrun in such a child.
func limited() {
	n, err := strconv.ParseUint(os.Getenv(sizeLimit), 10, 64)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	main()
}

func TestWriteFaults(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	saved, err := filepath.Abs("../../bench/results/h200-peers.json")
	if err != nil {
		t.Fatal(err)
	}
	const a = "gen:uniform,rows=60,cols=50,density=0.3,seed=3"
	for _, c := range []struct {
		name string // of what is written in the current folder
		args []string
	}{
		{"a.mtx", []string{"convert", a, "a.mtx"}},
		{"a.mtx.gz", []string{"convert", a, "a.mtx.gz"}},
		{"a.smtx", []string{"convert", a, "a.smtx"}},
		{"a.npz", []string{"convert", a, "a.npz"}},
		{"a.safetensors", []string{"convert", "--to", "cvse", a, "a.safetensors"}},
		{"q.safetensors", []string{"convert", "--quantise", "int8", a, "q.safetensors"}},
		{"c.npy", []string{"--backend", "cpu", "-n", "9", "-o", "c.npy", a}},
		{"m.json", []string{"conform", "--backend", "cpu", "--filter", "^csr/f16/T1±/m67", "-o", "m.json"}},
		{"s.png", []string{"inspect", "--backend", "cpu", "--spy", "s.png", a}},
		{"b.json", []string{"bench", "--load", saved, "--save", "b.json"}},
		{"b.svg", []string{"bench", "--load", saved, "--plot", "b.svg"}},
		{"state", []string{"propagate", "--backend", "cpu", "--steps", "2", "--cols", "3", "--checkpoint", "state",
			"gen:rmat,scale=5"}},
		{"x.npy", []string{"propagate", "--backend", "cpu", "--steps", "2", "--cols", "3", "-o", "x.npy",
			"gen:rmat,scale=5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(limit int64) (string, error) {
				cmd := &exec.Cmd{Path: program, Args: append([]string{"limited"}, c.args...), Dir: dir}
				cmd.Env = append(os.Environ(), fmt.Sprint(sizeLimit, "=", limit), "SPMM_CACHE="+cache)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				err := cmd.Run()
				return stderr.String(), err
			}
			// contents are those of all files, by their names.
			contents := func() map[string]string {
				all := map[string]string{}
				if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						var b []byte
						b, err = os.ReadFile(path)
						all[path] = string(b)
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
				return all
			}
			if text, err := run(1 << 30); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			whole, size := contents(), int64(0)
			for _, s := range whole {
				size = max(size, int64(len(s)))
			}
			if err := os.RemoveAll(filepath.Join(dir, c.name)); err != nil || size == 0 {
				t.Fatal(size, err)
			}
			steps := int64(4)
			if os.Getenv("SPMM_ALL_FAULTS") != "" {
				steps = 40
			}
			old := map[string]string{}
			if c.name != "state" { // a folder; each file in it is new
				path := filepath.Join(dir, c.name)
				old[path] = "what was there before"
			}
			for i := range steps {
				for path, s := range old {
					if err := os.WriteFile(path, []byte(s), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				limit := i * (size - 1) / max(1, steps-1)
				text, err := run(limit)
				if err == nil || !strings.Contains(text, c.name) || !strings.Contains(text, "file too large") ||
					strings.Count(text, "\n") != 1 || strings.Count(text, "file too large") != 1 {
					t.Fatalf("%d of %d bytes fit: %v, %q", limit, size, err, text)
				}
				for path, s := range contents() {
					if s != old[path] && s != whole[path] {
						t.Fatalf("%d of %d bytes fit: %s has %d bytes", limit, size, path, len(s))
					}
				}
				if got := contents(); len(got) < len(old) {
					t.Fatalf("%d of %d bytes fit, and what was there before is gone", limit, size)
				}
			}
			if text, err := run(1 << 30); err != nil {
				t.Fatalf("after the failures: %v: %s", err, text)
			}
			for path, s := range contents() {
				if s != whole[path] && c.name != "m.json" { // which has times in it
					t.Errorf("after the failures %s is another file", path)
				}
			}
		})
	}
}
