// Tensors: dense matrices on a device.

package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Shape says how a dense matrix lies on a device: in blocks of RowBlock × ColBlock elements, each a
// buffer of its own, row- or column-major. Zero means one block. More than one is needed only where
// the whole matrix exceeds what the device binds.
type Shape struct {
	Rows, Cols         int
	Type               dtype.Type
	ColMajor           bool
	RowBlock, ColBlock int
	Tight              bool // row-major, of at most spec.TightCols columns: rows are spec.TightLD apart
}

// whole returns the shape with its blocks no larger than the matrix, and at least of one element.
func (s Shape) whole() Shape {
	if s.RowBlock <= 0 || s.RowBlock > s.Rows {
		s.RowBlock = max(1, s.Rows)
	}
	if s.ColBlock <= 0 || s.ColBlock > s.Cols {
		s.ColBlock = max(1, s.Cols)
	}
	return s
}

func (s Shape) rowBlocks() int { return max(1, spec.Ceil(s.Rows, s.RowBlock)) }
func (s Shape) colBlocks() int { return max(1, spec.Ceil(s.Cols, s.ColBlock)) }

// blockLayout returns how block (i, j) lies in its buffer.
func (s Shape) blockLayout(i, j int) layout {
	rows := min(s.RowBlock, s.Rows-i*s.RowBlock)
	cols := min(s.ColBlock, s.Cols-j*s.ColBlock)
	l := newLayout(rows, cols, s.Type, s.ColMajor)
	if s.Tight {
		l.ld, l.loose, l.tight = spec.TightLD(cols), true, true
	}
	return l
}

// maxDim bounds rows and columns: indices on devices have 32 bits.
const maxDim = math.MaxInt32

// checkDim refuses a number of rows or columns that no tensor can have.
func checkDim(n int, what string) error {
	switch {
	case n < 0:
		return fmt.Errorf("%d %s: must be 0 or more", n, what)
	case n > maxDim:
		return fmt.Errorf("%d %s: at most %d are possible: %w", n, what, maxDim, backend.ErrUnsupported)
	}
	return nil
}

// bytes returns the device memory that a tensor of the shape takes. More than 63 bits count is ErrOutOfMemory.
func (s Shape) bytes() (int64, error) {
	if err := cmp.Or(checkDim(s.Rows, "rows"), checkDim(s.Cols, "columns")); err != nil {
		return 0, fmt.Errorf("a tensor of %d×%d: %w", s.Rows, s.Cols, err)
	}
	s = s.whole()
	lines, width, block, blocks := s.Rows, s.Cols, s.ColBlock, s.colBlocks()
	if s.ColMajor {
		lines, width, block, blocks = s.Cols, s.Rows, s.RowBlock, s.rowBlocks()
	}
	// The last block of a line may be narrower than the others.
	full := int64(blocks - 1)
	padded := full*up(int64(block), align) + up(int64(width)-full*int64(block), align)
	if s.Tight {
		padded = int64(spec.TightLD(s.Cols))
	}
	hi, lo := bits.Mul64(uint64(padded)*uint64(s.Type.Size()), uint64(lines))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, fmt.Errorf("a tensor of %d×%d takes more than %d bytes: %w", s.Rows, s.Cols, int64(math.MaxInt64), backend.ErrOutOfMemory)
	}
	return int64(lo), nil
}

// Tensor is a dense matrix on a device. Its contents are undefined until they are written. Its methods may be
// called from any goroutine.
type Tensor struct {
	Shape
	dev     *device.Device
	foreign *foreign // nil: the memory is the tensor's own

	users  atomic.Int64     // calls that use the blocks, plus closed once no further call may
	blocks []backend.Buffer // block (i, j) is blocks[i*colBlocks+j]; nil once freed
	mu     sync.Mutex       // of Close
	idle   sync.Cond        // the last user of a closed tensor is done

	of   *Tensor // set in a view: the tensor whose transpose it is, which has the memory
	view *Tensor // see turned
	turn sync.Once
}

// closed is more than calls can be.
const closed = 1 << 62

// layout is how one block lies in its buffer.
type layout struct {
	rows, cols int
	ld         int
	colMajor   bool
	typ        dtype.Type
	loose      bool // not as kernels take it: it goes through kernel densecopy, whatever its order and type
	tight      bool // loose, but for kernels that are spec.Variant.Tight, and for C
}

// align is what leading dimensions are rounded up to, in elements: kernels read B in chunks of 16
// bytes or more, and copies to the device move whole words.
const align = 8

// up rounds n up to a multiple of to.
func up[I int | int64](n, to I) I { return (n + to - 1) / to * to }

// newLayout returns the layout of a rows × cols block.
func newLayout(rows, cols int, t dtype.Type, colMajor bool) layout {
	l := layout{rows: rows, cols: cols, ld: up(cols, align), colMajor: colMajor, typ: t}
	if colMajor {
		l.ld = up(rows, align)
	}
	return l
}

// lines is the number of rows (columns, if column-major), width the elements in each.
func (l layout) lines() int {
	if l.colMajor {
		return l.cols
	}
	return l.rows
}

func (l layout) width() int {
	if l.colMajor {
		return l.rows
	}
	return l.cols
}

func (l layout) bytes() int64 { return int64(l.lines()) * int64(l.ld) * int64(l.typ.Size()) }

// NewTensor allocates a tensor. A block that exceeds the device's limits is ErrUnsupported.
func NewTensor(d *device.Device, s Shape) (*Tensor, error) {
	ts, err := NewTensors(d, s)
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}

// NewTensors allocates tensors, all or none. Together they are held against the device's memory first.
func NewTensors(d *device.Device, shapes ...Shape) ([]*Tensor, error) {
	var total int64
	for _, s := range shapes {
		n, err := s.bytes()
		if err != nil {
			return nil, err
		}
		if total > math.MaxInt64-n {
			n = math.MaxInt64 - total
		}
		total += n
	}
	if most := d.Memory(); most > 0 && total > most {
		return nil, fmt.Errorf("%s: %d bytes, and %v has %d: %w", describe(shapes), total, d.Info(), most, backend.ErrOutOfMemory)
	}
	var ts []*Tensor
	for _, s := range shapes {
		t, err := newTensor(d, s.whole())
		if err != nil {
			for _, t := range ts {
				t.Close()
			}
			return nil, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// describe names tensors by their sizes.
func describe(shapes []Shape) string {
	var sizes []string
	for _, s := range shapes {
		sizes = append(sizes, fmt.Sprintf("%d×%d", s.Rows, s.Cols))
	}
	return "tensors of " + strings.Join(sizes, " and ")
}

// newTensor allocates the blocks of a tensor.
func newTensor(d *device.Device, s Shape) (*Tensor, error) {
	if s.Type == dtype.F64 && !d.Caps().F64 {
		return nil, fmt.Errorf("a dense matrix of f64: there is no kernel for it on %v: %s: %w", d.Info(), device.WithoutDoubles(d.Caps()), backend.ErrUnsupported)
	}
	t := &Tensor{Shape: s, dev: d}
	t.idle.L = &t.mu
	for i := range s.rowBlocks() {
		for j := range s.colBlocks() {
			l := s.blockLayout(i, j)
			b, err := d.NewBuffer(l.bytes(), fmt.Sprintf("a dense %d×%d matrix of %v", l.rows, l.cols, s.Type))
			if err != nil {
				t.Close()
				return nil, err
			}
			t.blocks = append(t.blocks, b)
		}
	}
	return t, nil
}

// block returns the buffer of block (i, j). The caller uses the tensor, see use.
func (t *Tensor) block(i, j int) backend.Buffer {
	if t.of != nil {
		return t.of.block(j, i)
	}
	return t.blocks[i*t.colBlocks()+j]
}

// use keeps the tensor's blocks until release.
func (t *Tensor) use() error {
	if t.of != nil {
		return t.of.use()
	}
	if t.users.Add(1) < closed {
		return nil
	}
	t.release()
	return fmt.Errorf("a tensor of %d×%d: %w", t.Rows, t.Cols, backend.ErrClosed)
}

func (t *Tensor) release() {
	if t.of != nil {
		t.of.release()
		return
	}
	if t.users.Add(-1) == closed {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.idle.Broadcast()
	}
}

// Close refuses further calls, waits for those that use the tensor, and frees it. A second call does nothing.
func (t *Tensor) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users.Load() < closed {
		t.users.Add(closed)
	}
	for t.users.Load() != closed {
		t.idle.Wait()
	}
	var errs []error
	for _, b := range t.blocks {
		errs = append(errs, b.Close())
	}
	t.blocks = nil
	return cmp.Or(errs...)
}
