// Is the code that looks at lanes made from its source?

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"

	"github.com/spmmrun/spmm/backend/vulkan"
)

// TestLanesSource holds lanes.comp against the hash noted when zlanes.spv was made from it.
func TestLanesSource(t *testing.T) {
	source, err := os.ReadFile("lanes.comp")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(source)); sum != vulkan.LanesSource {
		t.Errorf("lanes.comp has changed: run go generate here, and note its hash %s in lanes.go", sum)
	}
}
