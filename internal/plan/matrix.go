// Dense matrices on a device.

package plan

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// Shape says how a dense matrix lies on a device: in blocks of RowBlock × ColBlock elements, each a
// buffer of its own, row- or column-major. Zero means one block. More than one is needed only where
// the whole matrix exceeds what the device binds.
type Shape struct {
	Rows, Cols         int
	Type               dtype.Type
	ColMajor           bool
	RowBlock, ColBlock int
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

// Matrix is a dense matrix on a device. Its contents are undefined until they are written.
type Matrix struct {
	Shape
	dev    *Device
	blocks []backend.Buffer // nil once closed; block (i, j) is blocks[i*colBlocks+j]
}

// layout is how one block lies in its buffer.
type layout struct {
	rows, cols int
	ld         int
	colMajor   bool
	typ        dtype.Type
}

// align is what leading dimensions are rounded up to, in elements: kernels read B in chunks of 16
// bytes or more, and copies to the device move whole words.
const align = 8

func up(n, to int) int   { return (n + to - 1) / to * to }
func ceil(n, by int) int { return (n + by - 1) / by }

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

// NewMatrix allocates a matrix. A block that exceeds the device's limits is ErrUnsupported.
func (d *Device) NewMatrix(s Shape) (*Matrix, error) {
	if s.Rows < 0 || s.Cols < 0 {
		return nil, fmt.Errorf("a matrix of %d×%d", s.Rows, s.Cols)
	}
	s = s.whole()
	m := &Matrix{Shape: s, dev: d, blocks: []backend.Buffer{}}
	for i := range m.rowBlocks() {
		for j := range m.colBlocks() {
			l := m.blockLayout(i, j)
			b, err := d.alloc(l.bytes(), fmt.Sprintf("a dense %d×%d matrix of %v", l.rows, l.cols, s.Type))
			if err != nil {
				m.Close()
				return nil, err
			}
			m.blocks = append(m.blocks, b)
		}
	}
	return m, nil
}

func (m *Matrix) rowBlocks() int { return max(1, ceil(m.Rows, m.RowBlock)) }
func (m *Matrix) colBlocks() int { return max(1, ceil(m.Cols, m.ColBlock)) }

// blockLayout returns how block (i, j) lies in its buffer.
func (m *Matrix) blockLayout(i, j int) layout {
	rows := min(m.RowBlock, m.Rows-i*m.RowBlock)
	cols := min(m.ColBlock, m.Cols-j*m.ColBlock)
	return newLayout(rows, cols, m.Type, m.ColMajor)
}

func (m *Matrix) blockAt(i, j int) backend.Buffer { return m.blocks[i*m.colBlocks()+j] }

// Bytes returns the device memory the matrix takes.
func (m *Matrix) Bytes() int64 {
	var n int64
	for i := range m.rowBlocks() {
		for j := range m.colBlocks() {
			n += m.blockLayout(i, j).bytes()
		}
	}
	return n
}

// errClosed is what closed plans and matrices answer.
var errClosed = errors.New("used after Close")

// Close frees the matrix. A second call does nothing.
func (m *Matrix) Close() error {
	var err error
	for _, b := range m.blocks {
		if e := b.Close(); err == nil {
			err = e
		}
	}
	m.blocks = nil
	return err
}

// Host is a dense matrix in the host's memory, as bytes: element (i, j) at byte offset
// (i·LD + j)·size, or (j·LD + i)·size if it is column-major. The order must be the Matrix's own.
type Host struct {
	Data []byte
	LD   int
}

// Write copies a host matrix of the same size, type and order to the device.
func (m *Matrix) Write(ctx context.Context, h Host) error { return m.move(ctx, h, true) }

// Read copies the matrix to the host's, leaving the host's padding alone.
func (m *Matrix) Read(ctx context.Context, h Host) error { return m.move(ctx, h, false) }

// chunk is how many bytes are moved at a time, so that the copy that re-strides stays small and a
// cancelled context is noticed.
const chunk = 8 << 20

// scratch is the memory for that copy.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// move copies runs of lines (rows, or columns) block by block, to the device or from it.
func (m *Matrix) move(ctx context.Context, h Host, write bool) error {
	if m.blocks == nil {
		return errClosed
	}
	if m.Rows == 0 || m.Cols == 0 {
		return nil
	}
	tmp := scratch.Get().(*[]byte)
	defer scratch.Put(tmp)
	size := m.Type.Size()
	for i := range m.rowBlocks() {
		for j := range m.colBlocks() {
			l := m.blockLayout(i, j)
			start := i*m.RowBlock*h.LD + j*m.ColBlock
			if m.ColMajor {
				start = j*m.ColBlock*h.LD + i*m.RowBlock
			}
			step := max(1, chunk/(l.ld*size))
			for at := 0; at < l.lines(); at += step {
				if err := ctx.Err(); err != nil {
					return err
				}
				r := run{
					dev: m.blockAt(i, j), off: int64(at) * int64(l.ld*size),
					host: h.Data[(start+at*h.LD)*size:], lines: min(step, l.lines()-at),
					width: l.width() * size, devLine: l.ld * size, hostLine: h.LD * size,
				}
				if err := r.copy(ctx, tmp, write); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// run is a number of lines that lie at regular distances on the device and on the host; all sizes
// are in bytes.
type run struct {
	dev                      backend.Buffer
	off                      int64
	host                     []byte
	lines                    int
	width, devLine, hostLine int
}

func (r run) copy(ctx context.Context, tmp *[]byte, write bool) error {
	n := r.lines * r.devLine
	dense := r.width == r.devLine && r.width == r.hostLine
	buf := r.host
	if !dense {
		if cap(*tmp) < n {
			*tmp = make([]byte, n)
		}
		buf = *tmp
	}
	buf = buf[:n]
	if write {
		for i := 0; i < r.lines && !dense; i++ {
			copy(buf[i*r.devLine:][:r.width], r.host[i*r.hostLine:])
		}
		return r.dev.Write(ctx, r.off, buf)
	}
	if err := r.dev.Read(ctx, r.off, buf); err != nil {
		return err
	}
	for i := 0; i < r.lines && !dense; i++ {
		copy(r.host[i*r.hostLine:][:r.width], buf[i*r.devLine:][:r.width])
	}
	return nil
}
