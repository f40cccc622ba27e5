// Reading a part of a large file, so that several processes read one together.

package mtx

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/text"
)

// Part is the entries of one range of a file.
type Part struct {
	Rows, Cols int   // of the matrix
	Declared   int64 // entries that all parts list together, by the size line
	Listed     int64 // entries that this part lists
	// Lower and Upper tell whether a symmetric file has entries below or above the diagonal in this part. All parts must
	// have them on one side.
	Lower, Upper bool
	// Entries are those listed and those that symmetry implies, in the order in which Read would add them up.
	Entries *formats.COO[float32]
}

// ErrWhole says that a file must be read as a whole: it is compressed, an array, or no Matrix Market file at all.
var ErrWhole = errors.New("the file cannot be read in parts")

// ReadPart reads one of `parts` ranges of a plain coordinate file of a size in bytes; all are about as long. Together
// they have all entries of the file. The options are those of Read; Limits are for the one range, and Merged is not
// set.
func ReadPart(r io.ReaderAt, size int64, part, parts int, o Options) (*Part, error) {
	if o.Name == "" {
		o.Name = "input"
	}
	if part < 0 || part >= parts {
		return nil, fmt.Errorf("%s: part %d of %d", o.Name, part, parts)
	}
	head := make([]byte, min(size, 64))
	if _, err := r.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if !bytes.HasPrefix(bytes.ToLower(head), []byte("%%matrixmarket matrix coordinate")) {
		return nil, fmt.Errorf("%s: %w", o.Name, ErrWhole)
	}
	first := &reader[float32]{Scanner: text.NewScanner(io.NewSectionReader(r, 0, size), o.Name), Options: o}
	// The size line is checked against the limits of all parts together.
	one, n := o.Limits.WithDefaults(), int64(parts)
	first.Limits.Bytes, first.Limits.NNZ = min(one.Bytes, 1<<59/n)*n, min(one.NNZ, 1<<59/n)*n
	if err := first.header(); err != nil {
		return nil, err
	}
	data := first.Offset()
	cut := func(k int) (int64, error) {
		return lineAfter(r, data, size, data+(size-data)/int64(parts)*int64(k)+(size-data)%int64(parts)*int64(k)/int64(parts))
	}
	lo, err := cut(part)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	hi, err := cut(part + 1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	rd := *first
	rd.Options = o
	rd.Scanner = text.NewScanner(io.NewSectionReader(r, lo, hi-lo), o.Name)
	if err := rd.listed(); err != nil {
		// Lines are counted only where a number is needed.
		again := rd
		again.Scanner, again.entries, again.triangle = text.NewScanner(io.NewSectionReader(r, lo, hi-lo), o.Name),
			entries[float32]{}, diagonal
		lines, counted := countLines(io.NewSectionReader(r, 0, lo))
		again.SetLineNumber(lines)
		return nil, cmp.Or(errors.Join(again.listed(), counted), err) // err if the file has changed meanwhile
	}
	return partOf(&rd)
}

// lineAfter returns where the first line begins that begins at or after a place.
func lineAfter(r io.ReaderAt, data, size, at int64) (int64, error) {
	if at <= data {
		return data, nil
	}
	var buf [4096]byte
	for at--; at < size; {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		if err != nil && err != io.EOF {
			return 0, err
		}
		if n == 0 {
			break
		}
		at += int64(n)
	}
	return size, nil
}

func countLines(r io.Reader) (n int64, err error) {
	buf := make([]byte, 1<<16)
	for {
		k, err := r.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte{'\n'}))
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// listed reads entries to the input's end.
func (rd *reader[V]) listed() error {
	rd.entries.pattern = rd.field == pattern
	for {
		line, err := rd.data()
		if err != nil || line == nil {
			return err
		}
		if rd.entries.count == rd.declared {
			return rd.Errorf("%s after the %d entries that line %d announces", text.Quote(line), rd.declared, rd.sizeLine)
		}
		if err := rd.entry(line); err != nil {
			return err
		}
	}
}

// partOf lists what was read, with what symmetry implies.
func partOf(rd *reader[float32]) (*Part, error) {
	p := &Part{
		Rows: int(rd.rows), Cols: int(rd.cols), Declared: rd.declared, Listed: rd.entries.count,
		Lower: rd.triangle == lower, Upper: rd.triangle == upper, Entries: &formats.COO[float32]{Rows: int(rd.rows),
			Cols: int(rd.cols)},
	}
	if err := rd.Limits.Check(0, rd.cols, rd.entries.count); err != nil {
		return nil, rd.Errorf("%w", err)
	}
	e := p.Entries
	rd.each(func(i, j int32, v float32) {
		e.Row, e.Col, e.Val = append(e.Row, i), append(e.Col, j), append(e.Val, v)
	})
	return p, nil
}
