//go:build cgo && linux && amd64

// What happens when the GPU fails under a running program. A program cannot make it fail, so the test starts
// itself again on a Vulkan loader that can (testdata/faults.c).

package webgpu_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

func TestFaults(t *testing.T) {
	cases := map[string]func(*testing.T){
		"memory": outOfMemory, "submit": lost, "wait": lost, "cancelled-wait": lostAfterCancel,
		"started-wait": lostAfterStart,
	}
	if f := cases[os.Getenv("FAULT")]; f != nil {
		f(t) // in the child
		return
	}
	d := open(t)
	if d == nil {
		return
	}
	loader := mapped(t, "/libvulkan.so")
	if loader == "" {
		t.Logf("%v does not go through Vulkan; its faults are not tested", d.Info())
		return
	}
	dir := t.TempDir()
	shim := filepath.Join(dir, "libvulkan.so.1")
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,-soname,libvulkan.so.1", "-o", shim, "testdata/faults.c",
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	for name := range cases {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFaults$", "-test.v")
		cmd.Env = append(os.Environ(), "FAULT="+name, "VULKAN_FAULT="+filepath.Join(dir, "fault"),
			"REAL_VULKAN="+loader, "LD_PRELOAD="+shim, "SPMM_REQUIRE=webgpu")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestFaults") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// mapped returns the path of a library that this process has loaded.
func mapped(t *testing.T, part string) string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 && strings.Contains(line, part) {
			return strings.TrimSpace(line[i:])
		}
	}
	return ""
}

// breakVulkan makes the calls of this child's kind fail until mend is called.
func breakVulkan(t *testing.T) (mend func()) {
	file := os.Getenv("VULKAN_FAULT")
	fault := os.Getenv("FAULT")
	if err := os.WriteFile(file, []byte(fault[strings.LastIndexByte(fault, '-')+1:]), 0o666); err != nil {
		t.Fatal(err)
	}
	mend = func() { os.Remove(file) }
	t.Cleanup(mend)
	return mend
}

// Without memory Alloc fails, and the device works on.
func outOfMemory(t *testing.T) {
	d := open(t)
	runSetOne(t, d)
	mend := breakVulkan(t)
	var err error
	for range 100 { // past what wgpu has in reserve
		if _, err = d.Alloc(64 << 20); err != nil {
			break
		}
	}
	if !errors.Is(err, backend.ErrOutOfMemory) {
		t.Fatalf("Alloc without memory: error %v", err)
	}
	mend()
	runSetOne(t, d)
}

// A lost device says so, to every call but Close; and the GPU may be opened again.
func lost(t *testing.T) {
	d := open(t)
	k := backendtest.Load(t, d, wgsl(setOne, 1))
	b := backendtest.Alloc(t, d, 64)
	l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{b}}
	backendtest.Do(t, d, l)
	mend := breakVulkan(t)
	if _, err := d.Run(t.Context(), l); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Run: error %v", err)
	}
	mend() // lost stays lost
	staysLost(t, d, k, b)
	opensAgain(t, d)
}

// A device that is lost while it works on what a cancelled Run has left says so to the next call, and closes.
func lostAfterCancel(t *testing.T) {
	d, k, b, l := longLaunch(t, 2000)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := d.Run(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("cancelled Run: error %v", err)
	}
	breakVulkan(t)
	if err := b.Read(t.Context(), 0, make([]byte, 64)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Read: error %v", err)
	}
	if err := errors.Join(b.Close(), k.Close(), d.Close(), d.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// One that is lost while it works on what was started says so to whoever waits.
func lostAfterStart(t *testing.T) {
	d, _, _, l := longLaunch(t, 2000)
	p, err := d.Start(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	breakVulkan(t)
	for range 2 {
		if _, err := p.Wait(t.Context()); !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("Wait: error %v", err)
		}
	}
	if _, err := d.Start(t.Context(), l); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("Start: error %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
