// Sparse matrices in files: the convention of the package comment.

package safetensors

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Matrix is a sparse matrix as a file holds it, its arrays not looked at yet.
type Matrix struct {
	Format     string
	Version    int // of the format's arrays
	Type       dtype.Type
	Rows, Cols int
	NNZ        int64
	Options    map[string]int // the format's parameters
	Tensors    []Tensor
}

// Format says how the matrices of a format are kept in files. Each format's package has one, called
// Container.
type Format struct {
	Name    string
	Version int
	Options []Option // parameters of Encode, which files keep
	// Encode packs a matrix; options has a number for each of Options.
	Encode func(a formats.Sparse, options map[string]int) (Encoded, error)
	// Open makes a matrix of a file's arrays, which it need not validate.
	Open func(m *Matrix) (Encoded, error)
}

// Option is a parameter of a format.
type Option struct {
	Name    string
	Default int
	Usage   string
}

// Encoded is a matrix that can be written to a file.
type Encoded interface {
	formats.Encoded
	// Container returns the matrix as a file holds it, sharing its arrays.
	Container() *Matrix
}

// Encode packs a matrix in format f. Options that are not given take their defaults; one that the format
// does not have is an error.
func Encode(f Format, a formats.Sparse, options map[string]int) (Encoded, error) {
	all := map[string]int{}
	for _, o := range f.Options {
		all[o.Name] = o.Default
	}
	for name, n := range options {
		if _, ok := all[name]; !ok {
			return nil, fmt.Errorf("format %s has no option %q", f.Name, name)
		}
		all[name] = n
	}
	return f.Encode(a, all)
}

// Open returns the matrix that m holds, validated. It must be of format f.
func Open(f Format, m *Matrix) (Encoded, error) {
	if m.Format != f.Name || m.Version != f.Version {
		return nil, fmt.Errorf("format %s, version %d: this version of the program reads %s, version %d", m.Format, m.Version, f.Name, f.Version)
	}
	e, err := f.Open(m)
	if err != nil {
		return nil, err
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if n := e.NNZ(); n != m.NNZ {
		return nil, fmt.Errorf("%d entries, and the header says %d", n, m.NNZ)
	}
	return e, nil
}

// Array gives *s the elements of a tensor, sharing its memory. One that is missing or has another type
// is an error.
func Array[E Elem](m *Matrix, name string, s *[]E) error {
	for _, t := range m.Tensors {
		if t.Name == name {
			var err error
			*s, err = Elements[E](t)
			return err
		}
	}
	return fmt.Errorf("no tensor %q, which format %s has", name, m.Format)
}

// The keys of the metadata.
const (
	keyFormat  = "format"
	keyVersion = "version"
	keyType    = "dtype"
	keyRows    = "rows"
	keyCols    = "cols"
	keyNNZ     = "nnz"
)

// HoldsMatrix tells whether metadata are those of a sparse matrix. Files by others have a "format", too.
func HoldsMatrix(metadata map[string]string) bool {
	for _, key := range []string{keyFormat, keyVersion, keyRows, keyCols, keyNNZ} {
		if _, ok := metadata[key]; !ok {
			return false
		}
	}
	return true
}

// ReadMatrix reads the sparse matrix that a file holds.
func ReadMatrix(in io.Reader, o Options) (*Matrix, error) {
	r, err := NewReader(in, o)
	if err != nil {
		return nil, err
	}
	return r.Matrix()
}

// Matrix reads the sparse matrix that the file holds. Next must not have been called.
func (r *Reader) Matrix() (*Matrix, error) {
	m, err := describe(r.metadata, r.opt.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.opt.Name, err)
	}
	f, err := r.file()
	if err != nil {
		return nil, err
	}
	m.Tensors = f.Tensors
	return m, nil
}

// describe makes a Matrix of metadata.
func describe(metadata map[string]string, l formats.Limits) (*Matrix, error) {
	if !HoldsMatrix(metadata) {
		return nil, fmt.Errorf("holds no sparse matrix: its metadata lack one of %s, %s, %s, %s, %s", keyFormat, keyVersion, keyRows, keyCols, keyNNZ)
	}
	m := &Matrix{Format: metadata[keyFormat], Options: map[string]int{}}
	number := func(key string) (n int64, err error) {
		if n, err = strconv.ParseInt(metadata[key], 10, 64); err != nil || n < 0 {
			return 0, fmt.Errorf("%s %q in the metadata is no number", key, metadata[key])
		}
		return n, nil
	}
	version, err1 := number(keyVersion)
	rows, err2 := number(keyRows)
	cols, err3 := number(keyCols)
	nnz, err4 := number(keyNNZ)
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if err := l.Check(rows, cols, nnz); err != nil {
		return nil, err
	}
	m.Version, m.Rows, m.Cols, m.NNZ = int(version), int(rows), int(cols), nnz
	var err error
	m.Type, err = dtype.Parse(metadata[keyType])
	if err != nil || !slices.Contains([]dtype.Type{dtype.F16, dtype.BF16, dtype.F32}, m.Type) {
		return nil, fmt.Errorf("%s %q in the metadata is none of f16, bf16, f32", keyType, metadata[keyType])
	}
	for key, text := range metadata {
		if n, err := strconv.Atoi(text); err == nil && !isKey(key) {
			m.Options[key] = n
		}
	}
	return m, nil
}

func isKey(key string) bool {
	switch key {
	case keyFormat, keyVersion, keyType, keyRows, keyCols, keyNNZ:
		return true
	}
	return false
}

// File returns the file that holds the matrix.
func (m *Matrix) File() *File {
	f := &File{Tensors: m.Tensors, Metadata: map[string]string{
		keyFormat: m.Format, keyVersion: strconv.Itoa(m.Version), keyType: m.Type.String(),
		keyRows: strconv.Itoa(m.Rows), keyCols: strconv.Itoa(m.Cols), keyNNZ: strconv.FormatInt(m.NNZ, 10),
	}}
	for name, n := range m.Options {
		f.Metadata[name] = strconv.Itoa(n)
	}
	return f
}

// WriteMatrix writes a matrix to a file.
func WriteMatrix(w io.Writer, e Encoded) error { return Write(w, e.Container().File()) }
