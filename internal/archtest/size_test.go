// What `go get` downloads stays small.

package archtest_test

import (
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// counter counts what is written.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// The module's zip has at most 10 MB: its files, without those of modules below it, each compressed.
func TestModuleIsSmall(t *testing.T) {
	const most = 10e6
	files := tracked(t)
	var below []string // folders of other modules
	for _, f := range files {
		if dir, is := strings.CutSuffix(f, "/go.mod"); is {
			below = append(below, dir+"/")
		}
	}
	if !slices.Contains(below, "conformance/manifests/") {
		t.Error("conformance/manifests is no module of its own")
	}
	var size counter
	z, err := flate.NewWriter(&size, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(f, dir) }) {
			continue
		}
		in, err := os.Open(filepath.Join(root, f))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		z.Reset(&size)
		_, err = io.Copy(z, in)
		if err := errors.Join(err, z.Close(), in.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d bytes", size)
	if size > most {
		t.Errorf("the module has %d bytes, want at most %d", size, int(most))
	}
}
