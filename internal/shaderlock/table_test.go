// What must not differ between a kernel's table and its code.

package shaderlock_test

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders/compiled"
	"github.com/spmmrun/spmm/shaders/peak"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Kernel peak has code of every kind. Its table fits its code; a table that differs in one place must not.
func TestCheckVariantFindsWhatDiffers(t *testing.T) {
	all := []string{"cuda_copy", "vulkan_copy", "vulkan_matrix_16x8x16_sub32", "webgpu_copy"}
	for _, c := range []struct {
		name     string
		variants []string // that must fail
		change   func(k *spec.Program, v *spec.Variant)
	}{
		{"nothing", nil, func(*spec.Program, *spec.Variant) {}},
		{"more invocations", []string{"cuda_copy", "vulkan_copy"}, func(_ *spec.Program, v *spec.Variant) {
			if v.Matrix {
				return // they are a constant there
			}
			v.Local[0] *= 2
		}},
		{"an argument more", []string{"cuda_copy", "vulkan_copy", "vulkan_matrix_16x8x16_sub32"},
			func(k *spec.Program, _ *spec.Variant) {
				k.Args = append(k.Args, spec.Arg{Name: "more", Elem: "u32"})
			}},
		{"a parameter less", []string{"cuda_copy", "vulkan_copy", "vulkan_matrix_16x8x16_sub32"},
			func(k *spec.Program, _ *spec.Variant) {
				k.Params = k.Params[:1]
			}},
		{"too many arguments", all, func(k *spec.Program, _ *spec.Variant) {
			k.Args = append(k.Args, make([]spec.Arg, backend.MaxArgs)...)
		}},
		{"another entry point", all, func(_ *spec.Program, v *spec.Variant) { v.Entry = "other" }},
		{"a constant more", []string{"vulkan_copy", "vulkan_matrix_16x8x16_sub32"}, func(_ *spec.Program, v *spec.Variant) {
			v.Consts = append(v.Consts, spec.Const{Name: "MORE", ID: 7})
		}},
		{"matrices", []string{"vulkan_copy", "vulkan_matrix_16x8x16_sub32"},
			func(_ *spec.Program, v *spec.Variant) { v.Matrix = !v.Matrix }},
		{"a lesser architecture", []string{"cuda_copy"}, func(_ *spec.Program, v *spec.Variant) { v.Need.Arch = 75 }},
		{"an exact architecture", []string{"cuda_copy"}, func(_ *spec.Program, v *spec.Variant) { v.Need.Exact = true }},
		{"no such file", all, func(_ *spec.Program, v *spec.Variant) { v.Unit.Blob, v.Unit.Source = "znone", "none" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustFail := map[string]bool{}
			for _, n := range c.variants {
				mustFail[n] = true
			}
			for _, v := range peak.Program.Variants {
				if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+v.Name+" ") {
					continue
				}
				k, v := *peak.Program, *v
				k.Args = append([]spec.Arg(nil), k.Args...)
				v.Consts = append([]spec.Const(nil), v.Consts...)
				c.change(&k, &v)
				if errs := shaderlock.CheckVariant(&k, &v); (len(errs) > 0) != mustFail[v.Name] {
					t.Errorf("%s: %v", v.Name, errs)
				}
				delete(mustFail, v.Name)
			}
			for n := range mustFail {
				t.Errorf("no variant %s", n)
			}
		})
	}
}

func TestCheckWGSL(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"@compute @workgroup_size(8, 4, 1)\nfn main(@builtin(local_invocation_index) i: u32) {}", true},
		{"@workgroup_size(8u, 4) @compute fn main() {}", true},
		{"@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}}) fn main() {}", true},
		{"fn help() {} @compute @workgroup_size(8, 4, 1) fn main() { let x = 1; }", true},
		{"@compute @workgroup_size(8, 8) fn main() {}", false},
		{"@compute @workgroup_size(8, 4, 1) fn other() {}", false},
		{"@compute @workgroup_size(8, 4, N) fn main() {}", false},
		{"@compute @workgroup_size(8, 4, 1, 1) fn main() {}", false},
		{"fn main() {}", false},
		{"", false},
	} {
		k := &spec.Program{Name: "toy", Files: fstest.MapFS{"kernel.wgsl": {Data: []byte(c.text)}}}
		v := &spec.Variant{Code: backend.CodeWGSL, Entry: "main", Local: [3]uint32{8, 4, 1},
			Unit: spec.Unit{Source: "kernel.wgsl"}}
		if errs := shaderlock.CheckVariant(k, v); (len(errs) == 0) != c.ok {
			t.Errorf("%s: %v", c.text, errs)
		}
	}
}

func TestReadPTX(t *testing.T) {
	const text = `.version 8.4
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 tiles[];
.visible .entry first(
	.param .u64 first_param_0
)
.reqntid 64
{
	ret;
}
.visible .entry second(
	.param .u64 .ptr .global .align 16 second_param_0,
	.param .u32 second_param_1,
	.param .align 4 .b8 second_param_2[24]
)
.maxntid 32, 4, 2
.minnctapersm 2
{
	ret;
}
.entry third() { ret; }
`
	for _, c := range []struct {
		entry   string
		params  []int
		threads uint32
	}{
		{"first", []int{8}, 64},
		{"second", []int{8, 4, 24}, 256},
		{"third", nil, 0},
	} {
		p, err := shaderlock.ReadPTX([]byte(text), c.entry)
		if err != nil {
			t.Errorf("%s: %v", c.entry, err)
			continue
		}
		want := &shaderlock.PTX{Version: "8.4", Target: "sm_90a", Entries: []string{"first", "second", "third"},
			Entry: c.entry, Params: c.params, Threads: c.threads}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s: %+v, want %+v", c.entry, p, want)
		}
	}
	for _, bad := range []string{"", "text", strings.Replace(text, ".version", "version", 1),
		strings.Replace(text, ".u32 second", "u32 second", 1),
		strings.Replace(text, "32, 4", "99999, 4", 1)} {
		if p, err := shaderlock.ReadPTX([]byte(bad), "second"); err == nil {
			t.Errorf("%q is read as %+v", bad, p)
		}
	}
	if _, err := shaderlock.ReadPTX([]byte(text), "fourth"); err == nil ||
		!strings.Contains(err.Error(), "first, second, third") {
		t.Errorf("an absent entry: %v", err)
	}
}

// A damaged module is an error or something, never a panic.
func TestReadSPIRVDamaged(t *testing.T) {
	whole, err := compiled.Read("peak", "vulkan_matrix.spv")
	if err != nil {
		t.Fatal(err)
	}
	m, err := shaderlock.ReadSPIRV(whole)
	if err != nil {
		t.Fatal(err)
	}
	if m.Entry != "main" || !m.Matrix || len(m.Spec) != 4 || m.PushBytes != 24 ||
		m.Local(map[uint32]uint32{0: 64}) != [3]uint32{64, 1, 1} {
		t.Errorf("read as %+v", m)
	}
	for n := range len(whole) {
		if _, err := shaderlock.ReadSPIRV(whole[:n]); err == nil && n%4 != 0 {
			t.Errorf("the first %d bytes are read", n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := append([]byte(nil), whole...)
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			at := rapid.IntRange(5, len(b)/4-1).Draw(t, "word")
			binary.LittleEndian.PutUint32(b[4*at:], rapid.Uint32().Draw(t, "value"))
		}
		_, _ = shaderlock.ReadSPIRV(b)
	})
}
