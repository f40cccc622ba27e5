// The compiled-in models against the kernels' tables, and files that say what no measurement gives.

package model_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

var codes = []backend.Code{backend.CodeGo, backend.CodePTX, backend.CodeSPIRV, backend.CodeWGSL}

// Every variant has a cost in the model of its kind of device, and every pattern fits some variant.
func TestCosts(t *testing.T) {
	for _, code := range codes {
		m := model.For(code, "a device never seen")
		if m.Measured.Device == "" || m.Measured.Date == "" || m.Measured.Command == "" {
			t.Errorf("%v: the file does not say how it was measured: %+v", code, m.Measured)
		}
		if m.Kind.Resident < 1 {
			t.Errorf("%v: %+v", code, m.Kind)
		}
		used := map[string]bool{}
		use := func(patterns []string, name string) {
			for _, p := range patterns {
				if ok, _ := path.Match(p, name); ok {
					used[p] = true
				}
			}
		}
		for _, k := range shaders.Formats() {
			for _, v := range of(k, code) {
				c, known := m.Cost(k.Name, v.Name)
				if !known || c.StartUS == 0 && c.StepUS == 0 {
					t.Errorf("%s/%s has no cost: add a line with start_us or step_us to the costs of %v devices", k.Name, v.Name, code)
				}
				for _, c := range m.Costs {
					use(c.Variants, k.Name+"/"+v.Name)
				}
			}
		}
		k := shaders.Reproducible
		for _, v := range of(k, code) {
			if _, known := m.Gather(k.Name, v.Name); !known {
				t.Errorf("%s/%s has no cost of fetching", k.Name, v.Name)
			}
			for _, g := range m.Fixed {
				use(g.Variants, k.Name+"/"+v.Name)
			}
		}
		for _, c := range m.Costs {
			for _, p := range c.Variants {
				if !used[p] {
					t.Errorf("%v: pattern %s fits no variant", code, p)
				}
			}
		}
		for _, g := range m.Fixed {
			for _, p := range g.Variants {
				if !used[p] {
					t.Errorf("%v: pattern %s fits no variant", code, p)
				}
			}
		}
	}
}

// of returns a kernel's variants for some code.
func of(k *spec.Format, code backend.Code) []*spec.Variant {
	return slices.DeleteFunc(slices.Clone(k.Variants), func(v *spec.Variant) bool { return v.Code != code })
}

// A device model has at most 150 numbers: a new kernel shares those of similar ones, or others go.
func TestFewNumbers(t *testing.T) {
	const most = 150
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) < len(codes) {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "version")
		delete(m, "measured")
		if n := numbers(m); n == 0 || n > most {
			t.Errorf("%s has %d numbers, want 1 to %d", file, n, most)
		}
	}
}

// numbers counts the numbers in what a JSON text holds.
func numbers(x any) (n int) {
	switch x := x.(type) {
	case float64:
		return 1
	case []any:
		for _, y := range x {
			n += numbers(y)
		}
	case map[string]any:
		for _, y := range x {
			n += numbers(y)
		}
	}
	return n
}

// Of the costs that fit a variant, the first that says something counts.
func TestCostLeavesOut(t *testing.T) {
	m := &model.DeviceModel{Costs: []model.Cost{
		{Variants: []string{"dense/big_*"}, StartUS: 1},
		{Variants: []string{"dense/*_f16"}, StartUS: 2, Arithmetic: 3, Overlap: true},
		{Variants: []string{"csr/*"}, StepUS: 4},
		{Variants: []string{"dense/*"}, Arithmetic: 5, Fetch: 6, Busy: 7, Columns: 8, StepUS: 9, Launch: 10, Cut: 11,
			Streams: true},
	}}
	c, known := m.Cost("dense", "big_f16")
	c.Variants = nil
	want := model.Cost{StartUS: 1, Arithmetic: 3, Overlap: true, Fetch: 6, Busy: 7, Columns: 8, StepUS: 9, Launch: 10,
		Cut: 11, Streams: true}
	if !known || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
	if c, known := m.Cost("dense", "small"); !known || c.Arithmetic != 5 || c.StartUS != 0 || c.Overlap {
		t.Errorf("another variant costs %+v", c)
	}
	m.Fixed = []model.Gather{{Variants: []string{"rfx/p47"}, Arithmetic: 4}, {Variants: []string{"rfx/*"}, Arithmetic: 2,
		Start: 3, Columns: 5, Bytes: 6}}
	g, known := m.Gather("rfx", "p47")
	g.Variants = nil
	if want := (model.Gather{Slower: 1, Arithmetic: 4, Start: 3, Columns: 5, Bytes: 6}); !known ||
		!reflect.DeepEqual(g, want) {
		t.Errorf("%+v, want %+v", g, want)
	}
	over := (&model.DeviceModel{Costs: []model.Cost{{Variants: []string{"dense/big_f16"}, Fetch: 12}}}).Over(m)
	if c, _ := over.Cost("dense", "big_f16"); c.Fetch != 12 || c.StartUS != 0 {
		t.Errorf("a cost is completed from another model: %+v", c)
	}
}

// What is not known of a variant leaves the roofline.
func TestUnknown(t *testing.T) {
	m := model.For(backend.CodeGo, "")
	if c, known := m.Cost("another", "kernel"); known || c.StartUS != 0 || c.Arithmetic != 0 {
		t.Errorf("another kernel costs %+v", c)
	}
	if g, known := m.Gather("another", "kernel"); known || g.Slower != 1 {
		t.Errorf("another kernel fetches %+v", g)
	}
	if m := model.For(99, ""); len(m.Costs) != 0 || m.Correction("csr", "cpu_f32").Factor() != 1 {
		t.Errorf("of a kind of device never seen: %+v", m)
	}
}

func TestParse(t *testing.T) {
	good, err := os.ReadFile("cpu.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Parse(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"another version", `"version": 3`, `"version": 99`, "version 99"},
		{"a negative width", `"entry_columns": 60`, `"entry_columns": -60`, "entry_columns -60"},
		{"a negative number of pieces", `"entry_columns": 60`, `"busy_items": -3`, "busy_items -3"},
		{"a negative length of pieces", `"entry_columns": 60`, `"cut_rows": -3`, "cut_rows -3"},
		{"a negative time", `"start_us": 0.005`, `"start_us": -1`, "start_us -1"},
		{"a huge time", `"start_us": 0.005`, `"start_us": 1e300`, "start_us 1e+300"},
		{"no number", `"start_us": 0.005`, `"start_us": 1e999`, "1e999"},
		{"a negative rate", `"arithmetic_factor": 0.36`, `"arithmetic_factor": -0.36`, "arithmetic_factor -0.36"},
		{"nothing resident", `"resident_items": 1`, `"resident_items": -1`, "resident_items -1"},
		{"a broken pattern", `"csr/cpu_*"`, `"csr/[cpu"`, "csr/[cpu"},
		{"no pattern", `"csr/cpu_*"`, ``, "no variants"},
		{"cut off", "]\n}", "", "unexpected end"},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if text == string(good) {
			t.Fatalf("%s: %s is not in the file", c.name, c.old)
		}
		if _, err := model.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}
