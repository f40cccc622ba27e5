// The entries: read, kept in blocks, and scattered to rows.

package mtx

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
	"github.com/spmmrun/spmm/formats/internal/text"
)

// block holds entries in the order of the file. Lists of blocks grow without copying.
type block[V text.Float] struct {
	row, col []int32
	val      []V // nil for a pattern
}

const blockLen = 1 << 15

type entries[V text.Float] struct {
	blocks  []block[V]
	count   int64
	pattern bool
}

// add appends an entry; expected is how many the file may have at most.
func (e *entries[V]) add(i, j int32, v V, expected int64) {
	last := len(e.blocks) - 1
	if last < 0 || len(e.blocks[last].row) == cap(e.blocks[last].row) {
		n := min(blockLen, expected-e.count)
		b := block[V]{row: make([]int32, 0, n), col: make([]int32, 0, n)}
		if !e.pattern {
			b.val = make([]V, 0, n)
		}
		e.blocks = append(e.blocks, b)
		last++
	}
	b := &e.blocks[last]
	b.row, b.col = append(b.row, i), append(b.col, j)
	if !e.pattern {
		b.val = append(b.val, v)
	}
	e.count++
}

// triangle is where the entries of a symmetric file have been so far.
type triangle uint8

const (
	diagonal triangle = iota
	lower
	upper
)

func (rd *reader[V]) readEntries() error {
	rd.entries.pattern = rd.field == pattern
	for rd.entries.count < rd.declared {
		line, err := rd.data()
		if err != nil {
			return err
		}
		if line == nil {
			return rd.Errorf("ends after %d of %d entries", rd.entries.count, rd.declared)
		}
		if err := rd.entry(line); err != nil {
			return err
		}
	}
	return rd.atEnd()
}

// entry reads one line of a coordinate file.
func (rd *reader[V]) entry(line []byte) error {
	i, rest, err := rd.index(line, "row", rd.rows)
	if err != nil {
		return err
	}
	j, rest, err := rd.index(rest, "column", rd.cols)
	if err != nil {
		return err
	}
	v := V(1)
	if rd.field != pattern {
		if v, rest, err = rd.value(rest); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		return rd.Errorf("unexpected %s after the entry", text.Quote(rest))
	}
	if rd.symmetry != general {
		if err := rd.checkTriangle(i, j); err != nil {
			return err
		}
	}
	rd.entries.add(i, j, v, rd.declared)
	return nil
}

// index reads a row or column number of 1 to n at the start of b and returns it counted from 0, and the bytes after it.
func (rd *reader[V]) index(b []byte, what string, n int64) (int32, []byte, error) {
	v, length := text.Int(b)
	rest := skipBlanks(b[length:])
	if length == 0 || len(rest) > 0 && len(rest) == len(b)-length {
		if len(b) == 0 {
			return 0, nil, rd.Errorf("no %s number", what)
		}
		return 0, nil, rd.Errorf("%s is not a %s number", text.Quote(b), what)
	}
	if v < 1 || v > n {
		return 0, nil, rd.Errorf("%s %d is outside 1 to %d", what, v, n)
	}
	return int32(v - 1), rest, nil
}

// value reads a value at the start of b and returns it and the bytes after it.
func (rd *reader[V]) value(b []byte) (V, []byte, error) {
	v, length, isInteger := text.Decimal[V](b)
	rest := skipBlanks(b[length:])
	switch {
	case len(b) == 0:
		return 0, nil, rd.Errorf("no value")
	case length == 0 || len(rest) > 0 && len(rest) == len(b)-length:
		return 0, nil, rd.Errorf("%s is not a finite number", text.Quote(b))
	case rd.field == integer && !isInteger:
		return 0, nil, rd.Errorf("%s is not an integer", text.Quote(b))
	case math.IsInf(float64(v), 0):
		return 0, nil, rd.Errorf("%s is beyond the range of %T", text.Quote(b), v)
	}
	return v, rest, nil
}

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// checkTriangle refuses what a symmetric file must not list: entries on both sides of the diagonal
// (mirrored, they would count twice) and the diagonal of a skew-symmetric matrix.
func (rd *reader[V]) checkTriangle(i, j int32) error {
	side := lower
	switch {
	case i == j && rd.symmetry == skew:
		return rd.Errorf("entry (%d, %d) on the diagonal of a skew-symmetric matrix", i+1, j+1)
	case i == j:
		return nil
	case i < j:
		side = upper
	}
	if rd.triangle == diagonal {
		rd.triangle = side
	}
	if rd.triangle != side {
		return rd.Errorf("entry (%d, %d) is on the other side of the diagonal than those before, in a symmetric matrix", i+1, j+1)
	}
	return nil
}

// readArray reads the elements column by column; of a symmetric matrix there is the lower triangle.
func (rd *reader[V]) readArray() error {
	lim, n := rd.Limits, int64(0)
	lim.Rows = lim.WithDefaults().Rows // there may be many while there are few entries yet
	for j := int64(0); j < rd.cols && n < rd.declared; j++ {
		first := int64(0)
		switch rd.symmetry {
		case symmetric:
			first = j
		case skew:
			first = j + 1
		}
		for i := first; i < rd.rows; i++ {
			line, err := rd.data()
			if err != nil {
				return err
			}
			if line == nil {
				return rd.Errorf("ends after %d of %d elements", n, rd.declared)
			}
			v, rest, err := rd.value(line)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return rd.Errorf("unexpected %s after the element", text.Quote(rest))
			}
			if n++; v == 0 {
				continue
			}
			if rd.entries.count%blockLen == 0 { // the header does not say how many there are
				if err := lim.Check(rd.rows, rd.cols, rd.entries.count); err != nil {
					return rd.Errorf("%w", err)
				}
			}
			rd.entries.add(int32(i), int32(j), v, rd.declared-n+rd.entries.count+1)
		}
	}
	return rd.atEnd()
}

// atEnd reports data beyond what the size line announces.
func (rd *reader[V]) atEnd() error {
	line, err := rd.data()
	if err == nil && line != nil {
		err = rd.Errorf("%s after the %d entries that line %d announces", text.Quote(line), rd.declared, rd.sizeLine)
	}
	return err
}

// matrix scatters the entries to their rows.
func (rd *reader[V]) matrix() (*formats.CSR[V], error) {
	e := &rd.entries
	nnz := e.count
	if rd.symmetry != general {
		for _, b := range e.blocks {
			for p, i := range b.row {
				if i != b.col[p] {
					nnz++
				}
			}
		}
	}
	if err := rd.Limits.Check(rd.rows, rd.cols, nnz); err != nil {
		return nil, rd.Errorf("%w", err)
	}
	ptr := make([]int64, rd.rows+1)
	for _, b := range e.blocks {
		for p, i := range b.row {
			ptr[i]++
			if j := b.col[p]; rd.symmetry != general && i != j {
				ptr[j]++
			}
		}
	}
	rowptr.Starts(ptr)
	idx, val := make([]int32, nnz), make([]V, nnz)
	rd.scatter(ptr, idx, val)
	rd.entries = entries[V]{} // sorting needs as much memory again
	rowptr.Ends(ptr)
	a, err := formats.NewCSR(int(rd.rows), int(rd.cols), ptr, idx, val, rd.Duplicates)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rd.Name, err)
	}
	if rd.Merged != nil {
		*rd.Merged = nnz - a.NNZ()
	}
	return a, nil
}

// scatter stores the entries, and those that symmetry implies, at their rows' positions in ptr.
func (rd *reader[V]) scatter(ptr []int64, idx []int32, val []V) {
	rd.each(func(i, j int32, v V) {
		p := ptr[i]
		ptr[i]++
		idx[p], val[p] = j, v
	})
}

// each calls put for the entries in the order of the file, each followed by the one that symmetry implies.
func (rd *reader[V]) each(put func(i, j int32, v V)) {
	sign := V(1)
	if rd.symmetry == skew {
		sign = -1
	}
	for _, b := range rd.entries.blocks {
		for p, i := range b.row {
			j, v := b.col[p], V(1)
			if b.val != nil {
				v = b.val[p]
			} else if rd.Pattern != nil {
				v = V(rd.Pattern(int(i), int(j)))
			}
			put(i, j, v)
			if rd.symmetry != general && i != j {
				put(j, i, sign*v)
			}
		}
	}
}
