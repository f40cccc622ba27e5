// The declarations of abi.h are those that the library was compiled with.

//go:build cgo && linux && amd64

package webgpu_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// abi.h repeats declarations of the binding's headers; a C compiler says whether they agree.
func TestABI(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/rajveermalviya/go-webgpu/wgpu").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	headers := filepath.Join(strings.TrimSpace(string(dir)), "lib")
	if out, err := exec.Command("cc", "-fsyntax-only", "-I.", "-I"+headers,
		"testdata/abi.c").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
