// The banner and the size line.

package mtx

import (
	"bytes"
	"strings"

	"github.com/spmmrun/spmm/formats/internal/text"
)

type field uint8

const (
	real field = iota
	integer
	pattern
)

var fields = map[string]field{"real": real, "double": real, "integer": integer, "pattern": pattern}

type symmetry uint8

const (
	general symmetry = iota
	symmetric
	skew
)

var symmetries = map[string]symmetry{"general": general, "symmetric": symmetric, "skew-symmetric": skew}

// banner is the first line's contents.
type banner struct {
	array    bool
	field    field
	symmetry symmetry
}

func (rd *reader[V]) header() error {
	line, ok := rd.Line()
	if !ok {
		if err := rd.Err(); err != nil {
			return err
		}
		return rd.Errorf("empty file")
	}
	if err := rd.readBanner(string(line)); err != nil {
		return err
	}
	line, err := rd.data()
	if err != nil {
		return err
	}
	if line == nil {
		return rd.Errorf("ends before the size line")
	}
	return rd.readSize(line)
}

func (rd *reader[V]) readBanner(line string) error {
	const form = "%%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric"
	words := strings.Fields(strings.ToLower(line))
	if len(words) == 0 || words[0] != "%%matrixmarket" {
		return rd.Errorf("no Matrix Market file: the first line is not %q", form)
	}
	if len(words) != 5 {
		return rd.Errorf("%d words in the banner, want %q", len(words), form)
	}
	switch {
	case words[1] != "matrix":
		return rd.Errorf("object %s is not supported (only matrix)", text.Quote([]byte(words[1])))
	case words[2] != "coordinate" && words[2] != "array":
		return rd.Errorf("unknown format %s (coordinate or array)", text.Quote([]byte(words[2])))
	}
	rd.array = words[2] == "array"
	var knownField, knownSymmetry bool
	rd.field, knownField = fields[words[3]]
	rd.symmetry, knownSymmetry = symmetries[words[4]]
	switch {
	case words[3] == "complex":
		return rd.Errorf("complex matrices are not supported (real, integer or pattern)")
	case !knownField:
		return rd.Errorf("unknown field %s (real, integer or pattern)", text.Quote([]byte(words[3])))
	case words[4] == "hermitian":
		return rd.Errorf("hermitian matrices are not supported (general, symmetric or skew-symmetric)")
	case !knownSymmetry:
		return rd.Errorf("unknown symmetry %s (general, symmetric or skew-symmetric)", text.Quote([]byte(words[4])))
	case rd.field == pattern && rd.array:
		return rd.Errorf("an array cannot be a pattern")
	case rd.field == pattern && rd.symmetry == skew:
		return rd.Errorf("a pattern cannot be skew-symmetric")
	}
	return nil
}

// data returns the next line that is neither blank nor a comment, without surrounding blanks; nil at
// the end.
func (rd *reader[V]) data() ([]byte, error) {
	for {
		line, ok := rd.Line()
		if !ok {
			return nil, rd.Err()
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
			return line, nil
		}
	}
}

func (rd *reader[V]) readSize(line []byte) error {
	want := []*int64{&rd.rows, &rd.cols, &rd.declared}
	names := "rows, columns and entries"
	if rd.array {
		want, names = want[:2], "rows and columns"
	}
	words := bytes.Fields(line)
	if len(words) != len(want) {
		return rd.Errorf("%d numbers in the size line, want %s", len(words), names)
	}
	for i, w := range words {
		v, n := text.Int(w)
		if n != len(w) || v < 0 {
			return rd.Errorf("%s in the size line is not a size", text.Quote(w))
		}
		*want[i] = v
	}
	rd.sizeLine = rd.LineNumber()
	if rd.symmetry != general && rd.rows != rd.cols {
		return rd.Errorf("a symmetric matrix cannot be %d×%d", rd.rows, rd.cols)
	}
	if err := rd.checkSize(); err != nil {
		return rd.Errorf("%w", err)
	}
	return nil
}

func (rd *reader[V]) checkSize() error {
	if !rd.array {
		return rd.Limits.Check(rd.rows, rd.cols, rd.declared)
	}
	if err := rd.Limits.CheckDims(rd.rows, rd.cols); err != nil {
		return err
	}
	switch n := rd.rows; rd.symmetry {
	case general:
		rd.declared = n * rd.cols
	case symmetric:
		rd.declared = n * (n + 1) / 2
	case skew:
		rd.declared = n * (n - 1) / 2
	}
	return nil
}
