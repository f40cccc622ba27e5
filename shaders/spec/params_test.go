// A struct's fields become declarations, a block, and the struct again.

package spec_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/shaders/spec"
)

type common struct {
	Rows, LDB uint32
	Alpha     float32
}

type params struct {
	common
	strip uint32
	scale float32
}

func TestParams(t *testing.T) {
	want := []spec.Param{{Name: "rows"}, {Name: "ldb"}, {Name: "alpha", Float: true}, {Name: "strip"},
		{Name: "scale", Float: true}}
	if got := spec.Params[params](); !slices.Equal(got, want) {
		t.Errorf("parameters are %v, want %v", got, want)
	}
	k := &spec.Program{Params: spec.Params[params]()}
	for _, c := range []struct{ text, want string }{
		{k.CUDA(), "struct Params {\n    unsigned int rows;\n    unsigned int ldb;\n    float alpha;\n    unsigned int strip;\n    float scale;\n};\n"},
		{k.GLSL(), "    uint rows;\n    uint ldb;\n    float alpha;\n    uint strip;\n    float scale;\n} p;\n"},
		{k.WGSL(), "    rows: u32,\n    ldb: u32,\n    alpha: f32,\n    strip: u32,\n    scale: f32,\n    pad5: u32,\n"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("declared as\n%s\nwant\n%s", c.text, c.want)
		}
	}
	for name, f := range map[string]func() []spec.Param{
		"an int":   spec.Params[struct{ n int }],
		"a uint64": spec.Params[struct{ n uint64 }],
		"a slice":  spec.Params[struct{ n []uint32 }],
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is accepted as a parameter", name)
				}
			}()
			f()
		}()
	}
}

// The block has 4 bytes a field, little-endian, and is read back as it was, also from a longer one.
func TestBlock(t *testing.T) {
	b := spec.Block(params{common: common{Rows: 0x04030201}, scale: 1})
	if want := []byte{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}; !slices.Equal(b, want) {
		t.Errorf("the block is %v, want %v", b, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := params{common{rapid.Uint32().Draw(t, "rows"), rapid.Uint32().Draw(t, "ldb"), rapid.Float32().Draw(t, "alpha")},
			rapid.Uint32().Draw(t, "strip"), rapid.Float32().Draw(t, "scale")}
		if got := spec.View[params](append(spec.Block(p), 1, 2, 3)); got != p {
			t.Errorf("read as %+v, want %+v", got, p)
		}
	})
}
