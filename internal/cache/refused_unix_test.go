// What a folder that others write to may hold.

//go:build unix

package cache_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spmmrun/spmm/internal/cache"
)

var systemRefusals = []refusal{
	{"a FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) }, "no regular file", false},
	{"a link to a device", func(path string) error { return os.Symlink("/dev/zero", path) }, "no regular file", false},
	{"a link to a file", func(path string) error {
		to := path + ".target"
		return errors.Join(os.WriteFile(to, []byte("it"), 0o600), os.Symlink(to, path))
	}, "no regular file", false},
	{"a link to nothing", func(path string) error { return os.Symlink("nowhere", path) }, "no regular file", false},
	{"a file that others may write to", func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o602))
	}, "others may write", false},
	{"a file that the group may write to", func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o620))
	}, "others may write", false},
}

func init() {
	if os.Geteuid() == 0 { // who else could give a file away
		systemRefusals = append(systemRefusals, refusal{"a file of somebody else's", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 54321, -1))
		}, "belongs to user 54321", false})
		refusals = append(refusals, systemRefusals[len(systemRefusals)-1])
	}
}

// Nothing is read from or written to folders that others may write to, or that are none.
func TestFolders(t *testing.T) {
	for name, spoil := range map[string]func(top, sub string) error{
		"others write to it":             func(top, _ string) error { return os.Chmod(top, 0o777) },
		"others write to it, as in /tmp": func(top, _ string) error { return os.Chmod(top, 0o777|fs.ModeSticky) },
		"others write below":             func(_, sub string) error { return os.Chmod(sub, 0o707) },
		"a file": func(top, _ string) error {
			return errors.Join(os.RemoveAll(top),
				os.WriteFile(top, nil, 0o600))
		},
		"a FIFO": func(top, _ string) error {
			return errors.Join(os.RemoveAll(top),
				syscall.Mkfifo(top, 0o600))
		},
		"a FIFO below": func(_, sub string) error {
			return errors.Join(os.RemoveAll(sub),
				syscall.Mkfifo(sub, 0o600))
		},
		"a link below": func(_, sub string) error {
			return errors.Join(os.Rename(sub, sub+".target"), os.Symlink(sub+".target", sub))
		},
	} {
		top := filepath.Join(t.TempDir(), "cache")
		t.Setenv("SPMM_CACHE", top)
		if err := cache.Write("sub/file", []byte("it")); err != nil {
			t.Fatal(err)
		}
		if b, err := cache.Read("sub/file", 9); err != nil || string(b) != "it" || len(cache.Names("sub")) != 1 {
			t.Fatalf("%q, %v", b, err)
		}
		if err := spoil(top, filepath.Join(top, "sub")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b, err := cache.Read("sub/file", 9); err == nil {
			t.Errorf("%s: read %q", name, b)
		}
		if got := cache.Names("sub"); got != nil {
			t.Errorf("%s: lists %v", name, got)
		}
		if cache.Write("sub/file", nil) == nil {
			t.Errorf("%s: written to", name)
		}
	}
	// The folder itself may be a link, to another disk.
	top := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(top, "far"), 0o700),
		os.Symlink("far", filepath.Join(top, "near"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPMM_CACHE", filepath.Join(top, "near"))
	if err := cache.Write("file", []byte("it")); err != nil {
		t.Error(err)
	}
	if b, err := cache.Read("file", 9); err != nil || string(b) != "it" {
		t.Errorf("through a link: %q, %v", b, err)
	}
}
