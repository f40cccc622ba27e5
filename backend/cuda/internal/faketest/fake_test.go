//go:build cuda && cgo && linux && (amd64 || arm64)

// Building the stand-in and loading it; what all tests share.

package faketest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	_ "github.com/spmmrun/spmm/backend/cuda"
)

const library = "SPMM_CUDA_LIBRARY"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	os.Exit(withLibrary(m))
}

func withLibrary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err == nil {
		defer os.RemoveAll(dir)
		var path string
		path, err = compile(dir)
		os.Setenv(library, path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// compile builds the stand-in, perhaps with -D flags, and returns its path.
func compile(dir string, flags ...string) (string, error) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	const source, header = "testdata/libcuda.c", "../toolkit/cuda.h"
	for _, name := range []string{source, header} { // looked at, so that go test sees when they change
		if _, err := os.Stat(name); err != nil {
			return "", err
		}
	}
	out := filepath.Join(dir, "libcuda.so.1")
	args := append([]string{"-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-I", filepath.Dir(header), "-o",
		out}, flags...)
	text, err := exec.Command(cc, append(args, source, "-lpthread")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %v\n%s", cc, err, text)
	}
	return out, nil
}

func cuda(t testing.TB) backend.Driver {
	t.Helper()
	return backendtest.Find(t, "cuda")
}

// open opens the first device, for as long as the test runs.
func open(t testing.TB) backend.Device {
	t.Helper()
	d, err := cuda(t).Open(t.Context(), backend.Info{Backend: "cuda"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// ptx is a kernel as the stand-in reads it: by name and parameters.
func ptx(entry string, args, paramBytes int, comments ...string) []byte {
	params := make([]string, args)
	for i := range params {
		params[i] = fmt.Sprintf(".param .u64 a%d", i)
	}
	if paramBytes > 0 {
		params = append(params, fmt.Sprintf(".param .align 4 .b8 p[%d]", paramBytes))
	}
	return fmt.Appendf(nil, ".version 8.4\n.target sm_80\n.address_size 64\n%s\n.visible .entry %s(%s)\n{ ret; }\n",
		strings.Join(comments, "\n"), entry, strings.Join(params, ", "))
}

// bin describes a kernel of ptx.
func bin(entry string, args, paramBytes int, comments ...string) backend.Binary {
	return backend.Binary{Name: "test/" + entry, Kind: backend.CodePTX, Code: ptx(entry, args, paramBytes, comments...),
		Entry: entry, Args: args, ParamBytes: paramBytes, Local: [3]uint32{64, 1, 1}}
}

func launch(k backend.Kernel, args ...backend.Buffer) backend.Launch {
	return backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: args}
}

func words(t testing.TB, b backend.Buffer, n int) []uint32 {
	t.Helper()
	return backendtest.Download[uint32](t, b, 0, n)
}

// calls starts logging the driver's calls; the function it returns tells what was logged since.
func calls(t testing.TB) func() []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv("FAKE_LOG", path)
	return func() []string {
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
}

func count(list []string, name string) int {
	n := 0
	for _, s := range list {
		if s == name {
			n++
		}
	}
	return n
}
