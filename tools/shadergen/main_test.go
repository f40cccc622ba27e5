// What is stale is compiled, nothing else, and a source that does not compile changes nothing.

//go:build unix

package main

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders"
)

// compiler stands in for tools/shaderc: it writes its arguments, but for the output's name and the folder of the
// declarations, which is another one each time, and the source's checksum. It fails on a source that says so.
const compiler = `#!/bin/sh
case "$*" in
*--version) echo "Build 1"; echo "Glslang Version: 1"; exit ;;
spirv-val*) exit ;;
esac
args=; out=
for a; do
	case $prev,$a in
	-o,*) out=$a ;;
	*,-o) ;;
	*,-I/*) args="$args -IDECLARED/${a#*/compiled/}" ;;
	*) args="$args $a" ;;
	esac
	prev=$a
done
if grep -q BROKEN "$a"; then echo "$a:1: broken"; exit 1; fi
printf '// by a compiler\n%s\n%s\n' "$args" "$(cksum <"$a")" >"$out"
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

// blobs returns what the working directory, shaders, has of a kernel.
func blobs(t *testing.T, kernel string) map[string][]byte {
	t.Helper()
	k, err := shaderlock.Read(os.DirFS("."), kernel)
	if err != nil {
		t.Fatal(err)
	}
	return k.Blobs
}

// differing returns the names of what is not in both maps or not the same.
func differing(a, b map[string][]byte) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] == nil || b[name] == nil || !bytes.Equal(a[name], b[name]) {
			names = append(names, name)
		}
	}
	return names
}

func TestGenerateOnlyWhatIsStale(t *testing.T) {
	dir := workspace(t)
	check(t, dir)
	before := blobs(t, "peak")
	want := " nvcc -ptx -arch=compute_80 -O3 --std=c++17 -Ipeak -IDECLARED/peak -Iinclude -DKIND=3 -DWIDTH=16 peak/kernel.cu\n"
	if got := string(before["cuda_fma.ptx"]); !strings.HasPrefix(got, want) {
		t.Errorf("compiled by %q, want %q", got, want)
	}

	put(t, dir, "shaders/peak/matrix.comp", "void main() {}")
	put(t, dir, "shaders/compiled/old.tar.zst", "of a kernel that is gone")
	put(t, dir, "shaders/compiled/densecopy.tar.zst", "damaged")
	age(t, dir)
	if err := run(context.Background(), false, ""); err != nil {
		t.Fatal(err)
	}
	check(t, dir)
	got := changed(t, dir)
	if want := []string{"shaders/compiled/densecopy.tar.zst", "shaders/compiled/peak.lock",
		"shaders/compiled/peak.tar.zst"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if got, want := differing(before, blobs(t, "peak")),
		[]string{"vulkan_matrix.spv", "vulkan_matrix_s8.spv"}; !slices.Equal(got, want) {
		t.Errorf("compiled %q, want %q", got, want)
	}
	if _, err := os.Stat("compiled/old.tar.zst"); err == nil {
		t.Error("an archive of no kernel is still there")
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
	before := blobs(t, "peak")
	age(t, dir)
	err := run(context.Background(), false, "peak")
	if err == nil || !strings.Contains(err.Error(), "peak/matrix.comp:1: broken") {
		t.Errorf("error %v", err)
	}
	if got, want := changed(t, dir),
		[]string{"shaders/compiled/peak.lock", "shaders/compiled/peak.tar.zst"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	want := []string{"vulkan_copy.spv", "vulkan_fma.spv", "vulkan_fma_f64.spv", "vulkan_read.spv"}
	if got := differing(before, blobs(t, "peak")); !slices.Equal(got, want) {
		t.Errorf("compiled %q, want %q", got, want)
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

// The declarations that an editor of a kernel asks for.
func TestPrintDeclarations(t *testing.T) {
	var b strings.Builder
	if err := printDeclarations(&b, "peak"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// params.h\n", "#pragma once\nstruct Params {\n", "// params.glsl\n", "uniform Push {\n",
		"// before the WGSL\n", "var<uniform> p: Params;\n"} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("printed %s\nwant %q once", &b, want)
		}
	}
	if err := printDeclarations(&b, "none"); err == nil || !strings.Contains(err.Error(), "there are") {
		t.Errorf("an unknown kernel: %v", err)
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
