// The compiled kernels are those of the sources in their folder.

package backendtest_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The compiled modules are those of the sources in their folder: both are as go generate last left them.
func TestBlobsAreFresh(t *testing.T) {
	sums, err := os.ReadFile("kernels/zsums.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("kernels/*.comp")
	for _, f := range files {
		files = append(files, filepath.Join("kernels", "z"+strings.TrimSuffix(filepath.Base(f), ".comp")+".spv"))
	}
	if len(files) == 0 || len(files) != strings.Count(string(sums), "\n") {
		t.Errorf("%d files and this list of sums:\n%s", len(files), sums)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), filepath.Base(f)); !strings.Contains(string(sums), line) {
			t.Errorf("%s has changed since go generate ./backend/backendtest", f)
		}
	}
}
