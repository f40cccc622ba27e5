// The process lives through broken drivers, and what kills it all the same is no bad input.

//go:build cgo && linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// loader compiles a Vulkan loader and returns its folder; "" where there is no C compiler. Programs that tools/softvk
// has adapted find its own loader first.
func loader(t *testing.T, source string) string {
	t.Helper()
	if os.Getenv("SPMM_SOFTVK") != "" {
		t.Skip("tools/softvk gives the program another loader; the test runs without it")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Logf("no C compiler, no loader: %v", err)
		return ""
	}
	if _, err := os.Stat(source); err != nil { // go test sees that it is looked at, and when it changes
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,-soname,libvulkan.so.1", "-o",
		filepath.Join(dir, "libvulkan.so.1"), source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// spmmrun runs the command with that Vulkan loader and returns its exit code and output.
func spmmrun(t *testing.T, program, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "SPMM_CACHE="+t.TempDir(), "GOTRACEBACK=")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Whatever a Vulkan loader does not have or says, --backend auto multiplies on another backend.
func TestBrokenDrivers(t *testing.T) {
	dir := loader(t, "../../backend/vulkan/testdata/brokenvk.c")
	if dir == "" {
		return
	}
	for _, how := range []string{"", "ones", "counts", "grow", "null", "missing vkCreateInstance",
		"missing vkEnumeratePhysicalDevices",
		"missing vkGetPhysicalDeviceProperties", "missing vkGetPhysicalDeviceProperties2", "missing vkCreateDevice",
		"missing vkGetDeviceProcAddr"} {
		t.Run(how, func(t *testing.T) {
			code, stdout, stderr := spmmrun(t, "spmmrun", dir, []string{"BROKENVK=" + how}, "--backend", "auto", "-n", "8",
				"gen:uniform,rows=64,density=0.1")
			if code != 0 || !strings.Contains(stdout, "cpu") {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}

func TestCrash(t *testing.T) {
	dir := loader(t, "testdata/crashvk.c")
	if dir == "" {
		return
	}
	gen := []string{"-n", "8", "gen:uniform,rows=64,density=0.1"}
	for _, c := range []struct{ program, backend, env, want string }{
		{"spmmrun", "auto", "SIGNAL=11", "crashed by SIGSEGV"},
		{"spmmrun", "vulkan", "SIGNAL=6", "crashed by SIGABRT"},
		{"faulty", "panics", "SIGNAL=0", "crashed: a kernel that is wrong"},
		{"faulty", "panics-elsewhere", "SIGNAL=0", "crashed by SIGABRT"},
	} {
		t.Run(c.backend, func(t *testing.T) {
			code, _, stderr := spmmrun(t, c.program, dir, []string{c.env}, append([]string{"--backend", c.backend}, gen...)...)
			if code != exitCrash || !strings.Contains(stderr, "spmmrun: "+c.want) ||
				!strings.Contains(stderr, "not of the input") {
				t.Errorf("exit code %d, want %d with %q\n%.2000s", code, exitCrash, c.want, stderr)
			}
		})
	}
}
