package capitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Valgrind sees the accesses of Go code too, which a sanitizer does not. It knows neither Go's stacks nor its heap, so
// most of what it reports is not wrong; but Go has no blocks of malloc's, and no access outside one is right.
func TestValgrind(t *testing.T) {
	dir := installed(t)
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed: no test looks for accesses outside the program's memory")
	}
	bin, lib := filepath.Join(t.TempDir(), "heap"), filepath.Join(dir, "lib")
	run(t, nil, "cc", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I", filepath.Join(dir, "include"), "-o", bin,
		"testdata/heap.c", "-L", lib, "-lspmm")
	for _, c := range []struct {
		name   string
		args   []string
		faults bool
	}{
		{name: "blocks"},
		{name: "a block that is too short", args: []string{"short"}, faults: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			args := append([]string{"--error-limit=no", "--log-file=" + log, bin}, c.args...)
			env := []string{"LD_LIBRARY_PATH=" + lib, "SPMM_CACHE=" + t.TempDir()}
			if out := run(t, env, "valgrind", args...); out != "all passed" {
				t.Fatal(out)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			found := outside(string(text))
			if c.faults != (len(found) > 0) {
				t.Errorf("%d accesses outside the program's memory:\n%s", len(found), strings.Join(found, "\n"))
			}
		})
	}
}

// outside returns the reports of accesses next to or in freed blocks of malloc's, and all whose code is not the
// library's.
func outside(log string) (found []string) {
	first := regexp.MustCompile(`(?m)^==\d+==    at .*$`)
	for _, report := range regexp.MustCompile(`(?m)^==\d+== ?\n`).Split(log, -1) {
		at := first.FindString(report)
		if strings.Contains(report, "a block of size") || at != "" && !strings.Contains(at, "libspmm.so") {
			found = append(found, report)
		}
	}
	return found
}
