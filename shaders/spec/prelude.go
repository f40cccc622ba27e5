// What a kernel's sources get from its table: argument and parameter declarations in each language.
// tools/shadergen compiles with the CUDA and GLSL texts; WGSL is composed when it is loaded.

package spec

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/compiled"
)

// CUDA returns the header params.h: struct Params.
func (k *Program) CUDA() string {
	var b strings.Builder
	b.WriteString("// Generated from the kernel's table. Do not edit.\n#pragma once\nstruct Params {\n")
	for _, p := range k.Params {
		fmt.Fprintf(&b, "    %s %s;\n", pick(p.Float, "float", "unsigned int"), p.Name)
	}
	b.WriteString(k.scalars("unsigned int"))
	b.WriteString("};\n")
	return b.String()
}

// GLSL returns params.glsl: a buffer reference type Arg_NAME per argument, whose elements are .v[],
// and the push constant block p holding the references and the parameters. The including source
// defines ELEM_T, the element type of "T" arguments.
func (k *Program) GLSL() string {
	var b strings.Builder
	b.WriteString("// Generated from the kernel's table. Do not edit.\n")
	b.WriteString("#extension GL_EXT_buffer_reference : require\n#extension GL_EXT_buffer_reference2 : require\n")
	for _, a := range k.Args {
		elem := map[string]string{"u32": "uint", "f32": "float", "T": "ELEM_T"}[a.Elem]
		fmt.Fprintf(&b, "layout(buffer_reference, std430, buffer_reference_align = 16) %sbuffer Arg_%s { %s v[]; };\n",
			pick(a.ReadOnly, "readonly ", ""), a.Name, elem)
	}
	b.WriteString("layout(push_constant, std430) uniform Push {\n")
	for _, a := range k.Args {
		fmt.Fprintf(&b, "    Arg_%s %s;\n", a.Name, a.Name)
	}
	for _, p := range k.Params {
		fmt.Fprintf(&b, "    %s %s;\n", pick(p.Float, "float", "uint"), p.Name)
	}
	b.WriteString(k.scalars("uint"))
	b.WriteString("} p;\n")
	return b.String()
}

// scalars declares what variants of F64 have behind their parameters, in sources compiled with DOUBLE: see ScalarBytes.
func (k *Program) scalars(word string) string {
	if !slices.ContainsFunc(k.Variants, func(v *Variant) bool { return v.In == dtype.F64 && v.Code != backend.CodeGo }) {
		return ""
	}
	var b strings.Builder
	b.WriteString("#ifdef DOUBLE\n")
	for _, name := range []string{"alpha_low", "alpha_high", "beta_low", "beta_high"} {
		fmt.Fprintf(&b, "    %s %s;\n", word, name)
	}
	b.WriteString("#endif\n")
	return b.String()
}

// WGSL returns the bindings, as arrays of u32 (f32 for "f32" arguments), and the uniform block p.
func (k *Program) WGSL() string {
	var b strings.Builder
	for i, a := range k.Args {
		fmt.Fprintf(&b, "@group(0) @binding(%d) var<storage, %s> %s: array<%s>;\n",
			i, pick(a.ReadOnly, "read", "read_write"), a.Name, pick(a.Elem == "f32", "f32", "u32"))
	}
	b.WriteString("struct Params {\n")
	for _, p := range k.Params {
		fmt.Fprintf(&b, "    %s: %s,\n", p.Name, pick(p.Float, "f32", "u32"))
	}
	for i := len(k.Params); i%4 != 0; i++ {
		fmt.Fprintf(&b, "    pad%d: u32,\n", i)
	}
	fmt.Fprintf(&b, "}\n@group(0) @binding(%d) var<uniform> p: Params;\n", len(k.Args))
	return b.String()
}

func pick(c bool, a, b string) string {
	if c {
		return a
	}
	return b
}

// Binary returns a variant's code as a device loads it.
func (k *Program) Binary(v *Variant) (backend.Binary, error) {
	b := backend.Binary{
		Name: k.Name + "/" + v.Name, Kind: v.Code, Entry: v.Entry, Func: v.Func,
		Args: len(k.Args), ParamBytes: 4 * len(k.Params), Maps: v.Maps, Local: v.Local, Shared: v.Shared,
		Subgroup: v.Sub, Matrix: v.Matrix,
	}
	for i, a := range k.Args {
		if a.ReadOnly {
			b.ReadOnly |= 1 << i
		}
	}
	if v.In == dtype.F64 {
		b.ParamBytes += ScalarBytes
	}
	if v.Workspace {
		b.Args++
	}
	if v.Overlaps {
		b.Early = max(1, uint32(1)<<k.Arg("b")-1)
	}
	for _, c := range v.Consts {
		if c.ID >= 0 {
			b.Spec = append(b.Spec, backend.SpecConst{ID: uint32(c.ID), Value: c.Value})
		}
	}
	var err error
	switch v.Code {
	case backend.CodeWGSL:
		b.Code, err = k.composeWGSL(v)
	case backend.CodePTX, backend.CodeSPIRV:
		b.Code, err = compiled.Read(k.Name, v.Unit.Blob)
	}
	if err != nil {
		return b, fmt.Errorf("kernel %s: %w", b.Name, err)
	}
	return b, nil
}

// composeWGSL fills the source, a text/template, with the variant's constants and defines, and puts the declarations
// before it. A define may be a template itself. (Text, because naga of 2023 has neither overrides nor constant
// expressions in array sizes.)
func (k *Program) composeWGSL(v *Variant) ([]byte, error) {
	src, err := fs.ReadFile(k.Files, v.Unit.Source)
	if err != nil {
		return nil, err
	}
	t, err := template.New(v.Unit.Source).Option("missingkey=error").Parse(string(src))
	if err != nil {
		return nil, err
	}
	data := map[string]any{"LX": v.Local[0], "LY": v.Local[1], "LZ": v.Local[2]}
	for _, c := range v.Consts {
		data[c.Name] = c.Value
	}
	for n, s := range maps.All(v.Unit.Defines) {
		data[n] = s
		if _, err := t.New(n).Parse(s); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	b.WriteString(k.WGSL())
	if err := t.Execute(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
