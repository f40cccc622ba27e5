package capitest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The program in docs/cpp.md prints what the page says.
func TestPage(t *testing.T) {
	dir := installed(t)
	page, err := os.ReadFile("../../docs/cpp.md")
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```cpp\n(.*?)```").FindSubmatch(page)
	prints := regexp.MustCompile(`(?m)&& \./a\.out +# (.*)$`).FindSubmatch(page)
	if program == nil || prints == nil {
		t.Fatal("docs/cpp.md has no program, or does not say what it prints")
	}
	to, lib := t.TempDir(), filepath.Join(dir, "lib")
	source := filepath.Join(to, "product.cpp")
	if err := os.WriteFile(source, program[1], 0o666); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(to, "product")
	run(t, nil, "c++", "-Wall", "-Wextra", "-Werror", "-I", filepath.Join(dir, "include"), "-o", bin, source, "-L", lib,
		"-lspmm")
	if out := run(t, []string{"LD_LIBRARY_PATH=" + lib, "SPMM_CACHE=" + t.TempDir()}, bin); out != string(prints[1]) {
		t.Errorf("%q, want %q", out, prints[1])
	}
}
