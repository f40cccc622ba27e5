// Package mtx reads and writes Matrix Market files (https://math.nist.gov/MatrixMarket/formats.html).
//
// It reads coordinate and array files of real, integer and pattern fields, whether general, symmetric
// or skew-symmetric (both triangles are then in the result), plain or compressed by gzip. Zeros that a
// coordinate file lists are entries; zeros of an array file are not.
package mtx

import (
	"fmt"
	"io"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/text"
)

// Options of Read.
type Options struct {
	Name       string // of the file, for errors
	Limits     formats.Limits
	Duplicates formats.Duplicates
	// Merged, if not nil, is set to the number of entries that were added to another at the same place.
	Merged *int64
	// Pattern gives the value of entry (row, col), from 0, of a pattern file; nil: 1. In a symmetric
	// file the mirrored entry has the same value.
	Pattern func(row, col int) float32
}

// Read reads a matrix. Values are read as float64, rounded to float32 (to nearest, ties to even) and
// must be finite there.
// Memory grows with what has been read, not with what the header announces, and peaks at 2½ times that
// of the result. Errors are one line: NAME:LINE: what is wrong.
func Read(r io.Reader, o Options) (*formats.CSR[float32], error) { return ReadAs[float32](r, o) }

// ReadAs is Read with values of type V. Values of float64 are not rounded any further.
func ReadAs[V text.Float](r io.Reader, o Options) (*formats.CSR[V], error) {
	if o.Name == "" {
		o.Name = "input"
	}
	plain, err := text.Gunzip(r)
	if err != nil {
		return nil, fmt.Errorf("%s:1: %w", o.Name, err)
	}
	rd := &reader[V]{Scanner: text.NewScanner(plain, o.Name), Options: o}
	if err := rd.header(); err != nil {
		return nil, err
	}
	if rd.array {
		err = rd.readArray()
	} else {
		err = rd.readEntries()
	}
	if err != nil {
		return nil, err
	}
	return rd.matrix()
}

// reader is the state of reading one file.
type reader[V text.Float] struct {
	*text.Scanner
	Options
	banner
	rows, cols int64
	declared   int64 // entries (array: elements) that the file must list
	sizeLine   int64
	triangle   triangle
	entries    entries[V]
}
