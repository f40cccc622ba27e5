// Package smtx reads the .smtx files of the Deep Learning Matrix Collection: the pattern of a CSR
// matrix in text, without values:
//
//	rows, cols, nnz
//	rows+1 row pointers
//	nnz column indices, from 0
//
// Integers may be separated by spaces, commas and line ends.
package smtx

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/grow"
	"github.com/spmmrun/spmm/formats/internal/text"
)

// Options of Read.
type Options struct {
	Name   string // of the file, for errors
	Limits formats.Limits
	// Value gives the value of entry (row, col), from 0; nil: 1.
	Value func(row, col int) float32
}

// Read reads a matrix, plain or compressed by gzip. Columns of a row may come in any order, but only
// once. Memory grows with what has been read. Errors are one line: NAME:LINE: what is wrong.
func Read(r io.Reader, o Options) (*formats.CSR[float32], error) {
	if o.Name == "" {
		o.Name = "input"
	}
	plain, err := text.Gunzip(r)
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", o.Name, err)
	}
	rd := &reader{Scanner: text.NewScanner(plain, o.Name), lim: o.Limits}
	if err := rd.read(); err != nil {
		return nil, err
	}
	val := make([]float32, len(rd.idx))
	a, err := formats.NewCSR(rd.rows, rd.cols, rd.ptr, rd.idx, val, formats.RefuseDuplicates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	fillValues(a, o.Value)
	return a, nil
}

func fillValues(a *formats.CSR[float32], value func(row, col int) float32) {
	for i := range a.Rows {
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			a.Val[p] = 1
			if value != nil {
				a.Val[p] = value(i, int(a.ColIdx[p]))
			}
		}
	}
}

type reader struct {
	*text.Scanner
	lim        formats.Limits
	rows, cols int
	nnz        int64
	ptr        []int64
	idx        []int32
}

func (rd *reader) read() error {
	if err := rd.header(); err != nil {
		return err
	}
	if err := rd.pointers(); err != nil {
		return err
	}
	for range rd.nnz {
		c, err := rd.next("column index", int64(len(rd.idx)), rd.nnz)
		if err != nil {
			return err
		}
		if c < 0 || c >= int64(rd.cols) {
			return rd.Errorf("column %d is outside 0 to %d", c, rd.cols-1)
		}
		rd.idx = grow.Append(rd.idx, int32(c), rd.nnz)
	}
	v, ok, err := rd.Int()
	if err != nil {
		return err
	}
	if ok {
		return rd.Errorf("%d after the %d column indices", v, rd.nnz)
	}
	return nil
}

func (rd *reader) header() error {
	var size [3]int64
	for i := range size {
		v, ok, err := rd.Int()
		if err != nil {
			return err
		}
		if !ok {
			return rd.Errorf("no header: want rows, columns and entries")
		}
		size[i] = v
	}
	rd.nnz = size[2]
	if err := rd.lim.Check(size[0], size[1], rd.nnz); err != nil {
		return rd.Errorf("%w", err)
	}
	rd.rows, rd.cols = int(size[0]), int(size[1])
	return nil
}

// pointers reads the row pointers, which must ascend from 0 to nnz.
func (rd *reader) pointers() error {
	want, last := int64(rd.rows)+1, int64(0)
	for i := range want {
		p, err := rd.next("row pointer", i, want)
		if err != nil {
			return err
		}
		switch {
		case i == 0 && p != 0:
			return rd.Errorf("the first row pointer is %d, want 0", p)
		case p < last:
			return rd.Errorf("row %d ends at %d, before its start %d", i-1, p, last)
		case p > rd.nnz:
			return rd.Errorf("row %d ends at %d, beyond the %d entries", i-1, p, rd.nnz)
		}
		rd.ptr, last = grow.Append(rd.ptr, p, want), p
	}
	if last != rd.nnz {
		return rd.Errorf("row pointers end at %d, but there are %d entries", last, rd.nnz)
	}
	return nil
}

// next returns the next integer, number i of n of its kind.
func (rd *reader) next(what string, i, n int64) (int64, error) {
	v, ok, err := rd.Int()
	if err == nil && !ok {
		err = rd.Errorf("ends before %s %d of %d", what, i+1, n)
	}
	return v, err
}

// Write writes the pattern of a, as the collection's files are laid out.
func Write(w io.Writer, a formats.Sparse) error {
	bw := bufio.NewWriterSize(w, 256<<10)
	rows, cols := a.Dims()
	rowPtr, colIdx := a.Pattern()
	fmt.Fprintf(bw, "%d, %d, %d\n", rows, cols, a.NNZ())
	writeLine(bw, rowPtr)
	writeLine(bw, colIdx)
	return bw.Flush()
}

func writeLine[I int32 | int64](w *bufio.Writer, s []I) {
	var buf []byte
	for i, v := range s {
		buf = buf[:0]
		if i > 0 {
			buf = append(buf, ' ')
		}
		w.Write(strconv.AppendInt(buf, int64(v), 10))
	}
	w.WriteByte('\n')
}
