// Package tensor holds dense matrices on a device.
//
// A Shape decides how a matrix lies: its order, its blocks, the distance of its lines. A Tensor keeps the buffers,
// its own or another program's, and how many calls use them. Write and Read copy between it and the host's memory.
package tensor

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

// Described returns the shape: of a tensor in which it is embedded, too.
func (s Shape) Described() Shape { return s }

// Whole returns the shape with its blocks no larger than the matrix, and at least of one element.
func (s Shape) Whole() Shape {
	if s.RowBlock <= 0 || s.RowBlock > s.Rows {
		s.RowBlock = max(1, s.Rows)
	}
	if s.ColBlock <= 0 || s.ColBlock > s.Cols {
		s.ColBlock = max(1, s.Cols)
	}
	return s
}

func (s Shape) RowBlocks() int { return max(1, spec.Ceil(s.Rows, s.RowBlock)) }
func (s Shape) ColBlocks() int { return max(1, spec.Ceil(s.Cols, s.ColBlock)) }

// blockLayout returns how block (i, j) lies in its buffer.
func (s Shape) blockLayout(i, j int) Layout {
	rows := min(s.RowBlock, s.Rows-i*s.RowBlock)
	cols := min(s.ColBlock, s.Cols-j*s.ColBlock)
	l := NewLayout(rows, cols, s.Type, s.ColMajor)
	if s.Tight {
		l.LD, l.Loose, l.Tight = spec.TightLD(cols), true, true
	}
	return l
}

// maxDim bounds rows and columns: indices on devices have 32 bits.
const maxDim = math.MaxInt32

// CheckDim refuses a number of rows or columns that no tensor can have.
func CheckDim(n int, what string) error {
	switch {
	case n < 0:
		return fmt.Errorf("%d %s: must be 0 or more", n, what)
	case n > maxDim:
		return fmt.Errorf("%d %s: at most %d are possible: %w", n, what, maxDim, backend.ErrUnsupported)
	}
	return nil
}

// Size returns the device memory that a tensor of the shape takes. More than 63 bits count is ErrOutOfMemory.
func (s Shape) Size() (int64, error) {
	if err := cmp.Or(CheckDim(s.Rows, "rows"), CheckDim(s.Cols, "columns")); err != nil {
		return 0, fmt.Errorf("a tensor of %d×%d: %w", s.Rows, s.Cols, err)
	}
	s = s.Whole()
	lines, width, block, blocks := s.Rows, s.Cols, s.ColBlock, s.ColBlocks()
	if s.ColMajor {
		lines, width, block, blocks = s.Cols, s.Rows, s.RowBlock, s.RowBlocks()
	}
	// The last block of a line may be narrower than the others.
	full := int64(blocks - 1)
	padded := full*Up(int64(block), Align) + Up(int64(width)-full*int64(block), Align)
	if s.Tight {
		padded = int64(spec.TightLD(s.Cols))
	}
	hi, lo := bits.Mul64(uint64(padded)*uint64(s.Type.Size()), uint64(lines))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, fmt.Errorf("a tensor of %d×%d takes more than %d bytes: %w", s.Rows, s.Cols, int64(math.MaxInt64),
			backend.ErrOutOfMemory)
	}
	return int64(lo), nil
}

// Tensor is a dense matrix on a device. Its contents are undefined until they are written. Its methods may be
// called from any goroutine.
type Tensor struct {
	Shape
	device  *device.Device
	foreign *foreign // nil: the memory is the tensor's own

	users  atomic.Int64     // calls that use the blocks, plus closed once no further call may
	blocks []backend.Buffer // block (i, j) is blocks[i*colBlocks+j]; nil once freed
	mu     sync.Mutex       // of Close
	idle   sync.Cond        // the last user of a closed tensor is done

	of   *Tensor // set in a view: the tensor whose transpose it is, which has the memory
	view *Tensor // see Transposed
	turn sync.Once
}

// closed is more than calls can be.
const closed = 1 << 62

// Layout is how one block lies in its buffer.
type Layout struct {
	Rows, Cols int
	LD         int // elements from line to line
	First      int // the element of the buffer that it begins with
	ColMajor   bool
	Type       dtype.Type
	Loose      bool // kernels do not take it as it lies: kernel densecopy rearranges it, whatever its order and type
	Tight      bool // loose, except for kernels that are spec.Variant.Tight, and as C
}

// Align divides leading dimensions, which are rounded up to it, in elements: kernels read B in chunks of 16
// bytes or more, and copies to the device move whole words.
const Align = 8

// Up rounds n up to a multiple of to.
func Up[I int | int64](n, to I) I { return (n + to - 1) / to * to }

// NewLayout returns the layout of a rows × cols block.
func NewLayout(rows, cols int, t dtype.Type, colMajor bool) Layout {
	l := Layout{Rows: rows, Cols: cols, LD: Up(cols, Align), ColMajor: colMajor, Type: t}
	if colMajor {
		l.LD = Up(rows, Align)
	}
	return l
}

// Lines is the number of rows (columns, if column-major), width the elements in each.
func (l Layout) Lines() int {
	if l.ColMajor {
		return l.Cols
	}
	return l.Rows
}

func (l Layout) width() int {
	if l.ColMajor {
		return l.Rows
	}
	return l.Cols
}

func (l Layout) Size() int64 { return int64(l.Lines()) * int64(l.LD) * int64(l.Type.Size()) }

// New allocates a tensor. A block that exceeds the device's limits is ErrUnsupported.
func New(d *device.Device, s Shape) (*Tensor, error) {
	ts, err := NewAll(d, s)
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}

// NewAll allocates tensors, all or none. Together they are held against the device's memory first.
func NewAll(d *device.Device, shapes ...Shape) ([]*Tensor, error) {
	var total int64
	for _, s := range shapes {
		n, err := s.Size()
		if err != nil {
			return nil, err
		}
		if total > math.MaxInt64-n {
			n = math.MaxInt64 - total
		}
		total += n
	}
	if most := d.Memory(); most > 0 && total > most {
		return nil, fmt.Errorf("%s: %d bytes, and %v has %d: %w", describe(shapes), total, d.Info(), most,
			backend.ErrOutOfMemory)
	}
	var ts []*Tensor
	for _, s := range shapes {
		t, err := newTensor(d, s.Whole())
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
		return nil, fmt.Errorf("a dense matrix of f64: there is no kernel for it on %v: %s: %w", d.Info(),
			device.WithoutDoubles(d.Caps()), backend.ErrUnsupported)
	}
	t := &Tensor{Shape: s, device: d}
	t.idle.L = &t.mu
	for i := range s.RowBlocks() {
		for j := range s.ColBlocks() {
			l := s.blockLayout(i, j)
			b, err := d.NewBuffer(l.Size(), fmt.Sprintf("a dense %d×%d matrix of %v", l.Rows, l.Cols, s.Type))
			if err != nil {
				t.Close()
				return nil, err
			}
			t.blocks = append(t.blocks, b)
		}
	}
	return t, nil
}

// Block returns the buffer of block (i, j). The caller uses the tensor, see use.
func (t *Tensor) Block(i, j int) backend.Buffer {
	if t.of != nil {
		return t.of.Block(j, i)
	}
	return t.blocks[i*t.ColBlocks()+j]
}

// Use keeps the tensor's blocks until release.
func (t *Tensor) Use() error {
	if t.of != nil {
		return t.of.Use()
	}
	if t.users.Add(1) < closed {
		return nil
	}
	t.Release()
	return fmt.Errorf("a tensor of %d×%d: %w", t.Rows, t.Cols, backend.ErrClosed)
}

func (t *Tensor) Release() {
	if t.of != nil {
		t.of.Release()
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

// Device returns the device that the tensor is on.
func (t *Tensor) Device() *device.Device { return t.device }

// Memory returns the buffer of a row-major tensor in one block, and the bytes from row to row. It is valid until Close.
func (t *Tensor) Memory() (backend.Buffer, int, error) {
	if t.ColMajor || t.RowBlocks() > 1 || t.ColBlocks() > 1 || t.of != nil {
		return nil, 0, fmt.Errorf("memory of a tensor of %d×%d: it is column-major or in blocks: %w", t.Rows, t.Cols,
			backend.ErrUnsupported)
	}
	if err := t.Use(); err != nil {
		return nil, 0, err
	}
	defer t.Release()
	l := t.BlockLayout(0, 0)
	return t.Block(0, 0), l.LD * l.Type.Size(), nil
}
