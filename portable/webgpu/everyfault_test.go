//go:build cgo && linux && amd64

// Each call of the Vulkan driver below wgpu fails once.

package webgpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/portable/webgpu"
)

// TestEveryFault runs programs in children whose loader lets one call fail (backend/vulkan/testdata/faultvk.c): see
// backendtest.RunFaulty. What a lost device has goes with the process. Without SPMM_ALL_FAULTS, some of the calls.
func TestEveryFault(t *testing.T) {
	if os.Getenv("FAULTVK_LOG") != "" {
		faulty(t)
		return
	}
	if open(t) == nil {
		return
	}
	loader := mapped(t, "/libvulkan.so")
	if loader == "" {
		return
	}
	shim := filepath.Join(t.TempDir(), "libvulkan.so.1")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-Wl,-soname,libvulkan.so.1", "-o", shim,
		"../../backend/vulkan/testdata/faultvk.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	every := 1
	if os.Getenv("SPMM_ALL_FAULTS") == "" {
		every = 29
	}
	for _, code := range []int{-1, -2, -4} {
		for at := 1 - code%every; ; at += every {
			log := filepath.Join(t.TempDir(), "log")
			cmd := exec.Command(os.Args[0], "-test.run=^TestEveryFault$", "-test.v")
			cmd.Env = append(os.Environ(), fmt.Sprintf("FAULTVK_AT=%d %d", at, code), "FAULTVK_LOG="+log, "REAL_VULKAN="+loader,
				"LD_PRELOAD="+shim, "SPMM_REQUIRE=webgpu")
			out, err := cmd.CombinedOutput()
			text, _ := os.ReadFile(log)
			if err != nil {
				t.Fatalf("call %d returns %d (%s): %v\n%.3000s", at, code, text, err, out)
			}
			name, ends, failed := strings.Cut(strings.TrimPrefix(string(text), "failed "), "\n")
			if !failed || !strings.HasPrefix(string(text), "failed ") {
				break
			}
			if strings.Contains(string(out), "device lost") {
				continue
			}
			// What wgpu made of a device, or of a pipeline, before that failed, it leaves: up to seven objects. The next run
			// leaves none.
			left, objects := strings.Split(strings.TrimSpace(ends), "\n"), 0
			if n, err := fmt.Sscanf(left[0], "end objects %d", &objects); n != 1 || err != nil || objects > 7 || len(left) < 2 ||
				left[len(left)-1] != left[0] {
				t.Errorf("call %d, %s, fails, and something is left over: %q\n%s", at, name, left, out)
			}
		}
	}
}

// faulty is the child: a run in which a call fails, and one in which none does.
func faulty(t *testing.T) {
	failed := func() bool {
		text, err := os.ReadFile(os.Getenv("FAULTVK_LOG"))
		return err == nil && strings.Contains(string(text), "failed")
	}
	if backendtest.RunFaulty(t, webgpu.Driver{}, failed) {
		t.Log("device lost")
	}
	os.Setenv("FAULTVK_AT", "none")
	backendtest.RunFaulty(t, webgpu.Driver{}, func() bool { return false })
}
