// What is read back, and what a build for js embeds.

package compiled_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/shaders/compiled"
)

func TestRead(t *testing.T) {
	b, err := compiled.Read("csr", "cuda_f32.ptx")
	if err != nil || !strings.HasPrefix(string(b), ".version") {
		t.Errorf("PTX begins with %.20q, error %v", b, err)
	}
	for _, absent := range [][2]string{{"csr", "none.ptx"}, {"none", "cuda_f32.ptx"}} {
		if _, err := compiled.Read(absent[0], absent[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which is not there: %v", absent, err)
		}
	}
}

// Builds for js embed nothing, others all.
func TestEmbedded(t *testing.T) {
	for _, c := range []struct {
		goos, goarch string
		some         bool
	}{{"js", "wasm", false}, {"linux", "amd64", true}, {"windows", "amd64", true}} {
		cmd := exec.Command("go", "list", "-f", "{{.EmbedPatterns}}", ".")
		cmd.Env = append(os.Environ(), "GOOS="+c.goos, "GOARCH="+c.goarch, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(out)); (got != "[]") != c.some {
			t.Errorf("%s/%s embeds %s", c.goos, c.goarch, got)
		}
	}
}
