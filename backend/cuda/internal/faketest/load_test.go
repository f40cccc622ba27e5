// Loading on the fake driver: refusals, what its compiler says, code compiled once and at once, what devices can do.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

// compiling runs a test with a driver that compiles when code is loaded, and with those that put it off.
func compiling(t *testing.T, test func(*testing.T)) {
	for _, in := range []string{"cuLibraryLoadData", "cuKernelGetFunction", "cuFuncGetAttribute"} {
		t.Run(in, func(t *testing.T) {
			t.Setenv("FAKE_COMPILE", in)
			test(t)
		})
	}
}

func TestLoadErrors(t *testing.T) { compiling(t, testLoadErrors) }

func testLoadErrors(t *testing.T) {
	d := open(t)
	good := bin("record", 1, 0)
	replace := func(old, new string) func(*backend.Binary) {
		return func(b *backend.Binary) { b.Code = []byte(strings.ReplaceAll(string(b.Code), old, new)) }
	}
	for _, c := range []struct {
		name        string
		change      func(*backend.Binary)
		unsupported bool
		want        string
	}{
		{"PTX too new", replace("8.4", "9.0"), true, "it is PTX 9.0, which needs a driver for CUDA 13.0 or later; this one is for CUDA 12.4: update the NVIDIA driver"},
		{"PTX a little too new", replace("8.4", "8.7"), true, "CUDA 12.8 or later"},
		{"newer architecture", replace("sm_80", "sm_100a"), true, "it is for a newer GPU: CUDA error 209"},
		{"syntax error", replace("ret;", "bad instruction"), false, "the driver does not compile the kernel: ptxas application ptx input, line 7; error   : Parsing error near 'bad': syntax error"},
		{"no such function", func(b *backend.Binary) { b.Entry = "other" }, false, `no function "other"`},
		{"more parameters in the PTX", func(b *backend.Binary) { b.Code = ptx("record", 2, 0) }, false,
			"more than the 1 parameters"},
		{"fewer parameters in the PTX", func(b *backend.Binary) { b.Args = 2 }, false, "1 parameters, its table 2"},
		{"no block in the PTX", func(b *backend.Binary) { b.ParamBytes = 16 }, false, "1 parameters, its table 2"},
		{"larger block in the PTX", func(b *backend.Binary) { b.Code, b.ParamBytes = ptx("record", 1, 20), 16 }, false,
			"parameter 1 has 20 bytes in its PTX and 16 in its table"},
		{"many registers", func(b *backend.Binary) { b.Code = ptx("record", 1, 0, "//threads=32") }, true,
			"workgroups of 32 invocations, it has 64"},
		{"static shared memory", func(b *backend.Binary) {
			b.Code, b.Shared = ptx("record", 1, 0, "//static=40000"),
				200_000
		}, true, "240000 bytes of shared memory, the device has 232448"},
	} {
		b := good
		c.change(&b)
		_, err := d.Load(b)
		if err == nil || errors.Is(err, backend.ErrUnsupported) != c.unsupported ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "test/record") {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	backendtest.Load(t, d, good)
}

func TestCompilerProblems(t *testing.T) {
	for _, call := range []string{"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncGetAttribute"} {
		t.Run(call, func(t *testing.T) { testCompilerProblems(t, call) })
	}
}

func testCompilerProblems(t *testing.T, call string) {
	d := open(t)
	for _, c := range []struct {
		code string
		kind error
		want string
	}{
		{"221", backend.ErrCompile, "libnvidia-ptxjitcompiler.so.1"},
		{"223", backend.ErrCompile, "CUDA_DISABLE_PTX_JIT"},
		{"2", backend.ErrOutOfMemory, "loading test/record"},
		{"719", backend.ErrDeviceLost, "loading test/record"},
	} {
		b := bin("record", 1, 0, "// code "+c.code)
		t.Setenv("FAKE_FAIL", call+"="+c.code)
		_, err := d.Load(b)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("code %s: %v; want %v with %q", c.code, err, c.kind, c.want)
		}
		t.Setenv("FAKE_FAIL", "")
		if c.kind != backend.ErrDeviceLost {
			backendtest.Load(t, d, b) // the next one tries again
		} else if _, err := d.Load(b); !errors.Is(err, backend.ErrDeviceLost) {
			t.Errorf("after the loss: %v", err)
		}
	}
}

// Code is compiled once, whatever is closed in between, and whoever loads it at once.
func TestCompiledOnce(t *testing.T) { compiling(t, testCompiledOnce) }

func testCompiledOnce(t *testing.T) {
	d := open(t)
	logged := calls(t)
	for range 5 {
		backendtest.Load(t, d, bin("record", 1, 0)).Close()
	}
	release := hold(t)
	var loads sync.WaitGroup
	for range 8 {
		loads.Go(func() {
			if _, err := d.Load(bin("record", 1, 0, "// another text")); err != nil {
				t.Error(err)
			}
		})
	}
	within(t, "a compilation", func() bool { return count(logged(), "compiling") > 1 })
	release()
	loads.Wait()
	l := logged()
	if n := count(l, "compiling"); n != 2 {
		t.Errorf("two texts are compiled %d times", n)
	}
	if n := count(l, "cuLibraryLoadData"); n != 2 {
		t.Errorf("%d libraries loaded for two texts", n)
	}
}

// Goroutines compile different code at once, and launches go on meanwhile.
func TestCompileAtOnce(t *testing.T) { compiling(t, testCompileAtOnce) }

func testCompileAtOnce(t *testing.T) {
	d := open(t)
	k, b := backendtest.Load(t, d, bin("record", 1, 0)), backendtest.Alloc(t, d, 28)
	logged := calls(t)
	release := hold(t)
	loaded := make(chan error, 2)
	for i := range cap(loaded) {
		go func() {
			_, err := d.Load(bin("record", 1, 0, fmt.Sprint("// text ", i)))
			loaded <- err
		}()
	}
	within(t, "two compilations at once", func() bool { return count(logged(), "compiling") == cap(loaded) })
	ran := make(chan error, 1)
	go func() {
		_, err := d.Run(t.Context(), launch(k, b))
		ran <- err
	}()
	within(t, "a launch beside them", func() bool { return len(ran) == 1 })
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if w := words(t, b, 7); w[0] != 1 || w[3] != 64 {
		t.Errorf("the launch stored %d", w)
	}
	if len(loaded) > 0 {
		t.Error("a kernel is loaded before it is compiled")
	}
	release()
	for range cap(loaded) {
		if err := <-loaded; err != nil {
			t.Error(err)
		}
	}
}

// hold has whatever is compiled from now on wait for release, or for the test's end.
func hold(t *testing.T) (release func()) {
	path := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_HOLD", path)
	release = func() { os.Remove(path) }
	t.Cleanup(release)
	return release
}

// within waits for something that happens at once where nothing is in its way, and fails after 20 s.
func within(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// Close unloads the code of all kernels, even where the context is gone already.
func TestCloseUnloads(t *testing.T) {
	for _, fails := range []string{"", "cuCtxPushCurrent_v2=709"} {
		d := open(t)
		logged := calls(t)
		backendtest.Load(t, d, bin("record", 1, 0))
		backendtest.Load(t, d, bin("record", 1, 0, "// another text"))
		t.Setenv("FAKE_FAIL", fails)
		if err := d.Close(); (err == nil) != (fails == "") {
			t.Errorf("%q: Close: %v", fails, err)
		}
		t.Setenv("FAKE_FAIL", "")
		if l := logged(); count(l, "cuLibraryUnload") != 2 {
			t.Errorf("%q: %d of 2 libraries unloaded", fails, count(l, "cuLibraryUnload"))
		}
	}
}

func TestCaps(t *testing.T) {
	d := open(t)
	c := d.Caps()
	if c.Code != backend.CodePTX || c.Arch != 90 || c.SubgroupMin != 32 || c.SubgroupMax != 32 || !c.SubgroupPinned ||
		c.SharedBytes != 232448 || c.MaxInvocations != 1024 || c.MaxLocal != [3]uint32{1024, 1024, 64} ||
		c.MaxGroups != [3]uint32{1<<31 - 1, 65535, 65535} || c.MaxBinding != 0 || !c.F16 || !c.Int8 || c.Units != 132 {
		t.Errorf("%+v", c)
	}
	i := d.Info()
	if i.Name != "Fake GPU 0" || i.Vendor != "NVIDIA" || !strings.HasPrefix(i.Driver, "CUDA 12.4") || i.Memory != 1<<30 ||
		i.Kind != "discrete" {
		t.Errorf("%+v", i)
	}
}
