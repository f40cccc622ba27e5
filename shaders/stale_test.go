// Do the blobs fit their sources and tables? No compiler is needed to tell.

package shaders_test

import (
	"os"
	"testing"

	"github.com/spmmrun/spmm/internal/shaderlock"
	"github.com/spmmrun/spmm/shaders"
)

func TestBlobsAreUpToDate(t *testing.T) {
	for _, err := range shaderlock.Check(os.DirFS("."), shaders.All()) {
		t.Error(err)
	}
	if t.Failed() {
		t.Log("make generate compiles what is stale")
	}
}

func TestVariantsFitTheirTables(t *testing.T) {
	for _, k := range shaders.All() {
		names := map[string]bool{}
		for _, v := range k.Variants {
			if names[v.Name] {
				t.Errorf("%s/%s: two variants of this name", k.Name, v.Name)
			}
			names[v.Name] = true
			for _, err := range shaderlock.CheckVariant(k, v) {
				t.Error(err)
			}
		}
	}
}
