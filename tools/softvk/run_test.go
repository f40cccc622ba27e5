//go:build linux

// Tests of the script run, with a folder in the cache that stands in for the driver's and holds the
// machine's own libraries.
package softvk_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// standIn makes the folders that run looks for, and returns the cache they are in.
func standIn(t *testing.T) (cache string) {
	t.Helper()
	script, err := os.ReadFile("run")
	if err != nil {
		t.Fatal(err)
	}
	cache = t.TempDir()
	for _, m := range regexp.MustCompile(`ensure (softvk-[a-z]+\.\d+) `).FindAllSubmatch(script, -1) {
		folder := filepath.Join(cache, "spmm", string(m[1]))
		icds := filepath.Join(folder, "usr/share/vulkan/icd.d")
		for _, dir := range []string{icds, filepath.Join(folder, "usr/lib/x86_64-linux-gnu"),
			filepath.Join(folder, "usr/lib64"), filepath.Join(folder, "usr/bin")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"lvp_icd.json", "radeon_icd.json"} {
			if err := os.WriteFile(filepath.Join(icds, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(loader(t), filepath.Join(folder, "usr/lib64/ld-linux-x86-64.so.2")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/bin/true", filepath.Join(folder, "usr/bin/vulkaninfo")); err != nil {
			t.Fatal(err)
		}
	}
	return cache
}

// loader is the machine's dynamic loader.
func loader(t *testing.T) string {
	t.Helper()
	f, err := elf.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimRight(string(b), "\x00")
		}
	}
	t.Fatal("/bin/sh is static")
	return ""
}

func TestRun(t *testing.T) {
	cache, tmp := standIn(t), t.TempDir()
	text := filepath.Join(tmp, "a script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\necho \"$SPMM_SOFTVK $*\"; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(tmp, "static")
	build := exec.Command("go", "build", "-o", static, "./adapt")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env := `echo "$SPMM_SOFTVK ${VK_DRIVER_FILES##*/} $RADV_FORCE_FAMILY $VK_INSTANCE_LAYERS"`
	for _, c := range []struct {
		name   string
		args   []string
		env    string
		stdin  string
		status int
		stdout string
		stderr string // a part of it
	}{
		{name: "a program", args: []string{"sh", "-c", env}, stdout: "matrices lvp_icd.json  \n"},
		{name: "plain", args: []string{"--plain", "/bin/sh", "-c", env}, stdout: "plain lvp_icd.json  \n"},
		{name: "amd", args: []string{"--amd", "sh", "-c", env}, stdout: "amd radeon_icd.json navi31 \n"},
		{name: "validated", args: []string{"sh", "-c", env}, env: "SPMM_VALIDATE=1",
			stdout: "matrices lvp_icd.json  VK_LAYER_KHRONOS_validation\n"},
		{name: "not validated", args: []string{"sh", "-c", env}, env: "SPMM_VALIDATE=0", stdout: "matrices lvp_icd.json  \n"},
		{name: "arguments, input and status", args: []string{"--", "sh", "-c", `cat; printf "%s|" "$@"; exit 5`, "sh", "a b",
			"", "*"}, stdin: "in ", status: 5, stdout: "in a b||*|"},
		{name: "itself again", args: []string{"bash", "-c", `exec /proc/self/exe -c 'readlink /proc/self/exe >/dev/null; echo again'`}, stdout: "again\n"},
		{name: "another program", args: []string{"bash", "-c", "/bin/sh -c 'echo other'"}, stdout: "other\n"},
		{name: "a script", args: []string{"--plain", text, "x"}, status: 3, stdout: "plain x\n"},
		{name: "a static program", args: []string{static}, status: 2, stderr: "usage: adapt"},
		{name: "a tool of the driver's", args: []string{"vulkaninfo"}},
		{name: "nothing", status: 2, stderr: "usage: "},
		{name: "a mode alone", args: []string{"--amd"}, status: 2, stderr: "usage: "},
		{name: "an unknown mode", args: []string{"--nvidia", "sh"}, status: 2, stderr: "usage: "},
		{name: "no such program", args: []string{"no-such-program"}, status: 127,
			stderr: "softvk: no-such-program: command not found\n"},
		{name: "no such file", args: []string{"./none"}, status: 126, stderr: "softvk: ./none: not an executable file\n"},
		{name: "a folder", args: []string{tmp}, status: 126, stderr: "not an executable file\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("./run", c.args...)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "TMPDIR="+tmp, "GOCACHE="+goCache(t),
				"SPMM_VALIDATE=", "VK_INSTANCE_LAYERS=", "VK_DRIVER_FILES=", "RADV_FORCE_FAMILY=", c.env)
			cmd.Stdin = strings.NewReader(c.stdin)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status || stdout.String() != c.stdout ||
				!strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("status %d, want %d; output %q, want %q; said %q", got, c.status, stdout.String(), c.stdout,
					stderr.String())
			}
		})
	}
	// Each run removes what earlier ones left.
	if left, err := filepath.Glob(filepath.Join(tmp, "softvk.*")); err != nil || len(left) > 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// goCache is Go's build cache, which otherwise would follow XDG_CACHE_HOME.
func goCache(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
