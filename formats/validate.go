// What makes a matrix valid, and errors that say where it is not.

package formats

import (
	"fmt"
	"math"
	"runtime"
	"sync"
)

// MaxDim is the largest number of rows or columns: indices are int32.
const MaxDim = math.MaxInt32

// Validate reports the first thing wrong with a, naming its row (from 0) and its position in ColIdx.
// The values are not looked at.
func (a *CSR[T]) Validate() error {
	if err := a.checkShape(); err != nil {
		return err
	}
	const large = 1 << 22 // entries that are worth several cores
	workers := 1
	if a.NNZ() >= large {
		workers = min(a.Rows, runtime.GOMAXPROCS(0))
	}
	errs := make([]error, workers) // each the first of its rows
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := int(int64(a.Rows)*int64(w)/int64(workers)), int(int64(a.Rows)*int64(w+1)/int64(workers))
		wg.Go(func() {
			for i := lo; i < hi && errs[w] == nil; i++ {
				errs[w] = a.checkRow(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkShape validates all but the column indices.
func (a *CSR[T]) checkShape() error {
	if err := checkDims(a.Rows, a.Cols); err != nil {
		return err
	}
	if len(a.RowPtr) != a.Rows+1 {
		return fmt.Errorf("%d row pointers for %d rows, want %d", len(a.RowPtr), a.Rows, a.Rows+1)
	}
	if len(a.ColIdx) != len(a.Val) {
		return fmt.Errorf("%d column indices for %d values", len(a.ColIdx), len(a.Val))
	}
	if a.RowPtr[0] != 0 {
		return fmt.Errorf("row 0: starts at %d, want 0", a.RowPtr[0])
	}
	for i, end := range a.RowPtr[1:] {
		if start := a.RowPtr[i]; end < start {
			return fmt.Errorf("row %d: ends at %d, before its start %d", i, end, start)
		}
	}
	if end := a.RowPtr[a.Rows]; end != int64(len(a.Val)) {
		return fmt.Errorf("row pointers end at %d, but there are %d entries", end, len(a.Val))
	}
	return nil
}

func (a *CSR[T]) checkRow(i int) error {
	last := int32(-1)
	lo, hi := a.RowPtr[i], a.RowPtr[i+1]
	for p, c := range a.ColIdx[lo:hi] {
		if c <= last || int(c) >= a.Cols {
			at := fmt.Sprintf("row %d, position %d: column %d", i, lo+int64(p), c)
			switch {
			case c < 0 || int(c) >= a.Cols:
				return fmt.Errorf("%s is outside the %d columns", at, a.Cols)
			case c == last:
				return fmt.Errorf("%s appears twice", at)
			}
			return fmt.Errorf("%s comes after column %d", at, last)
		}
		last = c
	}
	return nil
}

// Validate reports the first entry of a, by its position in the list, that is out of range.
// Any order and duplicates are valid.
func (a *COO[T]) Validate() error {
	if err := checkDims(a.Rows, a.Cols); err != nil {
		return err
	}
	if len(a.Row) != len(a.Val) || len(a.Col) != len(a.Val) {
		return fmt.Errorf("%d rows and %d columns for %d values", len(a.Row), len(a.Col), len(a.Val))
	}
	for p, r := range a.Row {
		if r < 0 || int(r) >= a.Rows {
			return fmt.Errorf("position %d: row %d is outside the %d rows", p, r, a.Rows)
		}
		if c := a.Col[p]; c < 0 || int(c) >= a.Cols {
			return fmt.Errorf("position %d: column %d is outside the %d columns", p, c, a.Cols)
		}
	}
	return nil
}

// Validate reports a leading dimension that is too small or data too short for the size.
func (d *Dense[T]) Validate() error {
	if err := checkDims(d.Rows, d.Cols); err != nil {
		return err
	}
	lines, width := d.lines()
	if d.LD < width {
		return fmt.Errorf("leading dimension %d is less than %d", d.LD, width)
	}
	if lines == 0 || width == 0 {
		return nil
	}
	if lines > 1 && d.LD > (math.MaxInt-width)/(lines-1) {
		return fmt.Errorf("leading dimension %d overflows for %d×%d", d.LD, d.Rows, d.Cols)
	}
	if need := (lines-1)*d.LD + width; len(d.Data) < need {
		return fmt.Errorf("%d elements of data, want at least %d for %d×%d with leading dimension %d",
			len(d.Data), need, d.Rows, d.Cols, d.LD)
	}
	return nil
}

func checkDims(rows, cols int) error {
	if rows < 0 || cols < 0 {
		return fmt.Errorf("negative size %d×%d", rows, cols)
	}
	if rows > MaxDim || cols > MaxDim {
		return fmt.Errorf("size %d×%d is beyond %d", rows, cols, MaxDim)
	}
	return nil
}
