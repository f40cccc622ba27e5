// Writing.

package mtx

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spmmrun/spmm/formats"
)

// Write writes a as a real general coordinate file, row by row, with the shortest decimals that read
// back as the same float32. A value that is not finite is an error: the format has none.
func Write[T formats.Value](w io.Writer, a *formats.CSR[T]) error {
	f := formats.Convert[float32](a)
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
			line = strconv.AppendFloat(append(line, ' '), v, 'g', -1, 32)
			if _, err := bw.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	return bw.Flush()
}
