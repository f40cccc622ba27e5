// Writing result files, all or nothing.

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// temporaries guards the files that are being written: once the process ends, none of them appears any more, and those
// that have a name for the time being are removed.
type temporaries struct {
	mu    sync.Mutex
	names map[string]bool
	over  bool
}

// end removes unfinished outputs and keeps others from being finished.
func (t *temporaries) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.names {
		os.Remove(name)
	}
	t.names, t.over = nil, true
}

// create makes a file for writing in dir: on Linux one without a name, which vanishes with the process however that
// ends.
func (t *temporaries) create(dir, base string) (f *os.File, name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f, err := unnamed(dir); err == nil {
		return f, "", nil
	}
	for n := range 10000 {
		name = filepath.Join(dir, fmt.Sprintf(".%s.%d-%d", base, os.Getpid(), n))
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, "", err
	}
	if t.names == nil {
		t.names = map[string]bool{}
	}
	t.names[name] = true
	return f, name, nil
}

// output is a file that appears when it is complete. It is opened before any work, so that a place that cannot be
// written to is found out at once.
type output struct {
	path string
	f    *os.File // nil: nothing is to be written
	temp *temporaries
	name string // that f has for the time being, "" if none
	// direct tells that f is the path itself, which is no regular file but a pipe or a device.
	direct bool
}

// newOutput prepares to write to path, or nothing if that is empty. A file that is one of the inputs is refused unless
// force is set. A file that exists keeps its permissions; a new one has those that the umask leaves.
func newOutput(path string, t *temporaries, force bool, inputs ...string) (*output, error) {
	if path == "" {
		return &output{}, nil
	}
	mode := fs.FileMode(0)
	switch info, err := os.Stat(path); {
	case err != nil: // a new file, or a place where none can be made
	case info.IsDir():
		return nil, writeError(path, errors.New("is a directory"))
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &output{path: path, f: f, direct: true}, err
	default:
		if in := sameFile(info, inputs); in != "" && !force {
			return nil, writeError(path, fmt.Errorf("is the input %s, which would be lost: use another name, or --force", in))
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, writeError(path, err)
		}
		f.Close()
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	f, name, err := t.create(filepath.Dir(path), filepath.Base(path))
	if err == nil && mode != 0 {
		err = f.Chmod(mode)
	}
	if err != nil {
		return nil, writeError(path, err)
	}
	return &output{path: path, f: f, temp: t, name: name}, nil
}

// writeError is the error of writing to path, in words of it alone.
func writeError(path string, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}

// sameFile returns which of the inputs is the file, "" if none.
func sameFile(file fs.FileInfo, inputs []string) string {
	for _, in := range inputs {
		for _, name := range []string{in, strings.Split(in, ".safetensors#")[0] + ".safetensors"} {
			if info, err := os.Stat(name); err == nil && os.SameFile(file, info) {
				return in
			}
		}
	}
	return ""
}

// write fills the file with what fill writes and gives it its name.
func (o *output) write(fill func(io.Writer) error) error {
	if o.f == nil {
		return nil
	}
	if o.direct {
		return errors.Join(fill(o.f), o.f.Close())
	}
	if err := fill(o.f); err != nil {
		o.f.Close()
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe.Path == o.f.Name() {
			pe.Path = o.path // not that of the folder, or for the time being
		}
		return err
	}
	o.temp.mu.Lock()
	defer o.temp.mu.Unlock()
	if o.temp.over {
		return errors.Join(errors.New("the process was about to end"), o.f.Close())
	}
	if o.name == "" {
		return errors.Join(link(o.f, o.path), o.f.Close())
	}
	if err := errors.Join(o.f.Close(), os.Rename(o.name, o.path)); err != nil {
		return err
	}
	delete(o.temp.names, o.name)
	return nil
}
