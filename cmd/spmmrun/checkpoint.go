// Checkpoints of spmmrun propagate: a folder with the state of one step, and a description of it that is replaced at once.

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

// checkpointFile describes the checkpoint of a folder. It is renamed into place when the state is there.
const checkpointFile = "checkpoint.json"

// checkpoint is what that file says.
type checkpoint struct {
	Job    checkpointJob `json:"job"`
	Step   int           `json:"step"`
	File   string        `json:"file"`   // of X, an .npy beside it
	SHA256 string        `json:"sha256"` // of that file
}

// checkpointJob is what X after a step is a function of.
type checkpointJob struct {
	Graph     string  `json:"graph"` // a digest of the normalised matrix
	X0        string  `json:"x0"`    // of X0
	Vertices  int     `json:"vertices"`
	Cols      int     `json:"cols"`
	Restart   float32 `json:"restart"`
	Mode      string  `json:"mode"`
	P         string  `json:"p,omitempty"`
	Format    string  `json:"format"`
	Normalise string  `json:"normalise"`
}

// checkpoints is the folder of a job; rank 0 reads and writes it.
type checkpoints struct {
	dir string
	job checkpointJob
}

// resume opens the folder, and returns this rank's rows of its checkpoint, if it has one. Errors are agreed on.
func (g *propagation) resume(r *ranks, s *state) (*checkpoints, *formats.Dense[float32], error) {
	k := &checkpoints{dir: g.checkpoint, job: checkpointJob{
		Vertices: s.share.A.Cols, Cols: g.cols, Restart: g.restart, Mode: g.mode, Format: g.format, Normalise: g.normalise,
	}}
	if g.mode == reproducible {
		k.job.P = g.p
	}
	sums := []int64{digestRows(s.share), digestDense(s.share.First, s.host)}
	if err := r.AllReduce(sums, comm.Sum); err != nil {
		return nil, nil, err
	}
	k.job.Graph, k.job.X0 = fmt.Sprintf("%016x", uint64(sums[0])), fmt.Sprintf("%016x", uint64(sums[1]))
	var x *formats.Dense[float32]
	var err error
	step := []int64{0}
	if r.Rank() == 0 {
		var at int
		x, at, err = k.open(g.steps)
		step[0] = int64(at)
	}
	if err := r.agree(err); err != nil {
		return nil, nil, err
	}
	if err := r.AllReduce(step, comm.Max); err != nil || step[0] == 0 {
		return k, nil, err
	}
	s.step = int(step[0])
	mine, err := dist.Scatter(r, s.plan.Shares(), x, g.cols)
	return k, mine, err
}

// open makes the folder, or reads its checkpoint, which must be of the same job and not beyond its last step. Step 0 says that
// there is none.
func (k *checkpoints) open(steps int) (x *formats.Dense[float32], step int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("--checkpoint %s: %w", k.dir, err)
		}
	}()
	if err := os.MkdirAll(k.dir, 0o777); err != nil {
		return nil, 0, unpathed(err)
	}
	text, err := readSmall(filepath.Join(k.dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, unpathed(err)
	}
	c, err := k.parse(text, steps)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(filepath.Join(k.dir, c.File))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", c.File, unpathed(err))
	}
	defer f.Close()
	x, err = k.read(c, f)
	return x, c.Step, err
}

// parse reads the description of a checkpoint, which must be one that open may go on with.
func (k *checkpoints) parse(text []byte, steps int) (c checkpoint, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s is damaged: %w", checkpointFile, err)
	}
	switch {
	case c.Job != k.job:
		return c, fmt.Errorf("it has a checkpoint of another job (%s): use another folder", difference(c.Job, k.job))
	case c.Step < 1 || c.File != filepath.Base(c.File) || !strings.HasSuffix(c.File, ".npy"):
		return c, fmt.Errorf("%s is damaged: step %d in file %q", checkpointFile, c.Step, c.File)
	case c.Step > steps:
		return c, fmt.Errorf("it has a checkpoint of step %d, beyond --steps %d", c.Step, steps)
	}
	return c, nil
}

// readSmall reads a file that should be small.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// unpathed is an error of a file without its path.
func unpathed(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// difference names what two jobs differ in.
func difference(x, y checkpointJob) string {
	for _, d := range []struct {
		name string
		x, y any
	}{
		{"vertices", x.Vertices, y.Vertices}, {"--cols", x.Cols, y.Cols}, {"--restart", x.Restart, y.Restart}, {"--mode", x.Mode, y.Mode},
		{"--p", x.P, y.P}, {"--format", x.Format, y.Format}, {"--normalise", x.Normalise, y.Normalise}, {"the matrix", x.Graph, y.Graph}, {"X0", x.X0, y.X0},
	} {
		if d.x != d.y {
			return fmt.Sprintf("%s: %v there, %v here", d.name, d.x, d.y)
		}
	}
	return ""
}

// read reads X, which must be the file that was written.
func (k *checkpoints) read(c checkpoint, f io.Reader) (*formats.Dense[float32], error) {
	h := sha256.New()
	size := 4 * int64(k.job.Vertices) * int64(k.job.Cols)
	x, err := npy.Read(io.TeeReader(f, h), npy.Options{Name: c.File, Limits: formats.Limits{Bytes: size}})
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	if hex.EncodeToString(h.Sum(nil)) != c.SHA256 || x.Rows != k.job.Vertices || x.Cols != k.job.Cols || x.ColMajor {
		return nil, fmt.Errorf("%s is not the file that was written", c.File)
	}
	return x, nil
}

// save keeps the state after a step. Either the new checkpoint is there afterwards or the one before: files are complete on
// the disk before they get their names. Errors are agreed on.
func (k *checkpoints) save(ctx context.Context, r *ranks, s *state) error {
	x, err := s.download(ctx, s.x)
	if err := r.agree(err); err != nil {
		return err
	}
	c := checkpoint{Job: k.job, Step: s.step, File: fmt.Sprintf("%s%d.npy", statePrefix, s.step)}
	rows := s.plan.Shares()
	collect := func(f func(*formats.Dense[float32]) error) error { return dist.Collect(r, rows, x, f) }
	if r.Rank() != 0 {
		return r.agree(collect(nil))
	}
	h := sha256.New()
	err = k.replace(c.File, func(w io.Writer) error {
		return writeArray(io.MultiWriter(w, h), rows.Rows(), x.Cols, collect)
	}, collect)
	if err == nil {
		c.SHA256 = sum(h)
		var text []byte
		if text, err = json.MarshalIndent(c, "", "  "); err == nil {
			err = k.replace(checkpointFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err }, nil)
		}
	}
	if err == nil {
		k.removeOthers(c.File)
	} else {
		err = fmt.Errorf("--checkpoint %s: %w", k.dir, unpathed(err))
	}
	return r.agree(err)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// replace writes a file of the folder that appears, in place of one of that name, when it is complete on the disk. Where it
// cannot even be begun, instead is called, if there is one: ranks wait for it.
func (k *checkpoints) replace(name string, fill func(io.Writer) error, instead func(func(*formats.Dense[float32]) error) error) error {
	f, err := os.CreateTemp(k.dir, temporaryPrefix+name+".*")
	if err != nil {
		if instead != nil {
			return cmp.Or(instead(func(*formats.Dense[float32]) error { return err }), err) // err where there are no rows
		}
		return err
	}
	defer os.Remove(f.Name()) // nothing, once it is renamed
	err = errors.Join(fill(f), f.Sync(), f.Chmod(0o644))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(k.dir, name)); err != nil {
		return err
	}
	if d, err := os.Open(k.dir); err == nil { // the name too; not every system can
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// What the names of states and of unfinished files begin with. The folder may hold files of others, which stay.
const (
	statePrefix     = "checkpoint-step-"
	temporaryPrefix = ".spmmrun-"
)

// removeOthers removes states of other steps, and what a process that was killed has left behind.
func (k *checkpoints) removeOthers(keep string) {
	for _, pattern := range []string{statePrefix + "*.npy", temporaryPrefix + "*"} {
		names, _ := filepath.Glob(filepath.Join(escaped(k.dir), pattern))
		for _, name := range names {
			if filepath.Base(name) != keep {
				os.Remove(name)
			}
		}
	}
}

// escaped is a folder's name as a pattern for itself.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// digestRows adds up hashes of a share's entries: the sum over ranks does not depend on how the matrix is shared.
func digestRows(s dist.Share[float32]) (sum int64) {
	for i := range s.A.Rows {
		for e := s.A.RowPtr[i]; e < s.A.RowPtr[i+1]; e++ {
			sum += int64(mixed(uint64(s.First+i)<<32|uint64(s.A.ColIdx[e]), s.A.Val[e]))
		}
	}
	return sum
}

// digestDense does that for rows of a dense matrix from row first on.
func digestDense(first int, d *formats.Dense[float32]) (sum int64) {
	for i := range d.Rows {
		for j, x := range d.Line(i) {
			sum += int64(mixed(uint64(first+i)<<32|uint64(j), x))
		}
	}
	return sum
}

// mixed is a hash of an element and its place: SplitMix64's output function, twice.
func mixed(place uint64, x float32) uint64 {
	z := place*0x9e3779b97f4a7c15 + uint64(math.Float32bits(x))
	for range 2 {
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return z
}
