// The generator of forwarders, and that what it wrote is up to date and complete.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const header = "../toolkit/cuda.h"

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGenerate(t *testing.T) {
	got, err := generate("CUresult cuInit(unsigned int Flags);\nCUresult cuCtxSynchronize(void);\n" +
		"CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);\nCUresult cuGetErrorName(CUresult error, const char **pStr);\n")
	want := head + "FORWARD(cuCtxSynchronize, (void), ())\n" +
		"FORWARD(cuMemAlloc_v2, (CUdeviceptr *dptr, size_t bytesize), (dptr, bytesize))\n" +
		"FORWARD(cuGetErrorName, (CUresult error, const char **pStr), (error, pStr))\n"
	if err != nil || got != want {
		t.Errorf("got %v\n%s", err, got)
	}
	if _, err := generate("CUresult cuBad(int *);\n"); err == nil {
		t.Error("a parameter without a name: no error")
	}
}

// The checked-in forwarders are those of the header.
func TestUpToDate(t *testing.T) {
	want, err := generate(read(t, header))
	if err != nil {
		t.Fatal(err)
	}
	if read(t, "../driver/zforward.c") != want {
		t.Error("zforward.c is stale: run go generate ./backend/cuda/internal/driver")
	}
	if n := strings.Count(want, "FORWARD("); n < 150 {
		t.Errorf("%d forwarders only: a line of cuda.h is not read", n)
	}
}

// Every function that gorgonia.org/cu calls is declared in the header, under its own name or as the
// alias of an exported one. (A test, because a linker would only say so in builds with the tag.)
func TestNoneMissing(t *testing.T) {
	out, err := exec.Command("go", "list", "-e", "-find", "-f", "{{.Dir}}", "gorgonia.org/cu").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Fatalf("finding gorgonia.org/cu: %v", err)
	}
	h := read(t, header)
	declared := regexp.MustCompile(`(?m)^(?:CUresult|#define) (cu[A-Z]\w*)`)
	have := map[string]bool{}
	for _, m := range declared.FindAllStringSubmatch(h, -1) {
		have[m[1]] = true
	}
	own := regexp.MustCompile(`(?m)^extern CUresult (\w+)\(`)
	for _, m := range own.FindAllStringSubmatch(read(t, filepath.Join(dir, "batch.h")), -1) {
		have[m[1]] = true
	}
	calls := regexp.MustCompile(`\bC\.(cu[A-Z]\w*)|\b(cu[A-Z]\w*)\(`)
	seen := 0
	for _, pattern := range []string{"*.go", "*.c"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, f := range files {
			for _, m := range calls.FindAllStringSubmatch(code(read(t, f), f), -1) {
				seen++
				if name := m[1] + m[2]; !have[name] {
					t.Errorf("%s calls %s, which cuda.h lacks", filepath.Base(f), name)
				}
			}
		}
	}
	if seen < 250 {
		t.Errorf("found %d calls only", seen)
	}
}

// code drops comment lines; of Go only calls through C count.
func code(text, name string) string {
	var b strings.Builder
	for _, l := range strings.Split(text, "\n") {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "//") || strings.HasPrefix(l, "/*") {
			continue
		}
		if strings.HasSuffix(name, ".go") && !strings.Contains(l, "C.cu") {
			continue
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
