// Writing an array as its rows come.

package npy

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/formats"
)

// Writer writes a matrix that need not be in memory as a whole, some rows at a time.
type Writer[T formats.Value] struct {
	w          *bufio.Writer
	rows, cols int // that are still to come, and of each
}

// NewWriter begins a rows×cols array in row-major order, as Write would write it.
func NewWriter[T formats.Value](w io.Writer, rows, cols int) (*Writer[T], error) {
	bw := bufio.NewWriterSize(w, 256<<10)
	return &Writer[T]{bw, rows, cols}, writeHeader(bw, descrOf[T](), false, rows, cols)
}

// WriteRows writes the next rows.
func (w *Writer[T]) WriteRows(d *formats.Dense[T]) error {
	if err := d.Validate(); err != nil {
		return err
	}
	if d.ColMajor || d.Cols != w.cols || d.Rows > w.rows {
		return fmt.Errorf("%d rows of %d (column-major: %t) for an array that lacks %d of %d", d.Rows, d.Cols, d.ColMajor, w.rows, w.cols)
	}
	w.rows -= d.Rows
	for i := range d.Rows {
		if err := writeValues(w.w, d.Line(i)); err != nil {
			return err
		}
	}
	return nil
}

// Close completes the array; it does not close what it is written to. Rows that are missing are an error.
func (w *Writer[T]) Close() error {
	if w.rows > 0 {
		return fmt.Errorf("%d rows of the array are missing", w.rows)
	}
	return w.w.Flush()
}
