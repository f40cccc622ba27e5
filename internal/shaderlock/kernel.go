// What shaders/compiled holds of one kernel: an archive of its blobs, and a lock.

package shaderlock

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/spmmrun/spmm/shaders/compiled"
)

// Kernel is the generated code of one kernel.
type Kernel struct {
	Lock  Lock
	Blobs map[string][]byte // by name, not compressed
}

// ArchiveFile returns where a kernel's blobs lie in the folder shaders.
func ArchiveFile(kernel string) string { return path.Join(Generated, kernel+compiled.Suffix) }

// LockFile returns where a kernel's lock lies in the folder shaders.
func LockFile(kernel string) string { return path.Join(Generated, kernel+".lock") }

// Read reads what is generated of a kernel. An absent file is like an empty one.
func Read(fsys fs.FS, kernel string) (Kernel, error) {
	k := Kernel{Lock: Lock{}, Blobs: map[string][]byte{}}
	lock, err := fs.ReadFile(fsys, LockFile(kernel))
	if err == nil {
		k.Lock, err = parseLock(string(lock))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("%s: %w", LockFile(kernel), err)
	}
	archive, err := fs.ReadFile(fsys, ArchiveFile(kernel))
	if err == nil {
		k.Blobs, err = unpack(archive)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, fmt.Errorf("%s: %w", ArchiveFile(kernel), err)
	}
	return k, nil
}

// Keep drops what is not of these units. It tells whether there was anything to drop.
func (k Kernel) Keep(us []*Unit) bool {
	entries, blobs := len(k.Lock), len(k.Blobs)
	named := map[string]bool{}
	for _, u := range us {
		named[u.Blob] = true
	}
	maps.DeleteFunc(k.Lock, func(blob string, _ Entry) bool { return !named[blob] })
	maps.DeleteFunc(k.Blobs, func(blob string, _ []byte) bool { return !named[blob] })
	return len(k.Lock) < entries || len(k.Blobs) < blobs
}

// Files returns the kernel's files by their paths, as they are written: us are its units, and their order does not
// matter.
func (k Kernel) Files(us []*Unit) (map[string][]byte, error) {
	if len(us) == 0 {
		return nil, nil
	}
	archive, err := pack(us, k.Blobs)
	if err != nil {
		return nil, err
	}
	name := us[0].Folder
	return map[string][]byte{ArchiveFile(name): archive, LockFile(name): []byte(k.Lock.format())}, nil
}
