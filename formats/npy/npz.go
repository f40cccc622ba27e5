// SciPy's sparse matrices: zip archives of .npy arrays.

package npy

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/inflate"
)

// ReadSparse reads what scipy.sparse.save_npz writes: a csr, csc or coo matrix, compressed or not, of
// size bytes in r. Entries that are not in order are sorted. NaN and infinities are kept; a finite
// value beyond float32 is an error. Errors are one line: NAME: what is wrong.
func ReadSparse(r io.ReaderAt, size int64, o Options) (*formats.CSR[float32], error) {
	a, err := OpenSparse(r, size, o)
	if err != nil {
		return nil, err
	}
	return a.Sparse().(*formats.CSR[float32]), nil
}

// OpenSparse is ReadSparse, but leaves a csc matrix as it is stored: a *formats.CSC[float32]. Any other is a
// *formats.CSR[float32].
func OpenSparse(r io.ReaderAt, size int64, o Options) (formats.Encoded, error) {
	return OpenSparseAs[float32](r, size, o)
}

// OpenSparseAs is OpenSparse with values of type V.
func OpenSparseAs[V Float](r io.ReaderAt, size int64, o Options) (formats.Encoded, error) {
	a, err := readSparse[V](r, size, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(), err)
	}
	return a, nil
}

func readSparse[V Float](r io.ReaderAt, size int64, o Options) (formats.Encoded, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("no .npz data: %w", err)
	}
	z.RegisterDecompressor(zip.Deflate, inflate.Deflate)
	f := &archive[V]{Reader: z, Options: o}
	format, err := f.format()
	if err != nil {
		return nil, err
	}
	rows, cols, err := f.shape()
	if err != nil {
		return nil, err
	}
	switch format {
	case "csr":
		return encoded(f.compressed(rows, cols, f.Limits))
	case "csc":
		return f.columns(rows, cols)
	case "coo":
		return encoded(f.coordinates(rows, cols))
	}
	return nil, fmt.Errorf("sparse format %q is not supported (csr, csc or coo)", cut(format))
}

func encoded[V Float](a *formats.CSR[V], err error) (formats.Encoded, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// archive is an opened .npz file.
type archive[V Float] struct {
	*zip.Reader
	Options
	bytes int64 // of the arrays read so far
}

// member calls read with the named array's contents, and checks that it reads all of them.
func (f *archive[V]) member(name string, read func(r io.Reader, h header) error) error {
	for _, m := range f.File {
		if m.Name != name+".npy" {
			continue
		}
		if err := readMember(m, read); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		return nil
	}
	return fmt.Errorf("no array %q: not written by scipy.sparse.save_npz", name)
}

func readMember(m *zip.File, read func(r io.Reader, h header) error) error {
	rc, err := m.Open()
	if err != nil {
		return err
	}
	defer rc.Close()
	r := bufio.NewReaderSize(rc, blockBytes)
	h, err := readHeader(r)
	if err != nil {
		return err
	}
	if err := read(r, h); err != nil {
		return err
	}
	return atEnd(r) // where zip compares the checksum
}

// format returns the sparse format's name.
func (f *archive[V]) format() (name string, err error) {
	err = f.member("format", func(r io.Reader, h header) error {
		size := h.size
		if h.kind == 'U' {
			size *= 4
		}
		if n, err := h.count(); err != nil || n != 1 || h.kind != 'S' && h.kind != 'U' || size > 256 {
			return errors.New("is not a short text")
		}
		b := make([]byte, size)
		if _, err := io.ReadFull(r, b); err != nil {
			return cutOff(err, "the text")
		}
		name = string(bytes.ReplaceAll(b, []byte{0}, nil)) // padding, and the upper bytes of UTF-32
		return nil
	})
	return name, err
}

func (f *archive[V]) shape() (rows, cols int, err error) {
	shape, err := vector(f, "shape", 2, appendOffsets)
	if err != nil {
		return 0, 0, err
	}
	if err := f.Limits.CheckDims(shape[0], shape[1]); err != nil {
		return 0, 0, err
	}
	return int(shape[0]), int(shape[1]), nil
}

// vector reads an array of one dimension and n elements; n < 0: any number within the limits.
func vector[V Float, E any](f *archive[V], name string, n int64, decode decoder[E]) (out []E, err error) {
	err = f.member(name, func(r io.Reader, h header) (err error) {
		if len(h.shape) != 1 {
			return fmt.Errorf("%d dimensions, want 1", len(h.shape))
		}
		if n >= 0 && h.shape[0] != n {
			return fmt.Errorf("%d elements, want %d", h.shape[0], n)
		}
		if limit := max(n, f.Limits.WithDefaults().NNZ); h.shape[0] > limit {
			return fmt.Errorf("%d elements are beyond the limit of %d", h.shape[0], limit)
		}
		if err := f.spend(h.shape[0], int64(unsafe.Sizeof(*new(E)))); err != nil {
			return err
		}
		out, err = readElements(r, h, decode)
		return err
	})
	return out, err
}

// spend counts the memory of n elements of an array, and refuses it where all arrays together take more than a coo
// matrix at the limit: half as much again as a csr matrix.
func (f *archive[V]) spend(n, size int64) error {
	limit := f.Limits.WithDefaults().Bytes
	if n > math.MaxInt64/size || n*size > limit+limit/2-f.bytes {
		return fmt.Errorf("%d elements after %d bytes of other arrays are %w of %d bytes", n, f.bytes, formats.ErrMemory, limit)
	}
	f.bytes += n * size
	return nil
}

// compressed reads the arrays of a csr matrix. The row pointers come last: how many there may be
// depends on how many entries there are.
func (f *archive[V]) compressed(rows, cols int, lim formats.Limits) (*formats.CSR[V], error) {
	idx, err := vector(f, "indices", -1, appendIndices)
	if err != nil {
		return nil, err
	}
	val, err := vector(f, "data", -1, floats[V](f.Options))
	if err != nil {
		return nil, err
	}
	if err := lim.Check(int64(rows), int64(cols), int64(len(val))); err != nil {
		return nil, err
	}
	ptr, err := vector(f, "indptr", int64(rows)+1, appendOffsets)
	if err != nil {
		return nil, err
	}
	nnz := ptr[rows]
	if nnz < 0 || nnz > int64(min(len(idx), len(val))) {
		return nil, fmt.Errorf("indptr ends at %d, but there are %d indices and %d values", nnz, len(idx), len(val))
	}
	a, err := formats.NewCSR(rows, cols, ptr, fit(idx, nnz), fit(val, nnz), f.Duplicates)
	return f.merged(nnz, a, err)
}

// fit returns the first n elements of s, and keeps no memory for the others, which SciPy ignores too.
func fit[E any](s []E, n int64) []E {
	if n < int64(len(s)) {
		return slices.Clone(s[:n])
	}
	return s
}

// columns reads a csc matrix: the csr arrays of its transpose.
func (f *archive[V]) columns(rows, cols int) (formats.Encoded, error) {
	lim := f.Limits
	lim.Rows, lim.Cols = lim.Cols, lim.Rows
	t, err := f.compressed(cols, rows, lim)
	if err != nil {
		return nil, fmt.Errorf("transposed, as csc is stored: %w", err)
	}
	if err := f.Limits.Check(int64(rows), int64(cols), t.NNZ()); err != nil {
		return nil, err
	}
	return &formats.CSC[V]{Rows: rows, Cols: cols, ColPtr: t.RowPtr, RowIdx: t.ColIdx, Val: t.Val}, nil
}

// coordinates reads the arrays of a coo matrix.
func (f *archive[V]) coordinates(rows, cols int) (*formats.CSR[V], error) {
	val, err := vector(f, "data", -1, floats[V](f.Options))
	if err != nil {
		return nil, err
	}
	n := int64(len(val))
	if err := f.Limits.Check(int64(rows), int64(cols), n); err != nil {
		return nil, err
	}
	coo := &formats.COO[V]{Rows: rows, Cols: cols, Val: val}
	if coo.Row, err = vector(f, "row", n, appendIndices); err != nil {
		return nil, err
	}
	if coo.Col, err = vector(f, "col", n, appendIndices); err != nil {
		return nil, err
	}
	a, err := coo.ToCSR(f.Duplicates)
	return f.merged(n, a, err)
}

// merged sets Merged for a matrix whose file had n entries, and returns it and the error.
func (f archive[V]) merged(n int64, a *formats.CSR[V], err error) (*formats.CSR[V], error) {
	if err == nil && f.Merged != nil {
		*f.Merged = n - a.NNZ()
	}
	return a, err
}

// WriteSparse writes m as scipy.sparse.load_npz reads it: csr, not compressed. Values are written as
// <f4, since SciPy does not compute with half precision, or <f8 where m has float64.
func WriteSparse(w io.Writer, m formats.Sparse) error {
	if wide, ok := m.(*formats.CSR[float64]); ok {
		return writeSparse(w, wide)
	}
	return writeSparse(w, formats.Convert[float32](m))
}

func writeSparse[V Float](w io.Writer, a *formats.CSR[V]) error {
	if err := a.Validate(); err != nil {
		return err
	}
	z := zip.NewWriter(w)
	ptrSize := 4
	if a.NNZ() > math.MaxInt32 {
		ptrSize = 8
	}
	for _, m := range []struct {
		name, descr string
		data        func(w io.Writer) error
		shape       []int
	}{
		{"indices", "<i4", func(w io.Writer) error { return writeInts(w, a.ColIdx, 4) }, []int{len(a.ColIdx)}},
		{"indptr", fmt.Sprintf("<i%d", ptrSize), func(w io.Writer) error { return writeInts(w, a.RowPtr, ptrSize) },
			[]int{len(a.RowPtr)}},
		{"format", "|S3", func(w io.Writer) error { _, err := io.Copy(w, strings.NewReader("csr")); return err }, nil},
		{"shape", "<i8", func(w io.Writer) error { return writeInts(w, []int64{int64(a.Rows), int64(a.Cols)}, 8) }, []int{2}},
		{"data", descrOf[V](), func(w io.Writer) error { return writeValues(w, a.Val) }, []int{len(a.Val)}},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name + ".npy"})
		if err == nil {
			err = writeHeader(w, m.descr, false, m.shape...)
		}
		if err == nil {
			err = m.data(w)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}
