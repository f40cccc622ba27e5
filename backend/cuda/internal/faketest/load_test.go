// Loading on the fake driver: refusals, what its compiler says, modules shared, what devices can do.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
)

func TestLoadErrors(t *testing.T) {
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
		{"more parameters in the PTX", func(b *backend.Binary) { b.Code = ptx("record", 2, 0) }, false, "more than the 1 parameters"},
		{"fewer parameters in the PTX", func(b *backend.Binary) { b.Args = 2 }, false, "1 parameters, its table 2"},
		{"no block in the PTX", func(b *backend.Binary) { b.ParamBytes = 16 }, false, "1 parameters, its table 2"},
		{"larger block in the PTX", func(b *backend.Binary) { b.Code, b.ParamBytes = ptx("record", 1, 20), 16 }, false, "parameter 1 has 20 bytes in its PTX and 16 in its table"},
		{"many registers", func(b *backend.Binary) { b.Code = ptx("record", 1, 0, "//threads=32") }, true, "workgroups of 32 invocations, it has 64"},
		{"static shared memory", func(b *backend.Binary) { b.Code, b.Shared = ptx("record", 1, 0, "//static=40000"), 200_000 }, true, "240000 bytes of shared memory, the device has 232448"},
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
		t.Setenv("FAKE_FAIL", "cuModuleLoadDataEx="+c.code)
		_, err := d.Load(bin("record", 1, 0))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("code %s: %v; want %v with %q", c.code, err, c.kind, c.want)
		}
	}
	t.Setenv("FAKE_FAIL", "")
	if _, err := d.Load(bin("record", 1, 0)); !errors.Is(err, backend.ErrDeviceLost) {
		t.Errorf("after the loss: %v", err)
	}
}

// Code is compiled once, whatever is closed in between.
func TestModuleCache(t *testing.T) {
	d := open(t)
	logged := calls(t)
	for range 5 {
		backendtest.Load(t, d, bin("record", 1, 0)).Close()
	}
	backendtest.Load(t, d, bin("record", 1, 0, "// another text"))
	if n := count(logged(), "cuModuleLoadDataEx"); n != 2 {
		t.Errorf("%d modules loaded for two texts", n)
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
	if i.Name != "Fake GPU 0" || i.Vendor != "NVIDIA" || !strings.HasPrefix(i.Driver, "CUDA 12.4") || i.Memory != 1<<30 || i.Kind != "discrete" {
		t.Errorf("%+v", i)
	}
}
