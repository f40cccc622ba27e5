// The suite on every device of this build, and what must hold of the suite itself.
//
// The environment says what to run: SPMM_BACKEND (cuda, vulkan:1, by commas), SPMM_TIER, SPMM_FILTER (a regular
// expression of case names), SPMM_REQUIRE (what must have run: cpu, cuda, vulkan, webgpu,
// vulkan-matrices), SPMM_BARE=1 (no memory around buffers: for compute-sanitizer).

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/shaders"
)

// words are the parts of a comma-separated variable.
func words(name string) []string {
	return strings.FieldsFunc(os.Getenv(name), func(c rune) bool { return c == ',' })
}

func options() Options {
	o := Options{Tier: Tier(os.Getenv("SPMM_TIER")), Bare: os.Getenv("SPMM_BARE") == "1"}
	if f := os.Getenv("SPMM_FILTER"); f != "" {
		o.Filter = regexp.MustCompile(f)
	}
	return o
}

// selected tells whether SPMM_BACKEND names a device: by its backend, for the first, or by backend and
// index. Without it the first device of each backend is.
func selected(info backend.Info) bool {
	only := words("SPMM_BACKEND")
	first := info.Index == 0 && (len(only) == 0 || slices.Contains(only, info.Backend))
	return first || slices.Contains(only, fmt.Sprintf("%s:%d", info.Backend, info.Index))
}

// devices opens the devices that are selected.
func devices(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	for _, d := range backend.Drivers() {
		infos, err := d.Devices(context.Background())
		if errors.Is(err, backend.ErrUnavailable) {
			t.Logf("%s: %v", d.Name(), err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.Name(), err)
			continue
		}
		for _, info := range infos {
			if !selected(info) {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", info.Backend, info.Index), func(t *testing.T) {
				t.Attr("device", info.String())
				dev, err := d.Open(context.Background(), info)
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				f(t, dev)
			})
		}
	}
}

// softMatrices tells whether a device is the software driver with cooperative matrices, which
// computes other vendors' shapes as well.
func softMatrices(dev backend.Device) bool {
	return os.Getenv("SPMM_SOFTVK") == "matrices" && dev.Info().Kind == "cpu" && len(dev.Caps().Matrix) > 0
}

// runs returns what to run on a device: the quick tier, and on a software driver with matrices shapes of other vendors.
// SPMM_SHAPES=all asks for every shape in every kernel, which takes such a driver ten minutes to compile.
func runs(dev backend.Device) Options {
	o := options()
	o.instances = problems
	o.Unlisted = softMatrices(dev)
	o.Rotate = o.Unlisted && os.Getenv("SPMM_SHAPES") != "all"
	return o
}

func TestConformance(t *testing.T) {
	var mans []*Manifest
	devices(t, func(t *testing.T, dev backend.Device) {
		o := runs(dev)
		m, err := Run(t.Context(), dev, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %v", m.Device, m.Summary)
		if m.Summary[Pass] == 0 {
			t.Error("no case passed")
		}
		for _, c := range m.Cases {
			if c.Status == Fail {
				t.Errorf("%s with %s: %s", c.ID, c.Variant, c.Error)
			}
		}
		t.Attr("cases", strconv.Itoa(m.Summary[Pass]))
		if o.Unlisted && o.Filter == nil {
			foreign(t, m, o.eligibility(dev).rotated)
			if o.Rotate {
				t.Run("all shapes", func(t *testing.T) { t.Skip("SPMM_SHAPES=all runs other vendors' in every kernel") })
			}
		}
		mans = append(mans, m)
	})
	if len(mans) == 0 {
		t.Error("no device: no case ran")
	}
	for _, d := range Compare(mans...) {
		t.Error(d)
	}
	required(t, mans)
}

// foreign fails unless every matrix shape of the kernels' tables has passed T1, or T3 if it is of integers, in every
// kernel that has it: AMD's 16×16×16, Intel's 8×16×16, NVIDIA's 16×8×16 and the driver's own among them. If variants
// rotate, these must have passed, and every shape of floating-point numbers in some kernel.
func foreign(t *testing.T, m *Manifest, rotated map[string][]string) {
	everywhere := rotated == nil
	in := func(kernel, shape string) string {
		if everywhere {
			return kernel + " " + shape
		}
		return shape
	}
	kernels := shaders.Formats()
	switch reproducible := shaders.Reproducible; {
	case everywhere:
		kernels = append(kernels, reproducible)
	case len(rotated[reproducible.Name]) == 0:
		t.Errorf("no variant of %s is for a matrix shape that the device does not list", reproducible.Name)
	}
	passed, ran := map[string]bool{}, map[string]bool{}
	for i := range m.Cases {
		if r := &m.Cases[i]; r.Status == Pass && (Class(r.ID) == MixedSign || Class(r.ID) == Reproducible) {
			passed[r.kernel()+"/"+r.Variant] = true
		}
	}
	for _, v := range m.Variants {
		if v.Matrix && passed[v.Name] {
			kernel, _, _ := strings.Cut(v.Name, "/")
			if kernel == shaders.Reproducible.Name && !everywhere {
				continue // its shapes are of integers
			}
			ran[in(kernel, tile(func(name string) uint32 { return v.Consts[name] }))] = true
		}
	}
	for kernel, names := range rotated {
		for _, name := range names {
			if !passed[kernel+"/"+name] {
				t.Errorf("no case of class T1 or T3 passed with %s/%s", kernel, name)
			}
		}
	}
	shapes := 0
	for _, k := range kernels {
		for _, v := range k.Variants {
			if v.Code == backend.CodeSPIRV && v.Matrix && !v.Need.Lanes { // those need a layout that only devices have
				shapes++
				if x := in(k.Name, tile(v.Const)); !ran[x] {
					t.Errorf("no case of class T1 or T3 passed with tiles %s", x)
					ran[x] = true // said once
				}
			}
		}
	}
	if shapes == 0 {
		t.Error("the tables have no matrix shapes")
	}
}

// required fails unless all that SPMM_REQUIRE names has passed a case.
func required(t *testing.T, mans []*Manifest) {
	have := map[string]bool{}
	for _, m := range mans {
		matrix := map[string]bool{}
		for _, v := range m.Variants {
			matrix[v.Name] = v.Matrix
		}
		for _, c := range m.Cases {
			if c.Status == Pass {
				have[m.Device.Backend] = true
				if matrix[c.kernel()+"/"+c.Variant] {
					have[m.Device.Backend+"-matrices"] = true
				}
			}
		}
	}
	for _, name := range words("SPMM_REQUIRE") {
		if !have[name] {
			t.Errorf("SPMM_REQUIRE: %s has passed no case", name)
		}
	}
}
