// Hashes of what a unit is compiled from.

package shaderlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

var includeLine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]`)

// Hash returns the hash of all that decides a unit's blob but the compiler: source, the declarations and the project's
// own files that it includes, flags and constants. Comments, spaces and line breaks do not count. fsys is the folder
// shaders.
func (u *Unit) Hash(fsys fs.FS) (string, error) {
	files := map[string]string{}
	if err := u.read(fsys, u.Source, files); err != nil {
		return "", err
	}
	h := sha256.New()
	item := func(s string) { fmt.Fprintf(h, "%d:%s\n", len(s), s) }
	for _, s := range append(slices.Clone(u.Flags), u.Defines...) {
		item(s)
	}
	for _, name := range sortedKeys(files) {
		item(name)
		item(tokens(files[name]))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// read adds a file and what it includes to files. What is in no folder of the project belongs to the
// compiler.
func (u *Unit) read(fsys fs.FS, name string, files map[string]string) error {
	if _, ok := files[name]; ok {
		return nil
	}
	text, declared := u.declarations[name]
	if !declared {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		text = string(b)
	}
	files[name] = text
	for _, m := range includeLine.FindAllStringSubmatch(text, -1) {
		for _, dir := range append([]string{path.Dir(name)}, u.Includes()...) {
			err := u.read(fsys, path.Join(dir, m[1]), files)
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
				return err
			}
		}
	}
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
