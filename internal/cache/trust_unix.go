// Opening without following links or waiting, and who owns what.

//go:build unix

package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openPlain opens a file or folder for reading; links are refused, and a FIFO does not block.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// trustOwner refuses what is not the user's, or what others may write to.
func trustOwner(info fs.FileInfo) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New("the system does not say whose it is")
	case int(s.Uid) != os.Geteuid():
		return fmt.Errorf("it belongs to user %d, not to %d", s.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %v)", info.Mode().Perm())
	}
	return nil
}
