// Package npy reads and writes NumPy's .npy files and SciPy's sparse .npz files.
//
// Arrays of f2, f4, f8, signed and unsigned integers and bool are read in both byte orders and both
// index orders, and rounded to float32, to nearest, ties to even. Complex, object, text and structured
// arrays are refused by name. ReadAs and OpenSparseAs read float64, too.
package npy

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/formats"
)

// Options of Read and ReadSparse.
type Options struct {
	Name       string // of the file, for errors
	Limits     formats.Limits
	Duplicates formats.Duplicates // of ReadSparse
	// Merged, if not nil, is set by ReadSparse to the number of entries that were added to another at the same
	// place.
	Merged *int64
	// Loss, if not nil, is set to what rounding the elements of an array of f8 (float64) lost, counting none of other
	// types.
	Loss *formats.Loss
}

func (o Options) name() string {
	if o.Name == "" {
		return "input"
	}
	return o.Name
}

// Read reads a .npy file of two dimensions, in its order; one dimension makes a matrix of one column.
// NaN and infinities are kept; a finite value beyond float32 is an error. Memory grows with what has
// been read. Errors are one line: NAME: what is wrong.
func Read(r io.Reader, o Options) (*formats.Dense[float32], error) { return ReadAs[float32](r, o) }

// Float is the type that elements are read as.
type Float interface{ float32 | float64 }

// ReadAs is Read with elements of type V, to which they are rounded.
func ReadAs[V Float](r io.Reader, o Options) (*formats.Dense[V], error) {
	d, err := read[V](bufio.NewReader(r), o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name(), err)
	}
	return d, nil
}

func read[V Float](r io.Reader, o Options) (*formats.Dense[V], error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	d := &formats.Dense[V]{ColMajor: h.fortran}
	switch len(h.shape) {
	case 1:
		h.shape = []int64{h.shape[0], 1}
		d.ColMajor = false
	case 2:
	default:
		return nil, fmt.Errorf("array of %d dimensions, want 2 (or 1, for one column)", len(h.shape))
	}
	if err := o.Limits.CheckDense(h.shape[0], h.shape[1], formats.TypeOf[V]().Size()); err != nil {
		return nil, err
	}
	d.Rows, d.Cols = int(h.shape[0]), int(h.shape[1])
	if d.LD = d.Cols; d.ColMajor {
		d.LD = d.Rows
	}
	if d.Data, err = readElements(r, h, floats[V](o)); err != nil {
		return nil, err
	}
	return d, atEnd(r)
}

// atEnd reports data after an array.
func atEnd(r io.Reader) error {
	switch _, err := io.ReadFull(r, make([]byte, 1)); err {
	case io.EOF:
		return nil
	case nil:
		return fmt.Errorf("data after the array's end")
	default:
		return err
	}
}

// Write writes d as <f4, <f2 for binary16 or <f8 for float64, in d's order and without its padding. NumPy has no
// bfloat16: such a matrix is written as <f4, exactly.
func Write[T formats.Value](w io.Writer, d *formats.Dense[T]) error {
	if err := d.Validate(); err != nil {
		return err
	}
	lines, width := d.Rows, d.Cols
	if d.ColMajor {
		lines, width = width, lines
	}
	bw := bufio.NewWriterSize(w, 256<<10)
	writeHeader(bw, descrOf[T](), d.ColMajor, d.Rows, d.Cols)
	if width > 0 {
		for i := range lines {
			if err := writeValues(bw, d.Data[i*d.LD:i*d.LD+width]); err != nil {
				return err
			}
		}
	}
	return bw.Flush()
}
