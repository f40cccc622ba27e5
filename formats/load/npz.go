// SciPy archives: read in place, or by way of a temporary file when the input cannot seek.

package load

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

// readNPZ reads an archive: f itself if that is a regular file that starts as one, else plain.
func readNPZ[V npy.Float](s *source, f contents, regular bool, plain io.Reader) (formats.Encoded, error) {
	opt := npy.Options{Name: s.name, Limits: s.Limits, Duplicates: s.Duplicates, Merged: s.Merged, Loss: s.Loss}
	head := make([]byte, 2)
	if _, err := f.ReadAt(head, 0); regular && err == nil && string(head) == zipMagic[:2] {
		return npy.OpenSparseAs[V](&sourceAt{source: s, f: f}, s.total, opt)
	}
	tmp, size, err := s.spool(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	defer os.Remove(tmp.Name()) // where spool could not
	defer tmp.Close()
	return npy.OpenSparseAs[V](tmp, size, opt)
}

// spool copies plain to a temporary file, which the caller closes.
func (s *source) spool(plain io.Reader) (tmp *os.File, size int64, err error) {
	tmp, err = os.CreateTemp("", "spmm-*.npz")
	if err != nil {
		return nil, 0, err
	}
	os.Remove(tmp.Name()) // it stays while it is open, and goes with the process: not on Windows
	limit := s.Limits.WithDefaults().Bytes
	size, err = io.Copy(tmp, io.LimitReader(plain, limit+1))
	if err == nil && size > limit {
		err = fmt.Errorf("is, decompressed, %w of %d bytes", formats.ErrMemory, limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("compressed data is cut off")
	}
	if err != nil {
		tmp.Close()
		os.Remove(tmp.Name())
		return nil, 0, err
	}
	return tmp, size, nil
}

// sourceAt reads a file at any place, unless the context is done, and reports progress.
type sourceAt struct {
	*source
	f    contents
	read int64
}

func (s *sourceAt) ReadAt(p []byte, off int64) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.f.ReadAt(p, off)
	s.read += int64(n)
	if s.done = max(s.done, min(s.total, s.read)); s.Progress != nil && n > 0 {
		s.Progress(s.done, s.total)
	}
	return n, err
}
