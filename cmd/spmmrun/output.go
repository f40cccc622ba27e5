// Writing C, all or nothing.

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// temporaries is the file that is being written, to be removed if the process must end.
type temporaries struct {
	mu   sync.Mutex
	path string
}

// remove deletes it unless it is finished.
func (t *temporaries) remove() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		os.Remove(t.path)
		t.path = ""
	}
}

// output is a file that appears when it is complete. It is opened before any work, so that a place
// that cannot be written to is found out at once.
type output struct {
	path string
	f    *os.File
	temp *temporaries // nil: f is path itself, which is no regular file (a pipe, /dev/null)
}

// newOutput prepares to write to path, or nothing if that is empty.
func newOutput(path string, t *temporaries) (*output, error) {
	if path == "" {
		return &output{}, nil
	}
	if i, err := os.Stat(path); err == nil && i.IsDir() {
		return nil, &os.PathError{Op: "write", Path: path, Err: errors.New("is a directory")}
	} else if err == nil && !i.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &output{path: path, f: f}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, &os.PathError{Op: "write", Path: path, Err: errors.Unwrap(err)}
	}
	t.path = f.Name()
	return &output{path, f, t}, nil
}

// write fills the file with what fill writes and gives it its name.
func (o *output) write(fill func(io.Writer) error) error {
	if o.f == nil {
		return nil
	}
	if err := errors.Join(fill(o.f), o.f.Close()); err != nil || o.temp == nil {
		return err
	}
	o.temp.mu.Lock()
	defer o.temp.mu.Unlock()
	if o.temp.path == "" {
		return errors.New("removed while it was being written")
	}
	if err := errors.Join(os.Chmod(o.temp.path, 0o644), os.Rename(o.temp.path, o.path)); err != nil {
		return err
	}
	o.temp.path = ""
	return nil
}
