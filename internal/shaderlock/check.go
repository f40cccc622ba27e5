// What is wrong with a tree: stale, changed, missing and stray files.

package shaderlock

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/spmmrun/spmm/shaders/spec"
)

// Stale says why a unit's blob must be compiled again; nil if it is up to date.
func (k Kernel) Stale(fsys fs.FS, u *Unit) error {
	e, recorded := k.Lock[u.Blob]
	if !recorded {
		return fmt.Errorf("%v: never recorded", u)
	}
	blob, there := k.Blobs[u.Blob]
	if !there {
		return fmt.Errorf("%v: is not in %s", u, ArchiveFile(u.Folder))
	}
	h, err := u.Hash(fsys)
	switch {
	case err != nil:
		return fmt.Errorf("%v: %w", u, err)
	case e.Source != h:
		return fmt.Errorf("%v: its source, an include, a flag or a constant changed since it was compiled", u)
	case e.Code != sum(blob):
		return fmt.Errorf("%v: was changed by hand", u)
	}
	return nil
}

// Check returns all that is wrong with the folder shaders.
func Check(fsys fs.FS, kernels []*spec.Program) []error {
	var errs []error
	for _, k := range kernels {
		errs = append(errs, check(fsys, k)...)
	}
	strays, err := Strays(fsys, kernels)
	if err != nil && len(errs) == 0 { // else it was said
		errs = append(errs, err)
	}
	for _, f := range strays {
		errs = append(errs, fmt.Errorf("%s: no variant is compiled to it", f))
	}
	return errs
}

// check returns what is wrong with one kernel's blobs.
func check(fsys fs.FS, k *spec.Program) []error {
	us, err := Units(k)
	if err != nil {
		return []error{err}
	}
	have, err := Read(fsys, k.Name)
	if err != nil {
		return []error{err}
	}
	var errs []error
	recorded, packed := maps.Clone(have.Lock), maps.Clone(have.Blobs)
	for _, u := range us {
		errs = append(errs, have.Stale(fsys, u))
		delete(recorded, u.Blob)
		delete(packed, u.Blob)
	}
	for _, blob := range sortedKeys(recorded) {
		errs = append(errs, fmt.Errorf("%s: records %s, but no variant is compiled to it", LockFile(k.Name), blob))
	}
	for _, blob := range sortedKeys(packed) {
		errs = append(errs, fmt.Errorf("%s: holds %s, but no variant is compiled to it", ArchiveFile(k.Name), blob))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// Strays returns the files that no kernel's table names: among generated files, and compiled code among sources.
func Strays(fsys fs.FS, kernels []*spec.Program) ([]string, error) {
	known := map[string]bool{}
	for _, k := range kernels {
		us, err := Units(k)
		if err != nil {
			return nil, err
		}
		if len(us) > 0 {
			known[ArchiveFile(k.Name)], known[LockFile(k.Name)] = true, true
		}
	}
	var found []string
	for _, pattern := range []string{Generated + "/*.zst", Generated + "/*.lock", Generated + "/*/[^.]*", "*/*.ptx",
		"*/*.spv"} {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	return slices.DeleteFunc(found, func(f string) bool { return known[f] }), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
