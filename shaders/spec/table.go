// What most lines of a program's table say: its arguments, and variants that have a source and a blob of their own.

package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
)

// Args returns arguments, each written as its name and its contents, "src u32"; those that are not only read say so:
// "dst u32 written".
func Args(list ...string) []Arg {
	args := make([]Arg, len(list))
	for i, s := range list {
		words := append(strings.Fields(s), "")
		if len(words) < 3 || words[2] != "" && words[2] != "written" {
			panic(fmt.Sprintf("spec: argument %q is not a name and what it holds", s))
		}
		args[i] = Arg{Name: words[0], Elem: words[1], ReadOnly: words[2] == ""}
	}
	return args
}

// FormatArgs returns the arguments of a format's program: its arrays that are only read, then "b", "bias" and "c", then
// its arrays that are written. The arrays are given as in Args.
func FormatArgs(list ...string) []Arg {
	args := Args(list...)
	n := slices.IndexFunc(append(args, Arg{}), func(a Arg) bool { return !a.ReadOnly })
	return slices.Insert(args, n, Args("b T", "bias f32", "c f32 written")...)
}

// First returns the first variant of a type that a device runs. The error wraps ErrUnsupported if there is none.
func (k *Program) First(caps backend.Caps, in dtype.Type) (*Variant, error) {
	for _, v := range k.Variants {
		if v.In == in && v.Met(caps) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("kernel %s: the device runs none of its variants for %v: %w", k.Name, in,
		backend.ErrUnsupported)
}

// Line is a workgroup of n invocations in a line.
func Line(n uint32) [3]uint32 { return [3]uint32{n, 1, 1} }

// PTX completes a variant of CUDA C++: of f32, from kernel.cu, for compute capability 8.0, unless it says otherwise.
func PTX(name string, v Variant) *Variant {
	v.Need.Arch, v.Need.Shared = cmp.Or(v.Need.Arch, 80), max(v.Need.Shared, v.Shared)
	v.Unit.Arch = fmt.Sprintf("compute_%d", v.Need.Arch)
	if v.Need.Exact {
		v.Unit.Arch += "a"
	}
	return complete(v, name, backend.CodePTX, "kernel.cu", name+".ptx")
}

// CUDA is PTX for a source that is told by -D what its function is called and which type its elements have.
func CUDA(name, entry string, t dtype.Type, v Variant) *Variant {
	v.In, v.Entry, v.Out = t, entry, []dtype.Type{dtype.F16, dtype.BF16}
	defines := map[string]string{"ENTRY": entry, "ELEM": include.Define(t)}
	maps.Copy(defines, v.Unit.Defines)
	v.Unit.Defines = defines
	return PTX(name, v)
}

// SPIRV completes a variant of GLSL: of f32, from kernel.comp, unless it says otherwise.
func SPIRV(name string, v Variant) *Variant {
	v.Entry = "main"
	return complete(v, name, backend.CodeSPIRV, "kernel.comp", name+".spv")
}

// WGSL completes a variant of WGSL: of f32, from kernel.wgsl, unless it says otherwise.
func WGSL(name string, v Variant) *Variant {
	v.Entry = "main"
	return complete(v, name, backend.CodeWGSL, "kernel.wgsl", "")
}

// Go returns a variant of a type that is a Go function.
func Go(name string, in dtype.Type, f backend.GroupFunc, consts ...Const) *Variant {
	return &Variant{Name: name, In: in, Code: backend.CodeGo, Local: Line(1), Func: f, Consts: consts}
}

// CPU is Go for a function that writes C in 16 bits too.
func CPU(name string, in dtype.Type, f backend.GroupFunc, consts ...Const) *Variant {
	v := Go(name, in, f, consts...)
	v.Out = []dtype.Type{dtype.F16, dtype.BF16}
	return v
}

// GLSL is the compilation unit of a source for elements of a type, in a blob of its own.
func GLSL(source, blob string, t dtype.Type) Unit {
	return Unit{Source: source, Defines: map[string]string{"ELEM": include.Define(t)},
		Blob: blob + "_" + t.String() + ".spv"}
}

func complete(v Variant, name string, code backend.Code, source, blob string) *Variant {
	v.Name, v.Code, v.In = name, code, cmp.Or(v.In, dtype.F32)
	v.Unit.Source, v.Unit.Blob = cmp.Or(v.Unit.Source, source), cmp.Or(v.Unit.Blob, blob)
	return &v
}
