// Package checkpoint keeps the state of iterated work, a dense matrix after a step, in a folder: the matrix in one
// file, and a description that is renamed into place when that file is complete on the disk. Interrupted work finds the
// last state that was complete.
package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/internal/printable"
)

// Names in the folder, which may hold files of others, which stay.
const (
	descriptionFile = "checkpoint.json"
	statePrefix     = "checkpoint-step-"
	temporaryPrefix = ".spmmrun-"
)

// Job names all that the state after a step depends on, with its values. A folder holds the checkpoint of one job.
type Job map[string]string

// Folder is where a job keeps its state, a matrix of Rows×Cols.
type Folder struct {
	Dir        string
	Job        Job
	Rows, Cols int
}

// description is the contents of the file of that name.
type description struct {
	Job    Job    `json:"job"`
	Step   int    `json:"step"`
	File   string `json:"file"`   // of the state, an .npy in the same folder
	SHA256 string `json:"sha256"` // of that file
}

// Open makes the folder, or reads the state that is there and its step, which must be of the same job and not beyond its
// last step. Where there is none the step is 0.
func (f *Folder) Open(last int) (x *formats.Dense[float32], step int, err error) {
	if err := os.MkdirAll(f.Dir, 0o777); err != nil {
		return nil, 0, withoutPath(err)
	}
	text, err := os.Open(filepath.Join(f.Dir, descriptionFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, withoutPath(err)
	}
	defer text.Close()
	d, err := f.parse(text, last)
	if err != nil {
		return nil, 0, err
	}
	file, err := os.Open(filepath.Join(f.Dir, d.File))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", d.File, withoutPath(err))
	}
	defer file.Close()
	x, err = f.read(d, file)
	return x, d.Step, err
}

// parse reads a description, which must be one of this job.
func (f *Folder) parse(r io.Reader, last int) (d description, err error) {
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err != nil {
		return d, withoutPath(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("%s is damaged: %w", descriptionFile, err)
	}
	switch {
	case !maps.Equal(d.Job, f.Job):
		return d, fmt.Errorf("it has a checkpoint of another job (%s): use another folder", difference(d.Job, f.Job))
	case d.Step < 1 || d.File != filepath.Base(d.File) || !strings.HasSuffix(d.File, ".npy"):
		return d, fmt.Errorf("%s is damaged: step %d in file %q", descriptionFile, d.Step, d.File)
	case d.Step > last:
		return d, fmt.Errorf("it has a checkpoint of step %d, beyond --steps %d", d.Step, last)
	}
	return d, nil
}

// difference names the first entry that two jobs differ in.
func difference(there, here Job) string {
	all := maps.Clone(here)
	maps.Copy(all, there)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if there[name] != here[name] {
			return printable.String(fmt.Sprintf("%s: %s there, %s here", name, given(there, name), given(here, name)))
		}
	}
	return "an entry without a name"
}

func given(j Job, name string) string { return cmp.Or(j[name], "nothing") }

// read reads the state, which must be the file that was written.
func (f *Folder) read(d description, r io.Reader) (*formats.Dense[float32], error) {
	h := sha256.New()
	limits := formats.Limits{Bytes: 4 * int64(f.Rows) * int64(f.Cols)}
	x, err := npy.Read(io.TeeReader(r, h), npy.Options{Name: d.File, Limits: limits})
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(h, r); err != nil {
		return nil, err
	}
	if hex.EncodeToString(h.Sum(nil)) != d.SHA256 || x.Rows != f.Rows || x.Cols != f.Cols || x.ColMajor {
		return nil, fmt.Errorf("%s is not the file that was written", d.File)
	}
	return x, nil
}

// withoutPath is an error of a file without its path.
func withoutPath(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Save keeps the state after a step. Either the new state is there afterwards or the one before. rows gives all rows of
// the matrix to a function, in order and some at a time. It is called once, whatever fails: other ranks may wait for
// it.
func (f *Folder) Save(step int, rows func(give func(*formats.Dense[float32]) error) error) error {
	d := description{Job: f.Job, Step: step, File: fmt.Sprintf("%s%d.npy", statePrefix, step)}
	var array *npy.Writer[float32]
	h := sha256.New()
	t, err := f.create(d.File)
	if err == nil {
		array, err = npy.NewWriter[float32](io.MultiWriter(t, h), f.Rows, f.Cols)
	}
	given := rows(func(x *formats.Dense[float32]) error {
		if err != nil {
			return err
		}
		return array.WriteRows(x)
	})
	if err = cmp.Or(err, given); err == nil {
		err = array.Close()
	}
	if err = t.commit(err); err != nil {
		return withoutPath(err)
	}
	d.SHA256 = hex.EncodeToString(h.Sum(nil))
	if err := f.describe(d); err != nil {
		return withoutPath(err)
	}
	f.removeOthers(d.File)
	return nil
}

// describe replaces the description.
func (f *Folder) describe(d description) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	t, err := f.create(descriptionFile)
	if err == nil {
		_, err = t.Write(append(text, '\n'))
	}
	return t.commit(err)
}

// temporary is a file that gets its name when it is complete.
type temporary struct {
	*os.File
	path string
}

// create begins a file of the folder.
func (f *Folder) create(name string) (*temporary, error) {
	file, err := os.CreateTemp(f.Dir, temporaryPrefix+name+".*")
	if err != nil {
		return nil, err
	}
	return &temporary{file, filepath.Join(f.Dir, name)}, nil
}

// commit gives the file its name, in place of one that has it, once it is complete on the disk. If there was an error,
// or no file, it removes the file and returns the first error.
func (t *temporary) commit(err error) error {
	if t == nil {
		return err
	}
	defer os.Remove(t.Name()) // nothing, once it is renamed
	if err == nil {
		err = cmp.Or(t.Sync(), t.Chmod(0o644))
	}
	if err = cmp.Or(err, t.Close()); err != nil {
		return err
	}
	if err := os.Rename(t.Name(), t.path); err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(t.path)); err == nil { // the name too; not every system can
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// removeOthers removes states of other steps, and what a process that was killed has left behind.
func (f *Folder) removeOthers(keep string) {
	entries, _ := os.ReadDir(f.Dir)
	for _, e := range entries {
		name := e.Name()
		state := strings.HasPrefix(name, statePrefix) && strings.HasSuffix(name, ".npy")
		if name != keep && (state || strings.HasPrefix(name, temporaryPrefix)) {
			os.Remove(filepath.Join(f.Dir, name))
		}
	}
}
