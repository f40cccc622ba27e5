// Writing a file that has no name until it is whole.

package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writeNameless writes a file without a name, and then gives it that of path. It is not done where the file system has
// no such files.
func writeNameless(path string, data []byte) (done bool, err error) {
	f, err := os.OpenFile(filepath.Dir(path), os.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err != nil {
		return false, nil
	}
	_, err = f.Write(data)
	if err == nil {
		done, err = name(f, path)
	}
	return done, errors.Join(err, f.Close())
}

// name gives an open file a name, at once if no other has it. Else it takes another name first, for as long as two
// system calls need: only a rename replaces a file.
func name(f *os.File, path string) (done bool, err error) {
	err = link(f, path)
	if !errors.Is(err, unix.EEXIST) {
		return err == nil, nil
	}
	aside := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x", temporary, rand.Uint64()))
	if err := link(f, aside); err != nil {
		return false, nil
	}
	if err := os.Rename(aside, path); err != nil {
		os.Remove(aside)
		return true, err
	}
	return true, nil
}

func link(f *os.File, path string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}
