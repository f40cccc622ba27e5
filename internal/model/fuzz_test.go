// Device models and rates of the cache folder, which anybody may have written.

package model_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/spmmrun/spmm/internal/model"
)

// A model that is taken predicts times, whatever its figures: none is negative, none ends in an overflow.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"cpu.json", "vulkan.json"} {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte(`{"version":3,"code":"ptx","kind":{"launch_us":1e6},"costs":[{"variants":["kernel/*"],"start_us":1e6,"step_us":1e6,"arithmetic_factor":1e-4,"fetch_factor":1e4}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := model.Parse(text)
		if err != nil {
			return
		}
		p := round()
		p.Model = m.Over(p.Model)
		v, s := scalar(), stats()
		v.Name, s.Longest = "gpu_f32", 1<<40
		for _, items := range []int64{0, 1, math.MaxInt32} {
			if b, took := p.Time("kernel", v, s, items); took < 0 || b.Time() < 0 {
				t.Fatalf("%v, at least %v, by\n%s", took, b.Time(), text)
			}
		}
	})
}

// Rates that are valid bound times.
func FuzzRates(f *testing.F) {
	text, err := json.Marshal(rates())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		r := new(model.Rates)
		if json.Unmarshal(text, r) != nil || r.Validate() != nil {
			return
		}
		p := round()
		p.Rates = r
		if b, took := p.Time("kernel", scalar(), stats(), 100); took < 0 || b.Time() < 0 || took < b.Time() {
			t.Fatalf("%v, at least %v, by\n%s", took, b.Time(), text)
		}
	})
}
