// Limits on what readers and generators accept.

package formats

import (
	"errors"
	"fmt"
)

// ErrMemory is wrapped by the errors of matrices that need more than Limits.Bytes.
var ErrMemory = errors.New("beyond the limit")

// Limits bound the matrices that readers and generators make. A field that is 0 has its default.
//
// Row pointers are the only array whose size depends on a header alone. Unless Rows is set, a sparse matrix may
// therefore have at most 2²⁴ rows and 64 more for each entry.
type Limits struct {
	Rows, Cols int64 // default MaxDim
	NNZ        int64 // stored entries; default 2³³
	Bytes      int64 // memory of the result (CSR of float32, or Dense); default 64 GiB. See ReadingBytes.
}

const (
	freeRows     = 1 << 24
	rowsPerEntry = 64
)

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	fill := func(p *int64, v int64) {
		if *p <= 0 || *p > v && v == MaxDim {
			*p = v
		}
	}
	fill(&l.Rows, MaxDim)
	fill(&l.Cols, MaxDim)
	fill(&l.NNZ, 1<<33)
	fill(&l.Bytes, 64<<30)
	return l
}

// Check returns an error if a sparse rows×cols matrix of nnz entries is beyond the limits.
func (l Limits) Check(rows, cols, nnz int64) error {
	guard := l.Rows <= 0
	l = l.WithDefaults()
	if err := l.CheckDims(rows, cols); err != nil {
		return err
	}
	switch {
	case nnz < 0:
		return fmt.Errorf("negative number of entries %d", nnz)
	case nnz > l.NNZ:
		return fmt.Errorf("%d entries are beyond the limit of %d", nnz, l.NNZ)
	case guard && rows > freeRows && (rows-freeRows)/rowsPerEntry > nnz:
		return fmt.Errorf("%d rows for %d entries: nearly all rows are empty", rows, nnz)
	case CSRBytes(rows, nnz) > l.Bytes:
		return fmt.Errorf("%d rows with %d entries take %d bytes, %w of %d",
			rows, nnz, CSRBytes(rows, nnz), ErrMemory, l.Bytes)
	}
	return nil
}

// CheckDense returns an error if a dense rows×cols matrix of elements of the given size in bytes is
// beyond the limits.
func (l Limits) CheckDense(rows, cols int64, size int) error {
	l = l.WithDefaults()
	if err := l.CheckDims(rows, cols); err != nil {
		return err
	}
	if cols > 0 && rows > l.Bytes/int64(size)/cols {
		return fmt.Errorf("%d×%d elements of %d bytes are %w of %d bytes", rows, cols, size, ErrMemory, l.Bytes)
	}
	return nil
}

// CheckDims returns an error if a rows×cols matrix of any kind is beyond the limits.
func (l Limits) CheckDims(rows, cols int64) error {
	l = l.WithDefaults()
	switch {
	case rows < 0 || cols < 0:
		return fmt.Errorf("negative size %d×%d", rows, cols)
	case rows > l.Rows:
		return fmt.Errorf("%d rows are beyond the limit of %d", rows, l.Rows)
	case cols > l.Cols:
		return fmt.Errorf("%d columns are beyond the limit of %d", cols, l.Cols)
	}
	return nil
}

// ReadingBytes returns the value of Limits.Bytes with which reading a file takes at most this much memory at any time.
// Readers that sort entries need up to two and a half times the memory of the result.
func ReadingBytes(memory int64) int64 { return max(1, memory/5*2) }

// CSRBytes returns the memory of a CSR[float32] of that size.
func CSRBytes(rows, nnz int64) int64 { return 8*(rows+1) + 8*nnz }
