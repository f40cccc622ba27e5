// Where the folder is, and that files are replaced as a whole.

package cache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spmmrun/spmm/internal/cache"
)

func TestFolder(t *testing.T) {
	t.Setenv("SPMM_CACHE", "elsewhere")
	if got := cache.Folder(); got != "elsewhere" {
		t.Errorf("%q, want what SPMM_CACHE says", got)
	}
	t.Setenv("SPMM_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := os.UserCacheDir(); err != nil && cache.Folder() != "" {
		t.Errorf("%q for a user without a folder", cache.Folder())
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "file")
	for _, data := range []string{"old", "newer", ""} {
		if err := cache.Write(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("%q, %v, want %q", got, err, data)
		}
	}
	if err := cache.Write(filepath.Join(path, "below a file"), nil); err == nil {
		t.Error("a file below a file")
	}
	if err := cache.Write(filepath.Dir(path), nil); err == nil {
		t.Error("a folder replaced by a file")
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}
