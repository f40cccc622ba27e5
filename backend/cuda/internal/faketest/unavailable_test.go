//go:build cuda && cgo && linux && (amd64 || arm64)

// Drivers that do not start. A process opens the library once, so each case is a process of its own.

package faketest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

const childEnv = "FAKE_CHILD"

// child prints what Devices and Open answer, and whether Load works without the optional functions.
func child() {
	d, err := backend.Find("cuda")
	if err != nil {
		fmt.Println("find:", err)
		return
	}
	list, err := d.Devices(context.Background())
	fmt.Printf("devices: %d %v %v\n", len(list), errors.Is(err, backend.ErrUnavailable), err)
	dev, err := d.Open(context.Background(), backend.Info{Backend: "cuda"})
	fmt.Printf("open: %v %v\n", errors.Is(err, backend.ErrUnavailable), err)
	if err == nil {
		_, err = dev.Load(bin("step", 2, 16))
		fmt.Printf("load: %v close: %v\n", err, dev.Close())
	}
}

// start runs a child and returns its lines.
func start(t *testing.T, env ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), childEnv+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestUnavailable(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("no library"), 0o666); err != nil {
		t.Fatal(err)
	}
	old, err := compile(t.TempDir(), "-DWITHOUT_cuDevicePrimaryCtxRelease_v2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, env, want string }{
		{"no driver", library + "=/nowhere/libcuda.so.1", "no NVIDIA driver on this machine"},
		{"no library", library + "=" + text, "no NVIDIA driver on this machine"},
		{"another library", library + "=libm.so.6", "not a CUDA driver"},
		{"no device", "FAKE_INIT=100", "sees no NVIDIA GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES (CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected)"},
		{"zero devices", "FAKE_DEVICES=0", "sees no NVIDIA GPU"},
		{"mismatch", "FAKE_INIT=803", "libcuda and the NVIDIA kernel module differ in version: reboot"},
		{"compatibility library", "FAKE_INIT=804", "compatibility library"},
		{"fabric", "FAKE_INIT=802", "fabric manager"},
		{"toolkit's stub", "FAKE_INIT=34", "LD_LIBRARY_PATH"},
		{"broken", "FAKE_INIT=999", "system's log (CUDA error 999)"},
		{"old", "FAKE_VERSION=11080", "for CUDA 11.8 and at least 12.0 is needed"},
		{"symbol missing", library + "=" + old, "lacks cuDevicePrimaryCtxRelease_v2: update it"},
		{"devices without end", "FAKE_DEVICES=2000000000", "there are 2000000000 GPUs, which cannot be"},
		{"fewer than no device", "FAKE_DEVICES=-1", "there are -1 GPUs, which cannot be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := start(t, c.env)
			if len(got) != 2 {
				t.Fatalf("answers %q", got)
			}
			for i, prefix := range []string{"devices: 0 true cuda: not available: ", "open: true cuda: not available: "} {
				if !strings.HasPrefix(got[i], prefix) || !strings.Contains(got[i], c.want) {
					t.Errorf("%q\nwant %q … %q", got[i], prefix, c.want)
				}
			}
		})
	}
}

// A device whose properties are all ones is listed, and not opened.
func TestAllOnes(t *testing.T) {
	got := start(t, "FAKE_ONES=1", "FAKE_MEMORY=-1")
	if len(got) != 2 || got[0] != "devices: 2 false <nil>" || !strings.HasPrefix(got[1], "open: true cuda: not available: the GPU's driver says that its compute capability is -1") {
		t.Errorf("answers %q", got)
	}
}

// Drivers before CUDA 12.4 cannot tell a kernel's parameters; it loads nonetheless.
func TestWithoutParamInfo(t *testing.T) {
	old, err := compile(t.TempDir(), "-DWITHOUT_cuFuncGetParamInfo")
	if err != nil {
		t.Fatal(err)
	}
	got := start(t, library+"="+old)
	want := []string{"devices: 2 false <nil>", "open: false <nil>", "load: <nil> close: <nil>"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestOpenErrors(t *testing.T) {
	d := cuda(t)
	for _, c := range []struct {
		name, fail string
		index      int
		want       error
		text       string
		retained   bool // a context was made, and must be released
	}{
		{"no such device", "", 2, backend.ErrUnavailable, "there is no device 2 (2 present)", false},
		{"negative index", "", -1, backend.ErrUnavailable, "there is no device -1", false},
		{"busy", "cuDevicePrimaryCtxRetain=46", 0, backend.ErrUnavailable, "exclusive mode", false},
		{"no memory for a context", "cuDevicePrimaryCtxRetain=2", 0, backend.ErrOutOfMemory, "too little memory is free",
			false},
		{"no memory for events", "cuEventCreate=2", 0, backend.ErrOutOfMemory, "opening the device", true},
		{"lost at once", "cuStreamCreate=719", 0, backend.ErrUnavailable, "check nvidia-smi", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			logged := calls(t)
			t.Setenv("FAKE_FAIL", c.fail)
			_, err := d.Open(t.Context(), backend.Info{Backend: "cuda", Index: c.index})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Open: %v; want %v with %q", err, c.want, c.text)
			}
			if ended := count(logged(), "cuDevicePrimaryCtxRelease_v2") == 1; ended != c.retained {
				t.Errorf("context released: %v, want %v", ended, c.retained)
			}
		})
	}
}
