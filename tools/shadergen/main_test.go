// What is stale is compiled, nothing else, and a source that does not compile changes nothing.

//go:build unix

package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/compiled"
)

// compiler stands in for tools/shaderc: it writes its arguments but the output's name, and it fails on
// a source that says so.
const compiler = `#!/bin/sh
case "$*" in
*--version) echo "Build 1"; echo "Glslang Version: 1"; exit ;;
spirv-val*) exit ;;
esac
args=; out=
for a; do
	case $prev in -o) out=$a ;; *) [ "$a" = -o ] || args="$args $a" ;; esac
	prev=$a
done
if grep -q BROKEN "$a"; then echo "$a:1: broken"; exit 1; fi
printf '// by a compiler\n%s\n' "$args" >"$out"
`

// made is a folder in which the stand-in has compiled everything, once for all tests.
var made string

func TestMain(m *testing.M) {
	code := m.Run()
	if made != "" {
		os.RemoveAll(made)
	}
	os.Exit(code)
}

// workspace makes a module with the project's shaders and the stand-in, and makes it the working
// directory. Its blobs are up to date.
func workspace(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if made != "" {
		if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
			t.Fatal(err)
		}
		t.Chdir(filepath.Join(dir, "shaders"))
		return dir
	}
	if err := os.CopyFS(filepath.Join(dir, "shaders"), os.DirFS("../../shaders")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "go.mod", "module test\n")
	put(t, dir, "tools/shaderc", compiler)
	t.Chdir(filepath.Join(dir, "shaders"))
	if err := run(context.Background(), true, ""); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "shadergen-")
	if err != nil {
		t.Fatal(err)
	}
	made = folder
	if err := os.CopyFS(made, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

var old = time.Unix(1e9, 0)

// age makes all files old; changed tells which were written since.
func age(t *testing.T, dir string) {
	t.Helper()
	each(t, dir, func(name string, _ fs.FileInfo) {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	})
}

func changed(t *testing.T, dir string) (names []string) {
	t.Helper()
	each(t, dir, func(name string, info fs.FileInfo) {
		if info.ModTime().After(old) {
			names = append(names, name)
		}
	})
	return names
}

func each(t *testing.T, dir string, f func(name string, info fs.FileInfo)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			f(name, info)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, dir string) {
	t.Helper()
	for _, err := range shaderlock.Check(os.DirFS(filepath.Join(dir, "shaders")), shaders.All()) {
		t.Error(err)
	}
}

func TestGenerateOnlyWhatIsStale(t *testing.T) {
	dir := workspace(t)
	check(t, dir)
	file, err := os.ReadFile(filepath.Join(dir, "shaders/compiled/peak/cuda_fma.ptx.gz"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := compiled.Unpack(file)
	if err != nil {
		t.Fatal(err)
	}
	want := " nvcc -ptx -arch=compute_80 -O3 --std=c++17 -Ipeak -Icompiled/peak -Iinclude -DKIND=3 -DWIDTH=16 peak/kernel.cu\n"
	if string(text) != want {
		t.Errorf("compiled by %q, want %q", text, want)
	}

	age(t, dir)
	put(t, dir, "shaders/peak/matrix.comp", "void main() {}")
	put(t, dir, "shaders/compiled/peak/params.h", "// by hand")
	put(t, dir, "shaders/compiled/peak/old.spv.gz", "from a variant that is gone")
	age(t, dir)
	if err := run(context.Background(), false, ""); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	got := changed(t, dir)
	if want := []string{"shaders/compiled/lock.json", "shaders/compiled/peak/params.h", "shaders/compiled/peak/vulkan_matrix.spv.gz", "shaders/compiled/peak/vulkan_matrix_s8.spv.gz"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if _, err := os.Stat("compiled/peak/old.spv.gz"); err == nil {
		t.Error("a blob that no variant names is still there")
	}

	age(t, dir)
	if err := run(context.Background(), false, ""); err != nil {
		t.Fatal(err)
	}
	if got := changed(t, dir); len(got) > 0 {
		t.Errorf("with nothing stale, wrote %q", got)
	}
}

// A broken source is reported; the others are compiled.
func TestGenerateBroken(t *testing.T) {
	dir := workspace(t)
	put(t, dir, "shaders/peak/matrix.comp", "BROKEN")
	put(t, dir, "shaders/peak/kernel.comp", "void main() {}")
	age(t, dir)
	err := run(context.Background(), false, "peak")
	if err == nil || !strings.Contains(err.Error(), "peak/matrix.comp:1: broken") {
		t.Errorf("error %v", err)
	}
	want := []string{"shaders/compiled/lock.json", "shaders/compiled/peak/vulkan_copy.spv.gz", "shaders/compiled/peak/vulkan_fma.spv.gz", "shaders/compiled/peak/vulkan_fma_f64.spv.gz", "shaders/compiled/peak/vulkan_read.spv.gz"}
	if got := changed(t, dir); !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if errs := shaderlock.Check(os.DirFS("."), shaders.All()); len(errs) != 2 || !strings.Contains(errs[0].Error(), "vulkan_matrix") || !strings.Contains(errs[1].Error(), "vulkan_matrix") {
		t.Errorf("stale: %v", errs)
	}
}

func TestGenerateRefuses(t *testing.T) {
	dir := workspace(t)
	if err := run(context.Background(), false, "none"); err == nil || !strings.Contains(err.Error(), "there are") {
		t.Errorf("an unknown kernel: %v", err)
	}
	put(t, dir, "shaders/peak/mine.spv", "")
	if err := run(context.Background(), false, ""); err == nil || !strings.Contains(err.Error(), "peak/mine.spv") {
		t.Errorf("a file that is not its own: %v", err)
	}
	t.Chdir("/")
	if err := run(context.Background(), false, ""); err == nil {
		t.Error("it runs outside the module")
	}
}

func TestCleanPTX(t *testing.T) {
	const text = "//\n// Compiler Build ID: CL-1\n//\n\n.version 8.4\n\t// .globl\tk\n" +
		"call _ZN35_INTERNAL_0a06c562_9_scalar_cu_cvse4workEv; // why\n" +
		"call _ZN47_GLOBAL__N__1234abcd_9_kernel_cu_cvse4workEv, 0x0a06c562;\n"
	const want = ".version 8.4\n" +
		"call _ZN35_INTERNAL_00000000_9_scalar_cu_cvse4workEv; // why\n" +
		"call _ZN47_GLOBAL__N__00000000_9_kernel_cu_cvse4workEv, 0x0a06c562;\n"
	if got := string(cleanPTX([]byte(text))); got != want {
		t.Errorf("cleaned to %q, want %q", got, want)
	}
}
