// Writing.

package mtx

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/text"
)

// Write writes a as a real general coordinate file, row by row, with decimals that read back as the
// same float32, or float64 where a has such values. A value that is not finite is an error: the format has none.
func Write(w io.Writer, a formats.Sparse) error {
	if wide, ok := a.(*formats.CSR[float64]); ok {
		return write(w, wide, func(line []byte, v float64) []byte { return strconv.AppendFloat(line, v, 'g', -1, 64) })
	}
	return write(w, formats.Convert[float32](a), appendValue)
}

// write writes f, whose values appendValue appends to a line.
func write[V text.Float](w io.Writer, f *formats.CSR[V], appendValue func(line []byte, v V) []byte) error {
	bw := bufio.NewWriterSize(w, 256<<10)
	fmt.Fprintf(bw, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", f.Rows, f.Cols, f.NNZ())
	var line []byte
	for i := range f.Rows {
		for p := f.RowPtr[i]; p < f.RowPtr[i+1]; p++ {
			v := float64(f.Val[p])
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("row %d, column %d: %v cannot be written to a Matrix Market file", i+1, f.ColIdx[p]+1, v)
			}
			line = strconv.AppendInt(line[:0], int64(i+1), 10)
			line = strconv.AppendInt(append(line, ' '), int64(f.ColIdx[p])+1, 10)
			line = appendValue(append(line, ' '), f.Val[p])
			if _, err := bw.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return bw.Flush()
}

// appendValue appends v's shortest decimals; or 9 digits, which always do, where rounding those to
// float64 first, as Read does, would give a neighbour of v.
func appendValue(line []byte, v float32) []byte {
	start := len(line)
	line = strconv.AppendFloat(line, float64(v), 'g', -1, 32)
	if back, _, _ := text.Float32(line[start:]); back != v {
		line = strconv.AppendFloat(line[:start], float64(v), 'e', 8, 32)
	}
	return line
}
