// The specs of this project can be measured, but for the devices and peers.

package main

import (
	"path/filepath"
	"testing"

	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/benchmark"
)

func TestSpecs(t *testing.T) {
	names, err := filepath.Glob("../../bench/specs/*.json")
	if err != nil || len(names) < 5 {
		t.Fatalf("specs %q, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			j := &benchJob{
				spec: name, cols: "1", backends: "cpu", formats: "auto", precisions: "f32", modes: "fast", p: "auto",
				given: func(string) bool { return false },
			}
			if b := filepath.Base(name); b == "graphs.json" || b == "published.json" { // whose matrices are files
				j.matrices = []string{"a.mtx"}
			}
			s := &benchmark.Sweep{}
			if err := j.lists(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			for _, p := range s.Products {
				for _, m := range p.Matrices {
					if _, err := gen.Parse(m, 1); err != nil && m[:4] == gen.Prefix {
						t.Errorf("%s: %v", m, err)
					}
				}
			}
			if s.Total() == 0 {
				t.Error("it has no product")
			}
		})
	}
}
