// Systems that do not say in a mode who may write to a file.

//go:build !unix

package cache

import (
	"io/fs"
	"os"
)

func openPlain(path string) (*os.File, error) { return os.Open(path) }

func trustOwner(fs.FileInfo) error { return nil }
