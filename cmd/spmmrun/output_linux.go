// Files without a name, which Linux removes with the process that writes them, even if that is killed.

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// unnamed makes a file in dir that has no name yet. Some file systems have none such.
func unnamed(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	if _, err := os.Stat(procName(f)); err != nil { // link needs it
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func procName(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// link gives f the name path, in place of a file that has it.
func link(f *os.File, path string) error {
	err := linkNew(f, path)
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	for n := range 10000 { // no system call replaces a file: by way of another name
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d", filepath.Base(path), os.Getpid(), n))
		if err = linkNew(f, name); errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			if err = os.Rename(name, path); err != nil {
				os.Remove(name)
			}
		}
		break
	}
	return err
}

func linkNew(f *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, procName(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}
