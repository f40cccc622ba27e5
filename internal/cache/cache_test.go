// Where the folder is, that files are replaced as a whole, and what is not read from it.

package cache_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm/internal/cache"
)

// writeForever has the test's own program write to the cache folder until it is killed.
const writeForever = "CACHE_TEST_WRITE"

func TestMain(m *testing.M) {
	for os.Getenv(writeForever) != "" {
		if err := cache.Write("a/file", make([]byte, 1<<22)); err != nil {
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestFolder(t *testing.T) {
	t.Setenv("SPMM_CACHE", "elsewhere")
	if got := cache.Folder(); got != "elsewhere" {
		t.Errorf("%q, want what SPMM_CACHE says", got)
	}
	t.Setenv("SPMM_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := os.UserCacheDir(); err == nil {
		return
	}
	if cache.Folder() != "" || cache.Path("a") != "" {
		t.Errorf("%q for a user without a folder", cache.Folder())
	}
	if _, err := cache.Read("a", 1); !errors.Is(err, fs.ErrNotExist) || cache.Write("a", nil) != nil ||
		cache.Names("a") != nil {
		t.Errorf("without a folder: %v", err)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by it")
	t.Setenv("SPMM_CACHE", dir)
	for _, data := range []string{"old", "newer", ""} {
		if err := cache.Write("a/b/file", []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := cache.Read("a/b/file", 5); err != nil || string(got) != data {
			t.Errorf("%q, %v, want %q", got, err, data)
		}
	}
	if cache.Write("a/b/file/below a file", nil) == nil {
		t.Error("a file below a file")
	}
	if cache.Write("a/b", nil) == nil {
		t.Error("a folder replaced by a file")
	}
	for folder, want := range map[string]string{"a": "b", "a/b": "file"} {
		if got := cache.Names(folder); !slices.Equal(got, []string{want}) {
			t.Errorf("in %s: %v, want %s", folder, got, want)
		}
	}
	if got := cache.Names("a/none"); got != nil {
		t.Errorf("in no folder: %v", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the folder is made with mode %v, %v", info.Mode(), err)
	}
}

// A process that is killed while it writes leaves the file or none, and nothing else for long.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SPMM_CACHE", dir)
	for range 5 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), writeForever+"=1")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for cache.Names("a") == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if c.Wait() == nil {
			t.Fatal("it ended by itself")
		}
		if b, err := cache.Read("a/file", 1<<22); !errors.Is(err, fs.ErrNotExist) && (err != nil || len(b) != 1<<22) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	// Where the system has no files without a name, what was left goes with a later Write.
	old := filepath.Join(dir, "a", ".new-123")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range cache.Names("a") {
		if err := os.Chtimes(filepath.Join(dir, "a", name), time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cache.Write("a/file", nil); err != nil {
		t.Fatal(err)
	}
	if got := cache.Names("a"); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left: %v", got)
	}
}

// What is refused is reported once, and gives way to what is written.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SPMM_CACHE", dir)
	path := filepath.Join(dir, "file")
	for _, c := range refusals {
		var reported []error
		cache.OnRefused(func(err error) { reported = append(reported, err) })
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := c.make(path); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for range 3 {
			b, err := cache.Read("file", 100)
			if !errors.Is(err, cache.ErrRefused) || len(b) != 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %d bytes, %v, want an error with %q", c.name, len(b), err, c.want)
			}
		}
		if len(reported) != 1 {
			t.Errorf("%s: reported of %v, want it once", c.name, reported)
		}
		if err := cache.Write("file", []byte("new")); err == nil {
			if b, err := cache.Read("file", 100); err != nil || string(b) != "new" {
				t.Errorf("%s: %q, %v after it was written anew", c.name, b, err)
			}
		} else if !c.stays {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	cache.OnRefused(nil)
}

// refusal is something in the cache folder that is not read.
type refusal struct {
	name  string
	make  func(path string) error
	want  string
	stays bool // it cannot be written over either
}

var refusals = append([]refusal{
	{"a large file", func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte{1}, 101), 0o600) }, "101 bytes", false},
	{"a folder", func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file", true},
}, systemRefusals...)
