// What a lock must notice.

package shaderlock_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders/spec"
)

// toy is a kernel of two blobs, one of which two variants share.
func toy() *spec.Program {
	cuda := spec.Unit{Source: "kernel.cu", Blob: "cuda.ptx", Arch: "compute_80", Defines: map[string]string{"TYPE": "half"}}
	glsl := spec.Unit{Source: "kernel.comp", Blob: "vulkan.spv"}
	tile := func(id int, n uint32) []spec.Const {
		return []spec.Const{{Name: "TILE", ID: id, Value: n}, {Name: "WIDTH", ID: -1, Value: 4}}
	}
	return &spec.Program{
		Name:   "toy",
		Args:   []spec.Arg{{Name: "src", Elem: "f32", ReadOnly: true}, {Name: "dst", Elem: "f32"}},
		Params: []spec.Param{{Name: "n"}},
		Variants: []*spec.Variant{
			{Name: "cuda", Code: backend.CodePTX, Unit: cuda, Consts: tile(0, 64)},
			{Name: "vulkan64", Code: backend.CodeSPIRV, Unit: glsl, Consts: tile(0, 64)},
			{Name: "vulkan32", Code: backend.CodeSPIRV, Unit: glsl, Consts: tile(0, 32)},
			{Name: "go", Code: backend.CodeGo},
		},
	}
}

// tree is the folder shaders of toy, up to date.
func tree(t *testing.T) fstest.MapFS {
	t.Helper()
	k := toy()
	fsys := fstest.MapFS{}
	put := func(name, text string) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }
	put("toy/kernel.cu", "#include <cuda_fp16.h>\n  # include \"params.h\"\n#include \"tile.cuh\"\n")
	put("toy/kernel.comp", "#include \"params.glsl\"\n#include \"bits.glsl\"\n")
	put("toy/tile.cuh", "#include \"deep.cuh\"\n")
	put("include/deep.cuh", "// deep\n")
	put("include/bits.glsl", "// bits\n")
	put("toy/other.glsl", "// not included\n")
	blobs := map[string]string{"toy/cuda.ptx": "ptx", "toy/vulkan.spv": "spirv"}
	for name, text := range blobs {
		put(file(name), packed(t, text))
	}
	for name, text := range shaderlock.Preludes(k) {
		put(name, text)
	}
	lock := shaderlock.Lock{}
	us, err := shaderlock.Units(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range us {
		e, err := shaderlock.NewEntry(fsys, u, "compiler 1")
		if err != nil {
			t.Fatal(err)
		}
		lock[u.Blob] = e.For([]byte(blobs[u.Blob]))
	}
	b, err := lock.Format()
	if err != nil {
		t.Fatal(err)
	}
	put(shaderlock.File, string(b))
	return fsys
}

// file is where a blob of toy lies.
func file(blob string) string { return "compiled/" + blob + ".gz" }

func packed(t *testing.T, text string) string {
	t.Helper()
	b, err := shaderlock.Pack([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheckFindsWhatChanged(t *testing.T) {
	edit := func(name string) func(fstest.MapFS, *spec.Program) {
		return func(f fstest.MapFS, _ *spec.Program) {
			f[name] = &fstest.MapFile{Data: append(slices.Clone(f[name].Data), "// edited\n"...)}
		}
	}
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS, *spec.Program)
		want   []string // what the errors say, each of them once
	}{
		{"nothing", func(fstest.MapFS, *spec.Program) {}, nil},
		{"a file that nothing includes", edit("toy/other.glsl"), nil},
		{"a source", edit("toy/kernel.cu"), []string{"toy/cuda.ptx: its source"}},
		{"an include", edit("toy/tile.cuh"), []string{"toy/cuda.ptx: its source"}},
		{"an include's include", edit("include/deep.cuh"), []string{"toy/cuda.ptx: its source"}},
		{"a common include", edit("include/bits.glsl"), []string{"toy/vulkan.spv: its source"}},
		{"a blob", func(f fstest.MapFS, _ *spec.Program) { f[file("toy/vulkan.spv")].Data = []byte(packed(t, "other")) },
			[]string{"toy/vulkan.spv: was changed"}},
		{"a damaged blob", func(f fstest.MapFS, _ *spec.Program) { f[file("toy/vulkan.spv")].Data = []byte("spirv") },
			[]string{"toy/vulkan.spv: not compressed by gzip"}},
		{"a prelude", edit("compiled/toy/params.h"), []string{"toy/params.h: differs", "toy/cuda.ptx: its source"}},
		{"a parameter", func(_ fstest.MapFS, k *spec.Program) { k.Params[0].Name = "m" },
			[]string{"toy/params.h: differs", "toy/params.glsl: differs"}},
		{"a define", func(_ fstest.MapFS, k *spec.Program) { k.Variants[0].Unit.Defines["TYPE"] = "float" },
			[]string{"toy/cuda.ptx: its source"}},
		{"a constant", func(_ fstest.MapFS, k *spec.Program) { k.Variants[0].Consts[0].Value = 128 },
			[]string{"toy/cuda.ptx: its source"}},
		{"a specialisation constant", func(_ fstest.MapFS, k *spec.Program) { k.Variants[1].Consts[0].Value = 128 }, nil},
		{"an architecture", func(_ fstest.MapFS, k *spec.Program) { k.Variants[0].Unit.Arch = "compute_90a" },
			[]string{"toy/cuda.ptx: its source"}},
		{"matrices", func(_ fstest.MapFS, k *spec.Program) { k.Variants[1].Matrix, k.Variants[2].Matrix = true, true },
			[]string{"toy/vulkan.spv: its source"}},
		{"a new variant", func(_ fstest.MapFS, k *spec.Program) {
			v := *k.Variants[0]
			v.Name, v.Unit.Blob = "cuda2", "cuda2.ptx"
			k.Variants = append(k.Variants, &v)
		}, []string{"toy/cuda2.ptx: never recorded"}},
		{"a dropped variant", func(_ fstest.MapFS, k *spec.Program) { k.Variants = k.Variants[1:] },
			[]string{"toy/cuda.ptx.gz: no variant", "toy/cuda.ptx: recorded in"}},
		{"a lost blob", func(f fstest.MapFS, _ *spec.Program) { delete(f, file("toy/cuda.ptx")) },
			[]string{"toy/cuda.ptx: compiled/toy/cuda.ptx.gz: file does not exist"}},
		{"a stray blob", func(f fstest.MapFS, _ *spec.Program) { f["toy/new.spv"] = &fstest.MapFile{} },
			[]string{"toy/new.spv: no variant"}},
		{"a blob of a kernel that is gone", func(f fstest.MapFS, _ *spec.Program) { f[file("old/new.spv")] = &fstest.MapFile{} },
			[]string{"old/new.spv.gz: no variant"}},
		{"a lost record", func(f fstest.MapFS, _ *spec.Program) { delete(f, shaderlock.File) },
			[]string{"toy/cuda.ptx: never recorded", "toy/vulkan.spv: never recorded"}},
		{"a broken record", func(f fstest.MapFS, _ *spec.Program) { f[shaderlock.File] = &fstest.MapFile{Data: []byte("{")} },
			[]string{"compiled/lock.json: unexpected end"}},
		{"another unit for the same blob", func(_ fstest.MapFS, k *spec.Program) { k.Variants[2].Unit.Source = "kernel2.comp" },
			[]string{"variants vulkan64 and vulkan32 are compiled from different things"}},
		{"a define that is another constant", func(_ fstest.MapFS, k *spec.Program) {
			k.Variants[0].Unit.Defines = map[string]string{"TILE": "1"}
		}, []string{"TILE is 64 as a constant and 1 as a define"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys, k := tree(t), toy()
			c.change(fsys, k)
			var text strings.Builder
			for _, err := range shaderlock.Check(fsys, []*spec.Program{k}) {
				text.WriteString(strings.Replace(err.Error(), "open ", "", 1) + "\n")
			}
			got := text.String()
			if (got == "") != (len(c.want) == 0) {
				t.Fatalf("found:\n%swant %q", got, c.want)
			}
			for _, w := range c.want {
				if strings.Count(got, w) != 1 {
					t.Errorf("found:\n%swant %q once", got, w)
				}
			}
		})
	}
}

func TestUnitsShareConstants(t *testing.T) {
	us, err := shaderlock.Units(toy())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, u := range us {
		got[u.Blob] = strings.Join(u.Defines, " ")
	}
	want := map[string]string{"toy/cuda.ptx": "TILE=64 TYPE=half WIDTH=4", "toy/vulkan.spv": "WIDTH=4"}
	if !maps.Equal(got, want) {
		t.Errorf("defines are %v, want %v", got, want)
	}
}

// A kernel that is written in Go alone has nothing generated.
func TestGoAlone(t *testing.T) {
	k := toy()
	k.Variants = slices.DeleteFunc(k.Variants, func(v *spec.Variant) bool { return v.Code != backend.CodeGo })
	if errs := shaderlock.Check(fstest.MapFS{}, []*spec.Program{k}); len(errs) > 0 {
		t.Error(errs)
	}
}
