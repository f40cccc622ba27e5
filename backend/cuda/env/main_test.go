// What the command prints, and the files that it leads to.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend/cuda/internal/toolkit"
)

// environment sets the variables as a user may have them; nothing comes from the user's own go env -w.
func environment(t *testing.T, folder, cflags, ldflags string) {
	t.Helper()
	t.Setenv("GOENV", "off")
	t.Setenv("SPMM_CACHE", folder)
	t.Setenv("CGO_CFLAGS", cflags)
	t.Setenv("CGO_LDFLAGS", ldflags)
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	var b bytes.Buffer
	if err := run(args, &b); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// The flags of the user's stay, and a second time adds nothing: other flags would build everything anew.
func TestFlags(t *testing.T) {
	for _, c := range []struct{ name, set, rest string }{
		{"nothing set", "", " -O2 -g"},
		{"own flags", "-O3 '-Dx= y'", " -O3 '-Dx= y'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			environment(t, folder, c.set, c.set)
			for which, flag := range map[string]string{"cflags": "-I", "ldflags": "-L"} {
				value := output(t, which)
				dir, ok := strings.CutSuffix(strings.TrimPrefix(value, flag), c.rest)
				if !strings.HasPrefix(value, flag+folder) || !ok {
					t.Fatalf("%s: %s", which, value)
				}
				for name, want := range map[string][]byte{"cuda.h": toolkit.Header, "libcuda.a": toolkit.Library} {
					if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) || len(got) == 0 {
						t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
					}
				}
				environment(t, folder, value, value)
				if again := output(t, which); again != value {
					t.Errorf("%s a second time: %s", which, again)
				}
				environment(t, folder, c.set, c.set)
			}
		})
	}
}

// A shell that evaluates the output gets the values, whatever the folder is called; and a file of other content is
// written anew.
func TestEval(t *testing.T) {
	for _, name := range []string{"plain", "with space", "it's", `"quoted"`, "$HOME `x`"} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), name)
			environment(t, folder, "-O1", "-O1")
			text := output(t)
			files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("wrote %q, %v", files, err)
			}
			if err := os.WriteFile(files[0], []byte("#error"), 0o666); err != nil {
				t.Fatal(err)
			}
			if output(t) != text {
				t.Error("says another thing now")
			}
			for which, variable := range map[string]string{"cflags": "CGO_CFLAGS", "ldflags": "CGO_LDFLAGS"} {
				got, err := exec.Command("sh", "-c", text+"\n"+`printf %s "$`+variable+`"`).Output()
				if want := output(t, which); err != nil || string(got) != want {
					t.Errorf("%s: a shell has %q, want %q: %v", variable, got, want, err)
				}
			}
			if b, err := os.ReadFile(files[0]); err != nil || bytes.Equal(b, []byte("#error")) {
				t.Errorf("%s was left as it was: %v", files[0], err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, folder, says string
		args               []string
	}{
		{"arguments", t.TempDir(), "usage: env", []string{"cflags", "ldflags"}},
		{"no folder", file, "not a directory", nil},
		{"both quotes", filepath.Join(t.TempDir(), `it's "it"`), "SPMM_CACHE names another", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.folder, "", "")
			var b bytes.Buffer
			if err := run(c.args, &b); err == nil || !strings.Contains(err.Error(), c.says) || b.Len() != 0 {
				t.Errorf("%v, printed %q", err, &b)
			}
		})
	}
}
