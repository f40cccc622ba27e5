// The table of kernels that is checked in is the tree's, and says all that it should.

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders"
)

func TestText(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil || string(got) != text() {
		t.Errorf("%s is not what the tables say (%v): go run ./tools/kernels writes it anew", file, err)
	}
}

// Every kernel has words, a name of its own on each API, and, unless it is in Go, a source.
func TestKinds(t *testing.T) {
	for _, k := range append(shaders.Formats(), shaders.Reproducible) {
		for _, v := range k.Variants {
			if v.Kind == nil {
				t.Fatalf("%s/%s is of no kind", k.Name, v.Name)
			}
		}
		type name struct {
			name string
			code backend.Code
		}
		seen := map[name]bool{}
		for _, x := range k.Kinds() {
			if x.Name == "" || x.Summary == "" || x.When == "" || len(x.Types) == 0 ||
				(len(x.Sources) == 0) != (x.Code == backend.CodeGo) {
				t.Errorf("%s/%s: %+v", k.Name, x.Name, x)
			}
			if seen[name{x.Name, x.Code}] {
				t.Errorf("%s has two kinds %s for one API", k.Name, x.Name)
			}
			seen[name{x.Name, x.Code}] = true
		}
	}
}
