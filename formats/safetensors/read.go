// Reading.

package safetensors

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/grow"
)

// Options of NewReader and Read.
type Options struct {
	Name   string         // of the file, for errors
	Limits formats.Limits // Bytes bounds the tensors that are read, all together
}

// Reader goes through a file once, tensor by tensor in the order of their bytes.
type Reader struct {
	in       io.Reader
	opt      Options
	metadata map[string]string
	left     []span // tensors to come
	now      span
	unread   int64 // bytes of now
	bytes    int64 // of the tensors read so far
}

// NewReader reads the header. Errors are one line that starts with the file's name.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	if o.Name == "" {
		o.Name = "input"
	}
	metadata, spans, err := readHeader(r, o.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	return &Reader{in: r, opt: o, metadata: metadata, left: spans}, nil
}

// Metadata returns the metadata of the file.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Left returns the tensors that Next has not reached yet.
func (r *Reader) Left() []Info {
	infos := make([]Info, len(r.left))
	for i, s := range r.left {
		infos[i] = s.Info
	}
	return infos
}

// Next goes to the next tensor. It skips what was not read of the one before. After the last tensor it checks that the
// file ends there, and returns io.EOF.
func (r *Reader) Next() (Info, error) {
	if n, err := io.CopyN(io.Discard, r.in, r.unread); err != nil {
		r.unread -= n
		return Info{}, r.fail(err)
	}
	r.unread = 0
	if len(r.left) == 0 {
		return Info{}, r.end()
	}
	r.now, r.left = r.left[0], r.left[1:]
	r.unread = r.now.end - r.now.begin
	return r.now.Info, nil
}

// end returns io.EOF if the file ends here.
func (r *Reader) end() error {
	var one [1]byte
	switch _, err := io.ReadFull(r.in, one[:]); {
	case err == nil:
		return fmt.Errorf("%s: goes on behind the last tensor", r.opt.Name)
	case !errors.Is(err, io.EOF):
		return r.fail(err)
	}
	return io.EOF
}

func (r *Reader) fail(err error) error {
	return fmt.Errorf("%s: %w", r.opt.Name, cutOff(err, fmt.Sprintf("tensor %q", r.now.Name)))
}

// Data reads the elements of the current tensor. Memory grows with what is read.
func (r *Reader) Data() ([]byte, error) {
	n := r.now.end - r.now.begin
	if r.unread != n {
		return nil, fmt.Errorf("%s: tensor %q was read before", r.opt.Name, r.now.Name)
	}
	if err := r.spend(n); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", r.opt.Name, r.now.Name, err)
	}
	var words []uint64 // so that the bytes are aligned for any type
	for r.unread > 0 {
		words = grow.By(words, 1, (n+7)/8)
		words = words[:cap(words)]
		data := bytesOf(words)[n-r.unread : min(n, 8*int64(len(words)))]
		got, err := io.ReadFull(r.in, data)
		r.unread -= int64(got)
		if err != nil {
			return nil, r.fail(err)
		}
	}
	return bytesOf(words)[:n], nil
}

// spend counts n bytes of memory, and refuses what exceeds the limit.
func (r *Reader) spend(n int64) error {
	limit := r.opt.Limits.WithDefaults().Bytes
	switch {
	case n <= limit-r.bytes:
		r.bytes += n
		return nil
	case r.bytes == 0:
		return fmt.Errorf("%d bytes are %w of %d", n, formats.ErrMemory, limit)
	}
	return fmt.Errorf("%d bytes after %d in other tensors are %w of %d", n, r.bytes, formats.ErrMemory, limit)
}

func bytesOf(words []uint64) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}

// Read reads a whole file.
func Read(in io.Reader, o Options) (*File, error) {
	r, err := NewReader(in, o)
	if err != nil {
		return nil, err
	}
	return r.file()
}

// file reads all tensors, unless they exceed the limit together.
func (r *Reader) file() (*File, error) {
	if last := len(r.left) - 1; last >= 0 {
		if all, limit := r.left[last].end, r.opt.Limits.WithDefaults().Bytes; all > limit {
			return nil, fmt.Errorf("%s: tensors of %d bytes are %w of %d", r.opt.Name, all, formats.ErrMemory, limit)
		}
	}
	f := &File{Metadata: r.metadata}
	for {
		info, err := r.Next()
		if err == io.EOF {
			return f, nil
		} else if err != nil {
			return nil, err
		}
		data, err := r.Data()
		if err != nil {
			return nil, err
		}
		f.Tensors = append(f.Tensors, Tensor{info, data})
	}
}
