// The record of hashes, zlock.json, and what is wrong with a tree that it does not fit.

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
	"strings"

	"github.com/spmmrun/spmm/shaders/spec"
)

// File is the record's name in the folder shaders.
const File = "zlock.json"

// Lock is the record: blobs by their path in the folder shaders.
type Lock map[string]Entry

// Entry says what a blob was made from.
type Entry struct {
	Source   string `json:"source"` // Unit.Hash
	Blob     string `json:"blob"`   // SHA-256 of the blob
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
	blob, err := fs.ReadFile(fsys, u.Blob)
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

// Strays returns the generated files in a kernel's folder that its table does not name.
func Strays(fsys fs.FS, k *spec.Kernel, us []*Unit) ([]string, error) {
	known := map[string]bool{path.Join(k.Name, PreludeCUDA): true, path.Join(k.Name, PreludeGLSL): true}
	for _, u := range us {
		known[u.Blob] = true
	}
	found, err := fs.Glob(fsys, path.Join(k.Name, "*"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(f string) bool {
		blob := strings.HasPrefix(path.Base(f), "z") || strings.HasSuffix(f, ".ptx") || strings.HasSuffix(f, ".spv")
		return known[f] || !blob || strings.HasSuffix(f, ".go")
	}), nil
}

// Check returns all that is wrong with the folder shaders: stale, changed, missing and stray files.
func Check(fsys fs.FS, kernels []*spec.Kernel) []error {
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
		strays, err := Strays(fsys, k, us)
		if err != nil {
			errs = append(errs, err)
		}
		for _, f := range strays {
			errs = append(errs, fmt.Errorf("%s: no variant is compiled to it", f))
		}
		for file, want := range Preludes(k) {
			if have, err := fs.ReadFile(fsys, file); err != nil {
				errs = append(errs, err)
			} else if string(have) != want {
				errs = append(errs, fmt.Errorf("%s: differs from the kernel's table", file))
			}
		}
	}
	for _, blob := range sortedKeys(unnamed) {
		errs = append(errs, fmt.Errorf("%s: recorded in %s, but no variant is compiled to it", blob, File))
	}
	return errs
}

// Preludes returns the generated declarations of a kernel by their path.
func Preludes(k *spec.Kernel) map[string]string {
	return map[string]string{path.Join(k.Name, PreludeCUDA): k.CUDA(), path.Join(k.Name, PreludeGLSL): k.GLSL()}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
