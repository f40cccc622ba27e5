// Package shaderlock knows what each compiled kernel is made from. tools/shadergen compiles by it and
// records hashes in shaders/compiled/KERNEL.lock; a test in shaders holds sources, tables and blobs against
// these records without a compiler.
package shaderlock

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Generated is the folder of all that shadergen writes.
const Generated = "compiled"

// Names of the declarations that are composed from a kernel's table, and of the folder that all sources may include
// from.
const (
	preludeCUDA = "params.h"
	preludeGLSL = "params.glsl"
	includes    = "include"
)

// Unit is one blob and what it is compiled from. Paths are relative to the folder shaders.
type Unit struct {
	Folder   string // the kernel's
	Source   string // path of the source
	Blob     string // the blob's name, such as "cuda_f16.ptx"
	Code     backend.Code
	Flags    []string // for the compiler, but for -D and -I
	Target   string   // of SPIR-V: "vulkan1.2"
	Defines  []string // NAME=VALUE, sorted
	Variants []*spec.Variant

	declarations map[string]string // Declarations of the kernel
}

// Units returns a kernel's blobs, each once. The constants of a unit are the Unit's Defines and those
// constants of the table that are not specialisation constants, if all its variants agree on them.
func Units(k *spec.Program) ([]*Unit, error) {
	byBlob := map[string][]*spec.Variant{}
	for _, v := range k.Forms() {
		if v.Code != backend.CodePTX && v.Code != backend.CodeSPIRV {
			continue
		}
		if v.Unit.Blob == "" || v.Unit.Source == "" {
			return nil, fmt.Errorf("kernel %s/%s: names no source or no blob", k.Name, v.Name)
		}
		byBlob[v.Unit.Blob] = append(byBlob[v.Unit.Blob], v)
	}
	var us []*Unit
	for _, blob := range slices.Sorted(maps.Keys(byBlob)) {
		u, err := newUnit(k, byBlob[blob])
		if err != nil {
			return nil, fmt.Errorf("kernel %s: blob %s: %w", k.Name, blob, err)
		}
		us = append(us, u)
	}
	return us, nil
}

func newUnit(k *spec.Program, vs []*spec.Variant) (*Unit, error) {
	first := vs[0]
	defines := constants(first)
	for _, v := range vs[1:] {
		if v.Code != first.Code || v.Unit.Source != first.Unit.Source || v.Unit.Arch != first.Unit.Arch ||
			v.Matrix != first.Matrix || !maps.Equal(v.Unit.Defines, first.Unit.Defines) {
			return nil, fmt.Errorf("variants %s and %s are compiled from different things", first.Name, v.Name)
		}
		other := constants(v)
		maps.DeleteFunc(defines, func(name, value string) bool { return other[name] != value })
	}
	for name, value := range first.Unit.Defines {
		if c, ok := defines[name]; ok && c != value {
			return nil, fmt.Errorf("%s is %s as a constant and %s as a define", name, c, value)
		}
		defines[name] = value
	}
	u := &Unit{
		Folder: k.Name, Source: path.Join(k.Name, first.Unit.Source), Blob: first.Unit.Blob, Code: first.Code,
		Variants: vs, declarations: Declarations(k),
	}
	for name, value := range defines {
		u.Defines = append(u.Defines, name+"="+value)
	}
	slices.Sort(u.Defines)
	if u.Code == backend.CodePTX {
		u.Flags = []string{"-ptx", "-arch=" + first.Unit.Arch, "-O3", "--std=c++17"}
		return u, nil
	}
	u.Target = "vulkan1.2"
	if first.Matrix { // cooperative matrices need SPIR-V 1.6
		u.Target = "vulkan1.3"
	}
	u.Flags = []string{"-V", "--target-env", u.Target, "-g0"}
	return u, nil
}

// constants returns a variant's constants that are not specialisation constants.
func constants(v *spec.Variant) map[string]string {
	m := map[string]string{}
	for _, c := range v.Consts {
		if v.Code == backend.CodePTX || c.ID < 0 {
			m[c.Name] = strconv.FormatUint(uint64(c.Value), 10)
		}
	}
	return m
}

// String names the blob in messages.
func (u *Unit) String() string { return path.Join(u.Folder, u.Blob) }

// Includes returns the folders that a unit's source includes from. The second holds the kernel's Declarations and is in
// no tree.
func (u *Unit) Includes() []string {
	return []string{u.Folder, path.Join(Generated, u.Folder), includes}
}

// Declarations returns what the sources of a kernel include that is composed from its table, by path: a file for each
// language that it is compiled from.
func Declarations(k *spec.Program) map[string]string {
	dir, files := path.Join(Generated, k.Name), map[string]string{}
	for _, v := range k.Forms() {
		switch v.Code {
		case backend.CodePTX:
			files[path.Join(dir, preludeCUDA)] = k.CUDA()
		case backend.CodeSPIRV:
			files[path.Join(dir, preludeGLSL)] = k.GLSL()
		}
	}
	return files
}
