// Package capitest builds C and C++ programs with libspmm as its users do, and runs them.
package capitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installed returns the folder below which `make install-capi` has put the library: make test-capi names it.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SPMM_CAPI")
	if dir == "" {
		t.Skip("SPMM_CAPI names no folder with the C library: make test-capi builds it")
	}
	return dir
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Programs are compiled with what pkg-config says, and with AddressSanitizer.
func TestPrograms(t *testing.T) {
	dir := installed(t)
	lib := filepath.Join(dir, "lib")
	flags := strings.Fields(run(t, []string{"PKG_CONFIG_PATH=" + filepath.Join(lib, "pkgconfig")},
		"pkg-config", "--define-prefix", "--cflags", "--libs", "spmm"))
	for _, c := range []struct{ name, compiler, source string }{
		{"C", "cc", "testdata/check.c"}, {"C++", "c++", "testdata/check.cpp"},
	} {
		for _, sanitizer := range []string{"", "-fsanitize=address,undefined"} {
			t.Run(c.name+sanitizer, func(t *testing.T) {
				bin := filepath.Join(t.TempDir(), "check")
				args := []string{"-Wall", "-Wextra", "-Werror", "-O1", "-g", "-o", bin, c.source}
				if sanitizer != "" {
					args = append(args, sanitizer)
				}
				run(t, nil, c.compiler, append(args, flags...)...)
				env := []string{"LD_LIBRARY_PATH=" + lib, "CACHE=" + t.TempDir(), "ASAN_OPTIONS=detect_leaks=0"}
				if out := run(t, env, bin); out != "all passed" {
					t.Error(out)
				}
			})
		}
	}
}

// A program of CMake's finds the library of a version by its folder.
func TestCMake(t *testing.T) {
	dir := installed(t)
	source, build := t.TempDir(), t.TempDir()
	program, err := filepath.Abs("testdata/check.cpp")
	if err != nil {
		t.Fatal(err)
	}
	text := `cmake_minimum_required(VERSION 3.16)
project(check CXX)
find_package(spmm 0.0.1 REQUIRED)
add_executable(check ` + program + `)
target_link_libraries(check spmm::spmm)
`
	if err := os.WriteFile(filepath.Join(source, "CMakeLists.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "cmake", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH="+dir)
	run(t, nil, "cmake", "--build", build)
	if out := run(t, []string{"CACHE=" + t.TempDir()}, filepath.Join(build, "check")); out != "all passed" {
		t.Error(out)
	}
}

// dlclose leaves the library where it is, with its devices and threads.
func TestUnload(t *testing.T) {
	dir := installed(t)
	bin := filepath.Join(t.TempDir(), "unload")
	run(t, nil, "cc", "-Wall", "-Wextra", "-Werror", "-I", filepath.Join(dir, "include"), "-o", bin, "testdata/unload.c")
	if out := run(t, nil, bin, filepath.Join(dir, "lib", "libspmm.so")); out != "all passed" {
		t.Error(out)
	}
}

// The library exports the functions of its header in version SPMM_1 and nothing else, and stays loaded.
func TestSymbols(t *testing.T) {
	dir := installed(t)
	lib := filepath.Join(dir, "lib", "libspmm.so")
	header, err := os.ReadFile(filepath.Join(dir, "include", "spmm.h"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(run(t, nil, "nm", "-D", "--defined-only", lib)) {
		fields := strings.Fields(line)
		name, version, _ := strings.Cut(fields[2], "@@")
		if name == "SPMM_1" {
			continue
		}
		n++
		if version != "SPMM_1" || !strings.Contains(string(header), name+"(") {
			t.Errorf("symbol %s: want a function of spmm.h in version SPMM_1", fields[2])
		}
	}
	if n == 0 {
		t.Error("no symbols")
	}
	if out := run(t, nil, "readelf", "-d", lib); !strings.Contains(out, "NODELETE") {
		t.Error("dlclose would unload Go's runtime: want the flag NODELETE")
	}
}
