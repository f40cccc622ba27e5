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
	"github.com/spmmrun/spmm/formats/half"
)

// The keys of the metadata.
const (
	keyFormat  = "format"
	keyVersion = "version"
	keyType    = "dtype"
	keyRows    = "rows"
	keyCols    = "cols"
	keyNNZ     = "nnz"
)

// HoldsMatrix reports whether metadata are those of a sparse matrix. Files of other programs may have a "format", too.
func HoldsMatrix(metadata map[string]string) bool {
	for _, key := range []string{keyFormat, keyVersion, keyRows, keyCols, keyNNZ} {
		if _, ok := metadata[key]; !ok {
			return false
		}
	}
	return true
}

// ReadMatrix reads the sparse matrix that a file holds.
func ReadMatrix(in io.Reader, o Options) (*formats.Container, error) {
	r, err := NewReader(in, o)
	if err != nil {
		return nil, err
	}
	return r.Matrix()
}

// Matrix reads the sparse matrix that the file holds. Next must not have been called.
func (r *Reader) Matrix() (*formats.Container, error) {
	m, err := describe(r.metadata, r.opt.Limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.opt.Name, err)
	}
	f, err := r.file()
	if err != nil {
		return nil, err
	}
	for _, t := range f.Tensors {
		m.Arrays = append(m.Arrays, formats.Array{Name: t.Name, Data: elements(t)})
	}
	return m, nil
}

// describe makes a Container without arrays of metadata.
func describe(metadata map[string]string, l formats.Limits) (*formats.Container, error) {
	if !HoldsMatrix(metadata) {
		return nil, fmt.Errorf("holds no sparse matrix: its metadata lack one of %s, %s, %s, %s, %s", keyFormat, keyVersion, keyRows, keyCols, keyNNZ)
	}
	m := &formats.Container{Format: metadata[keyFormat], Options: map[string]int{}}
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
	if err != nil || !slices.Contains([]dtype.Type{dtype.F16, dtype.BF16, dtype.F32, dtype.F64, dtype.S8, dtype.E4M3},
		m.Type) {
		return nil, fmt.Errorf("%s %q in the metadata is none of f16, bf16, f32, f64, s8, e4m3", keyType, metadata[keyType])
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

// WriteMatrix writes a matrix to a file.
func WriteMatrix(w io.Writer, e formats.Encoded) error {
	return WriteContainer(w, formats.NewContainer(e))
}

// WriteContainer writes a container to a file, whether its arrays are valid or not.
func WriteContainer(w io.Writer, m *formats.Container) error {
	f := &File{Metadata: map[string]string{
		keyFormat: m.Format, keyVersion: strconv.Itoa(m.Version), keyType: m.Type.String(),
		keyRows: strconv.Itoa(m.Rows), keyCols: strconv.Itoa(m.Cols), keyNNZ: strconv.FormatInt(m.NNZ, 10),
	}}
	for name, n := range m.Options {
		f.Metadata[name] = strconv.Itoa(n)
	}
	for _, a := range m.Arrays {
		t, err := newTensor(a)
		if err != nil {
			return err
		}
		f.Tensors = append(f.Tensors, t)
	}
	return Write(w, f)
}

// newTensor returns an array as a tensor that shares its memory.
func newTensor(a formats.Array) (Tensor, error) {
	switch s := a.Data.(type) {
	case []uint8:
		return NewTensor(a.Name, s), nil
	case []uint32:
		return NewTensor(a.Name, s), nil
	case []int32:
		return NewTensor(a.Name, s), nil
	case []int64:
		return NewTensor(a.Name, s), nil
	case []half.F16:
		return NewTensor(a.Name, s), nil
	case []half.BF16:
		return NewTensor(a.Name, s), nil
	case []float32:
		return NewTensor(a.Name, s), nil
	case []float64:
		return NewTensor(a.Name, s), nil
	}
	return Tensor{}, fmt.Errorf("array %q: a file cannot hold a %T", a.Name, a.Data)
}

// elements returns a tensor's elements as a slice that shares its memory: of bytes, where no format has
// arrays of the type.
func elements(t Tensor) any {
	switch t.Type {
	case U8:
		return cast[uint8](t)
	case U32:
		return cast[uint32](t)
	case I32:
		return cast[int32](t)
	case I64:
		return cast[int64](t)
	case F16:
		return cast[half.F16](t)
	case BF16:
		return cast[half.BF16](t)
	case F32:
		return cast[float32](t)
	case F64:
		return cast[float64](t)
	}
	return t.Data
}

// cast returns the elements of a tensor of type E.
func cast[E formats.Elem](t Tensor) []E {
	s, _ := Elements[E](t) // the type was looked at
	return s
}
