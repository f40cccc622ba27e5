// The record of hashes, lock.json, and what is wrong with a tree that it does not fit.

package shaderlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/compiled"
	"github.com/spmmrun/spmm/shaders/spec"
)

// File is the record's name in the folder shaders.
const File = Generated + "/lock.json"

// Lock is the record: blobs by Unit.Blob.
type Lock map[string]Entry

// Entry says what a blob was made from.
type Entry struct {
	Source   string `json:"source"` // Unit.Hash
	Blob     string `json:"blob"`   // SHA-256 of the blob, not compressed
	Compiler string `json:"compiler"`
}

// NewEntry records what a unit is compiled from now.
func NewEntry(fsys fs.FS, u *Unit, compiler string) (Entry, error) {
	h, err := u.Hash(fsys)
	return Entry{Source: h, Compiler: compiler}, err
}

// For completes the entry with the blob that was made.
func (e Entry) For(blob []byte) Entry {
	e.Blob = sum(blob)
	return e
}

// Read reads the record; an absent one is empty.
func Read(fsys fs.FS) (Lock, error) {
	b, err := fs.ReadFile(fsys, File)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, nil
	}
	if err != nil {
		return nil, err
	}
	l := Lock{}
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	return l, nil
}

// Format returns the record as it is written.
func (l Lock) Format() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "\t")
	err := e.Encode(l)
	return b.Bytes(), err
}

// Stale says why a unit's blob must be compiled again; nil if it is up to date.
func (l Lock) Stale(fsys fs.FS, u *Unit) error {
	e, ok := l[u.Blob]
	if !ok {
		return fmt.Errorf("%s: never recorded", u.Blob)
	}
	h, err := u.Hash(fsys)
	if err != nil {
		return fmt.Errorf("%s: %w", u.Blob, err)
	}
	blob, err := readBlob(fsys, u)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", u.Blob, err)
	case e.Source != h:
		return fmt.Errorf("%s: its source, an include, a flag or a constant changed since it was compiled", u.Blob)
	case e.Blob != sum(blob):
		return fmt.Errorf("%s: was changed by hand", u.Blob)
	}
	return nil
}

func readBlob(fsys fs.FS, u *Unit) ([]byte, error) {
	b, err := fs.ReadFile(fsys, u.File())
	if err != nil {
		return nil, err
	}
	return compiled.Unpack(b)
}

// Pack compresses a blob. The same blob gives the same file everywhere.
func Pack(blob []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(blob); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// Strays returns the files that no kernel's table names, in the folders of what is generated, and compiled code beside
// sources.
func Strays(fsys fs.FS, kernels []*spec.Program) ([]string, error) {
	known := map[string]bool{}
	for _, k := range kernels {
		us, err := Units(k)
		if err != nil {
			return nil, err
		}
		for _, u := range us {
			known[u.File()] = true
		}
		for file := range Preludes(k) {
			known[file] = true
		}
	}
	var found []string
	for _, pattern := range []string{Generated + "/*/[^.]*", "*/*.ptx", "*/*.spv"} {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	return slices.DeleteFunc(found, func(f string) bool { return known[f] }), nil
}

// Check returns all that is wrong with the folder shaders: stale, changed, missing and stray files.
func Check(fsys fs.FS, kernels []*spec.Program) []error {
	lock, err := Read(fsys)
	if err != nil {
		return []error{err}
	}
	var errs []error
	unnamed := maps.Clone(lock)
	for _, k := range kernels {
		us, err := Units(k)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, u := range us {
			delete(unnamed, u.Blob)
			if err := lock.Stale(fsys, u); err != nil {
				errs = append(errs, err)
			}
		}
		for file, want := range Preludes(k) {
			if have, err := fs.ReadFile(fsys, file); err != nil {
				errs = append(errs, err)
			} else if string(have) != want {
				errs = append(errs, fmt.Errorf("%s: differs from the kernel's table", file))
			}
		}
	}
	strays, err := Strays(fsys, kernels)
	if err != nil && len(errs) == 0 { // else it was said
		errs = append(errs, err)
	}
	for _, f := range strays {
		errs = append(errs, fmt.Errorf("%s: no variant is compiled to it", f))
	}
	for _, blob := range sortedKeys(unnamed) {
		errs = append(errs, fmt.Errorf("%s: recorded in %s, but no variant is compiled to it", blob, File))
	}
	return errs
}

// Preludes returns the generated declarations of a kernel by their path: those in the languages that it is written in.
func Preludes(k *spec.Program) map[string]string {
	dir, files := path.Join(Generated, k.Name), map[string]string{}
	for _, v := range k.Forms() {
		switch v.Code {
		case backend.CodePTX:
			files[path.Join(dir, preludeCUDA)] = k.CUDA()
		case backend.CodeSPIRV:
			files[path.Join(dir, preludeGLSL)] = k.GLSL()
		}
	}
	return files
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
