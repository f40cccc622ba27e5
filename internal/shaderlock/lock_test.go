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

// toy is a kernel of two blobs; two variants share one of them.
func toy() *spec.Program {
	cuda := spec.Unit{Source: "kernel.cu", Blob: "cuda.ptx", Arch: "compute_80",
		Defines: map[string]string{"TYPE": "half"}}
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
	made := shaderlock.Kernel{Lock: shaderlock.Lock{}, Blobs: map[string][]byte{"cuda.ptx": []byte("ptx"),
		"vulkan.spv": []byte("spirv")}}
	for _, u := range units(t, k) {
		e, err := shaderlock.NewEntry(fsys, u, "compiler 1")
		if err != nil {
			t.Fatal(err)
		}
		made.Lock[u.Blob] = e.For(made.Blobs[u.Blob])
	}
	write(t, fsys, made)
	return fsys
}

func units(t *testing.T, k *spec.Program) []*shaderlock.Unit {
	t.Helper()
	us, err := shaderlock.Units(k)
	if err != nil {
		t.Fatal(err)
	}
	return us
}

// write puts what is generated of toy into its tree.
func write(t *testing.T, fsys fstest.MapFS, made shaderlock.Kernel) {
	t.Helper()
	files, err := made.Files(units(t, toy()))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data}
	}
}

// Where toy's blobs and its record lie.
const (
	archive = "compiled/toy.tar.zst"
	lock    = "compiled/toy.lock"
)

func TestCheckFindsWhatChanged(t *testing.T) {
	edit := func(name string) func(fstest.MapFS, *spec.Program) {
		return func(f fstest.MapFS, _ *spec.Program) {
			f[name] = &fstest.MapFile{Data: append(slices.Clone(f[name].Data), "edited\n"...)}
		}
	}
	// generated changes the blobs, or their record alone, and puts them into the tree again.
	generated := func(change func(shaderlock.Kernel)) func(fstest.MapFS, *spec.Program) {
		return func(f fstest.MapFS, _ *spec.Program) {
			made, err := shaderlock.Read(f, "toy")
			if err != nil {
				t.Fatal(err)
			}
			change(made)
			write(t, f, made)
		}
	}
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS, *spec.Program)
		want   []string // what the errors say, each of them once
	}{
		{"nothing", func(fstest.MapFS, *spec.Program) {}, nil},
		{"a file that nothing includes", edit("toy/other.glsl"), nil},
		{"comments, spaces and line breaks", func(f fstest.MapFS, _ *spec.Program) {
			for name, file := range f {
				if !strings.HasPrefix(name, "compiled/") {
					file.Data = append([]byte("// edited\n\n"), strings.ReplaceAll(string(file.Data), "\n", " /* edited */ \n")...)
				}
			}
		}, nil},
		{"a source", edit("toy/kernel.cu"), []string{"toy/cuda.ptx: its source"}},
		{"an include", edit("toy/tile.cuh"), []string{"toy/cuda.ptx: its source"}},
		{"an include's include", edit("include/deep.cuh"), []string{"toy/cuda.ptx: its source"}},
		{"a common include", edit("include/bits.glsl"), []string{"toy/vulkan.spv: its source"}},
		{"a blob", generated(func(k shaderlock.Kernel) { k.Blobs["vulkan.spv"] = []byte("other") }),
			[]string{"toy/vulkan.spv: was changed"}},
		{"a damaged archive", edit(archive), []string{archive + ": 7 bytes follow"}},
		{"a parameter", func(_ fstest.MapFS, k *spec.Program) { k.Params[0].Name = "m" },
			[]string{"toy/cuda.ptx: its source", "toy/vulkan.spv: its source"}},
		{"an argument", func(_ fstest.MapFS, k *spec.Program) { k.Args[0].Name = "from" },
			[]string{"toy/vulkan.spv: its source"}}, // CUDA's sources declare theirs
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
			[]string{archive + ": holds cuda.ptx", lock + ": records cuda.ptx"}},
		{"a lost blob", generated(func(k shaderlock.Kernel) { delete(k.Blobs, "cuda.ptx") }),
			[]string{"toy/cuda.ptx: is not in " + archive}},
		{"a lost archive", func(f fstest.MapFS, _ *spec.Program) { delete(f, archive) },
			[]string{"toy/cuda.ptx: is not in", "toy/vulkan.spv: is not in"}},
		{"a stray blob", func(f fstest.MapFS, _ *spec.Program) { f["toy/new.spv"] = &fstest.MapFile{} },
			[]string{"toy/new.spv: no variant"}},
		{"an archive of a kernel that is gone",
			func(f fstest.MapFS, _ *spec.Program) { f["compiled/old.tar.zst"] = &fstest.MapFile{} },
			[]string{"old.tar.zst: no variant"}},
		{"a record of a kernel that is gone",
			func(f fstest.MapFS, _ *spec.Program) { f["compiled/old.lock"] = &fstest.MapFile{} },
			[]string{"old.lock: no variant"}},
		{"a blob beside the archives",
			func(f fstest.MapFS, _ *spec.Program) { f["compiled/toy/cuda.ptx.gz"] = &fstest.MapFile{} },
			[]string{"toy/cuda.ptx.gz: no variant"}},
		{"a lost entry", generated(func(k shaderlock.Kernel) { delete(k.Lock, "cuda.ptx") }),
			[]string{"toy/cuda.ptx: never recorded"}},
		{"a lost record", func(f fstest.MapFS, _ *spec.Program) { delete(f, lock) },
			[]string{"toy/cuda.ptx: never recorded", "toy/vulkan.spv: never recorded"}},
		{"a broken record", func(f fstest.MapFS, _ *spec.Program) { f[lock] = &fstest.MapFile{Data: []byte("cuda.ptx 12\n")} },
			[]string{lock + `: "cuda.ptx 12\n" is not`}},
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
	got := map[string]string{}
	for _, u := range units(t, toy()) {
		got[u.String()] = strings.Join(u.Defines, " ")
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
