//go:build linux

// Tests of the script run, in a browser. SPMM_REQUIRE_BROWSER: it must be there.

package browser_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	wasm := filepath.Join(t.TempDir(), "hello.wasm")
	// The flags are those of the page and of the browser's other tests (tools/tests): packages are compiled once.
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-l -dwarf=false", "-o", wasm, "./testdata/hello")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		stdout string
		stderr string // a part of it
	}{
		{"a program", []string{wasm}, 0, "[] from outside\n", "höhe"},
		{"arguments and status", []string{wasm, "a b", ""}, 3, "[\"a b\" \"\"] from outside\n", "höhe"},
		{"a panic", []string{wasm, "panic"}, 2, "[\"panic\"] from outside\n", "panic: as told"},
		{"no such program", []string{"no.wasm"}, 2, "", "no.wasm: no such file"},
		{"nothing", nil, 2, "", "usage: "},
		{"an unknown flag", []string{"--headful"}, 2, "", "usage: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if os.Getenv("SPMM_REQUIRE_BROWSER") == "" {
				args = append([]string{"--cached"}, args...)
			}
			cmd := exec.Command("./run", args...)
			cmd.Env = append(os.Environ(), "SPMM_HELLO=from outside", "TMPDIR="+t.TempDir())
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			got := cmd.ProcessState.ExitCode()
			if got == 3 && strings.Contains(stderr.String(), "no browser is set up") && len(args) > len(c.args) {
				t.Logf("not checked: %s", stderr.String())
				return
			}
			if got != c.status || stdout.String() != c.stdout || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("status %d, want %d; output %q, want %q; said %q", got, c.status, stdout.String(), c.stdout,
					stderr.String())
			}
			// The profile is gone.
			if left, err := filepath.Glob(filepath.Join(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="), "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}
