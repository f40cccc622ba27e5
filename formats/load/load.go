// Package load reads a sparse matrix from a file of any supported type, from standard input, or from
// a generator's spec.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/internal/text"
	"github.com/spmmrun/spmm/formats/mtx"
	"github.com/spmmrun/spmm/formats/npy"
	"github.com/spmmrun/spmm/formats/smtx"
	"github.com/spmmrun/spmm/internal/memory"
)

// Options of File.
type Options struct {
	Limits     formats.Limits // if Bytes is 0, the memory that the process may still take bounds it too
	Duplicates formats.Duplicates
	// Merged, if not nil, is set to the number of entries that were added to another at the same place.
	Merged *int64
	// Loss, if not nil, is set to what rounding a file's float64 data to float32 lost: those of NumPy's, SciPy's and
	// safetensors' files. Text is rounded once as it is read, and not counted.
	Loss *formats.Loss
	// Float64 has Open keep numbers that are read as float64, where they are otherwise rounded to float32: those of text,
	// and f8 of NumPy, SciPy and dense tensors. A generated matrix, and values drawn for a pattern, are float32, exactly.
	Float64 bool
	// Seed is that of the values of pattern files and of gen: specs that have none of their own.
	Seed uint64
	// Pattern says how to draw the values of files that store none; nil: 1 for Matrix Market,
	// normal ones for .smtx.
	Pattern *gen.Values
	// Progress, if not nil, is called with how many bytes of the file have been read, of how many; total
	// is 0 if that is not known. It is called from the goroutine that called File.
	Progress func(done, total int64)
}

// File reads the matrix named by path: a file, "-" for standard input, or a spec "gen:…" (package gen).
// The content tells the type, after decompression if that is gzip, else the name's end:
//
//	Matrix Market   .mtx, .mtx.gz (of a symmetric matrix both triangles, though the file lists one)
//	DLMC            .smtx
//	SciPy           .npz (csr, csc or coo)
//	NumPy           .npy (a dense matrix; its entries that are not 0)
//	safetensors     .safetensors (a sparse matrix as package safetensors documents, in any format; or
//	                a dense one, its entries that are not 0: FILE.safetensors#TENSOR, where it has several)
//
// Errors are one line that starts with the path. Done contexts end the reading of data.
func File(ctx context.Context, path string, o Options) (*formats.CSR[float32], error) {
	e, err := Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return formats.Convert[float32](e.Sparse()), nil
}

// Open reads the same files as File, but leaves the matrix in the format in which the file holds it. That is the format
// of a .safetensors file, with its own element type; a *formats.CSC for SciPy's csc; and CSR for all others, of
// float32, or of float64 with Options.Float64.
//
// If Limits.Bytes is 0, a matrix is refused if it, or reading it, takes more memory than there is.
func Open(ctx context.Context, path string, o Options) (formats.Encoded, error) {
	if o.Merged != nil {
		*o.Merged = 0
	}
	if o.Loss != nil {
		*o.Loss = formats.Loss{}
	}
	share := formats.ReadingBytes
	if strings.HasPrefix(path, gen.Prefix) { // which takes no more on the way
		share = func(memory int64) int64 { return memory }
	}
	free := memory.Available()
	if free == 0 || o.Limits.Bytes > 0 {
		return open(ctx, path, o)
	}
	room := share(free)
	if o.Float64 { // limits count 8 bytes an entry, but it takes 12
		room = room / 3 * 2
	}
	o.Limits.Bytes = min(o.Limits.WithDefaults().Bytes, room)
	e, err := open(ctx, path, o)
	if errors.Is(err, formats.ErrMemory) {
		err = fmt.Errorf("%w, which %d MiB of available memory allow", err, free>>20)
	}
	return e, err
}

// Bytes reads the contents of a file, as Open reads a file of that name.
func Bytes(ctx context.Context, name string, contents []byte, o Options) (formats.Encoded, error) {
	s := &source{ctx: ctx, name: name, Options: o}
	if o.Merged != nil {
		*o.Merged = 0
	}
	if o.Loss != nil {
		*o.Loss = formats.Loss{}
	}
	return read(bytes.NewReader(contents), int64(len(contents)), s)
}

// open opens what Open does.
func open(ctx context.Context, path string, o Options) (formats.Encoded, error) {
	if strings.HasPrefix(path, gen.Prefix) {
		s, err := gen.Parse(path, o.Seed)
		if err != nil {
			return nil, err
		}
		return o.widen(plain(s.Generate(ctx, o.Limits)))
	}
	s := &source{ctx: ctx, name: "standard input", Options: o}
	if path == "-" {
		return read(os.Stdin, size(os.Stdin), s)
	}
	s.name = path
	f, err := openFile(path)
	if file, tensor, ok := strings.Cut(path, ".safetensors#"); ok && err != nil {
		s.tensor = tensor
		f, err = openFile(file + ".safetensors")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	return read(f, size(f), s)
}

// plain is Open's result for a CSR matrix.
func plain[V npy.Float](a *formats.CSR[V], err error) (formats.Encoded, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// widen makes a generated matrix float64 if that is asked for.
func (o Options) widen(a formats.Encoded, err error) (formats.Encoded, error) {
	if err != nil || !o.Float64 {
		return a, err
	}
	return formats.Convert[float64](a.Sparse()), nil
}

// openFile opens a file that can be read, or says without the path why not.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return nil, pe.Err
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, errors.New("is a directory")
	}
	return f, nil
}

// source is the input and its limits.
type source struct {
	Options
	ctx         context.Context
	name        string
	tensor      string // of a file that may hold several
	in          io.Reader
	done, total int64
}

// Read reads, unless the context is done, and reports progress.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.in.Read(p)
	if s.done += int64(n); s.Progress != nil && n > 0 {
		s.Progress(s.done, s.total)
	}
	return n, err
}

// contents is an open file, or what is like one.
type contents interface {
	io.Reader
	io.ReaderAt
}

// size returns how many bytes a file has; -1 if it can only be read from its beginning to its end.
func size(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// read finds out the type of a file of that size and reads it.
func read(f contents, size int64, s *source) (formats.Encoded, error) {
	s.in = f
	s.total = max(0, size)
	data, err := text.Gunzip(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	head, err := data.Peek(512)
	switch {
	case len(head) == 0 && err == io.EOF:
		return nil, fmt.Errorf("%s: empty file", s.name)
	case len(head) == 0:
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	kind, err := sniff(head, s.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if s.Float64 {
		return decode[float64](s, kind, f, size, data)
	}
	return decode[float32](s, kind, f, size, data)
}

// decode reads a file of a known type, with numbers of V where it does not say which they are.
func decode[V npy.Float](s *source, k kind, f contents, size int64, data io.Reader) (formats.Encoded, error) {
	switch k {
	case kindNPZ:
		return readNPZ[V](s, f, size >= 0, data)
	case kindNPY:
		return plain(readNPY[V](s, data))
	case kindSafetensors:
		return readSafetensors[V](s, data)
	case kindSMTX:
		v := gen.Values{}
		if s.Pattern != nil {
			v = *s.Pattern
		}
		return s.widen(plain(smtx.Read(data, smtx.Options{Name: s.name, Limits: s.Limits, Value: s.values(v)})))
	}
	opt := mtx.Options{Name: s.name, Limits: s.Limits, Duplicates: s.Duplicates, Merged: s.Merged}
	if s.Pattern != nil {
		opt.Pattern = s.values(*s.Pattern)
	}
	return plain(mtx.ReadAs[V](data, opt))
}

// readNPY reads a dense matrix and keeps what is not 0.
func readNPY[V npy.Float](s *source, data io.Reader) (*formats.CSR[V], error) {
	d, err := npy.ReadAs[V](data, npy.Options{Name: s.name, Limits: s.Limits, Loss: s.Loss})
	if err != nil {
		return nil, err
	}
	return sparse(s, d)
}

// sparse keeps what is not 0.
func sparse[V npy.Float](s *source, d *formats.Dense[V]) (*formats.CSR[V], error) {
	nnz := int64(0)
	for _, v := range d.Data {
		if v != 0 {
			nnz++
		}
	}
	if err := s.Limits.Check(int64(d.Rows), int64(d.Cols), nnz); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return d.ToCSR(), nil
}

func (s *source) values(v gen.Values) func(i, j int) float32 {
	return func(i, j int) float32 { return v.Entry(s.Seed, i, j) }
}
