// Unsupported follows from capabilities: what a manifest records suffices to derive it, and a kernel that the device
// should run and does not load is a failure.

package conformance

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders"
)

// someCaps are capabilities of devices of every kind of code, with all that variants may need.
func someCaps() []backend.Caps {
	var shapes []backend.MatrixShape
	for _, k := range shaders.All() {
		for _, v := range k.Variants {
			shapes = append(shapes, v.Need.Shapes...)
		}
	}
	var list []backend.Caps
	for code := backend.CodeGo; code <= backend.CodeWGSL; code++ {
		for _, arch := range []int{80, 90} {
			list = append(list, backend.Caps{
				Code: code, Arch: arch, Matrix: shapes, SubgroupMin: 8, SubgroupMax: 64, SubgroupPinned: true,
				SharedBytes:    200 << 10,
				MaxInvocations: 1024, MaxLocal: [3]uint32{1024, 1024, 64}, MaxGroups: [3]uint32{65535, 65535, 65535}, F16: true,
				Int8: true, Lanes: true,
			})
		}
	}
	return list
}

// TestCapsSuffice: whatever a device lacks, the capabilities that its manifest records give the same variants.
func TestCapsSuffice(t *testing.T) {
	backends := map[backend.Code]string{}
	for name, code := range codes {
		backends[code] = name
	}
	met := func(c backend.Caps) string {
		var names []string
		for _, k := range shaders.All() {
			for _, v := range k.Variants {
				if v.Met(c) {
					names = append(names, k.Name+"/"+v.Name)
				}
			}
		}
		return strings.Join(names, " ")
	}
	decisive := map[string]bool{}
	for _, whole := range someCaps() {
		all := met(whole)
		if all == "" {
			t.Fatalf("no variant runs on a device of %v with all capabilities", whole.Code)
		}
		fields := reflect.TypeFor[backend.Caps]()
		for i := range fields.NumField() {
			c := whole
			f := reflect.ValueOf(&c).Elem().Field(i)
			if name := fields.Field(i).Name; name != "Code" {
				f.SetZero()
				decisive[name] = decisive[name] || met(c) != all
			}
			m := &Manifest{Device: backend.Info{Backend: backends[c.Code]}, Caps: recordCaps(c)}
			got, err := m.device()
			if err != nil {
				t.Fatal(err)
			}
			if have, want := met(got), met(c); have != want {
				t.Errorf("%v without %s: recorded capabilities give %s, the device's %s", c.Code, fields.Field(i).Name, have, want)
			}
		}
	}
	for _, name := range []string{"Arch", "Matrix", "SubgroupMax", "SubgroupPinned", "SharedBytes", "MaxInvocations",
		"MaxLocal", "F16", "Lanes"} {
		if !decisive[name] {
			t.Errorf("no variant asks for %s", name)
		}
	}
}

// TestShapes: matrix shapes are read back as they were written, and nothing else is.
func TestShapes(t *testing.T) {
	s := backend.MatrixShape{M: 16, N: 8, K: 32, A: dtype.S8, B: dtype.U8, C: dtype.S32, D: dtype.S32}
	for _, s.Saturating = range []bool{false, true} {
		text := recordCaps(backend.Caps{Matrix: []backend.MatrixShape{s}}).Matrix[0]
		if got, err := parseShape(text); err != nil || got != s {
			t.Errorf("%q is read as %v (%v)", text, got, err)
		}
	}
	for _, text := range []string{"", "16×8 f16·f16+f32→f32", "16×8×8", "16×8×8 f16·f16+f32", "16×8×8 f16·f16+f32→f33",
		"16×8×8 f16·f16+f32→f32 ", "16×8×8 f16·f16+f32→f32→f32"} {
		if s, err := parseShape(text); err == nil {
			t.Errorf("%q is taken for %v", text, s)
		}
	}
}

// refusing is a device that does not load some kernels.
type refusing struct {
	backend.Device
	name string // of the kernel
}

func (d refusing) Load(b backend.Binary) (backend.Kernel, error) {
	if b.Name == d.name {
		return nil, fmt.Errorf("kernel %s: %w", b.Name, backend.ErrUnsupported)
	}
	return d.Device.Load(b)
}

// TestMetMustLoad: a variant whose needs the device meets and that does not load is a failure, not unsupported:
// launched by its table, through package spmm and in reproducible mode.
func TestMetMustLoad(t *testing.T) {
	dev := cpuGuard(t).Device
	for _, c := range []struct{ kernel, filter string }{
		{"csr/cpu_f32", `^csr/f32/T1±/m5k3n9/empty$`},
		{"csr/cpu_f32", `^csr/f32/T1±/m67k129n33/eighth/alpha-2/beta0.5/host/bcol$`},
		{"quantise/cpu", `^csr/f32/T3/m67k129n33/eighth/spans/p23/host$`},
	} {
		o := Options{Filter: regexp.MustCompile(c.filter)}
		m, err := Run(t.Context(), dev, o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Summary[Pass] != 1 || len(m.Cases) != 1 {
			t.Fatalf("%s: summary %v", c.filter, m.Summary)
		}
		m, err = Run(t.Context(), refusing{dev, c.kernel}, o)
		if err != nil {
			t.Fatal(err)
		}
		if m.Summary[Fail] != 1 || !strings.Contains(m.Cases[0].Error, backend.ErrUnsupported.Error()) {
			t.Errorf("%s, with %s not loading: summary %v, %s", c.filter, c.kernel, m.Summary, m.Cases[0].Error)
		}
	}
}
