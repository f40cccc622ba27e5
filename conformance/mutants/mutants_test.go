//go:build unix

// The list of mutations is kept up with the sources; whether the suite notices them takes longer (see the package).

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestMutations(t *testing.T) {
	names, kinds := map[string]bool{}, map[string]int{}
	for _, m := range mutations {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if _, err := m.apply(string(text)); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if _, err := regexp.Compile(m.cases); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if key := m.backend + " " + m.name; names[key] {
			t.Errorf("two mutations of %s are named %s", m.backend, m.name)
		} else {
			names[key] = true
		}
		kinds[m.backend]++
	}
	if len(mutations) < 40 || kinds["cpu"] < 10 || kinds["webgpu"] < 10 || kinds["vulkan"] < 10 {
		t.Errorf("%d mutations: %v", len(mutations), kinds)
	}
}

func TestApply(t *testing.T) {
	m := mutation{name: "x", file: "f", old: "a + b", new: "a - b"}
	if got, err := m.apply("c = a + b;"); err != nil || got != "c = a - b;" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"", "a  + b", "a + b, a + b"} {
		if got, err := m.apply(text); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}
