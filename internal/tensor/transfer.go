// Copies between the host's memory and tensors, in chunks.

package tensor

import (
	"context"
	"encoding/binary"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
)

// Write copies a host matrix of the same size and type, in either order, to the device.
func (t *Tensor) Write(ctx context.Context, h Host) error { return t.move(ctx, h, true) }

// Read copies the tensor to the host's matrix, leaving its padding alone.
func (t *Tensor) Read(ctx context.Context, h Host) error { return t.move(ctx, h, false) }

// move copies block by block, to the device or from it.
func (t *Tensor) move(ctx context.Context, h Host, write bool) error {
	if err := t.Use(); err != nil {
		return err
	}
	defer t.Release()
	if t.Rows == 0 || t.Cols == 0 {
		return nil
	}
	if err := t.Odd(); err != nil {
		return err
	}
	size := t.Type.Size()
	for i := range t.RowBlocks() {
		for j := range t.ColBlocks() {
			l := t.BlockLayout(i, j)
			r := run{
				dev: t.Block(i, j), host: h.Data[h.Offset(i*t.RowBlock, j*t.ColBlock)*size:], size: size, count: l.Lines(),
				width: l.width(), devLine: l.LD, hostLine: h.LD, transposed: h.ColMajor != t.ColMajor,
			}
			if err := r.move(ctx, t.device, write); err != nil {
				return err
			}
		}
	}
	return nil
}

// run is a block of a tensor as lines that lie at regular distances on the device, and on the host too, or, where the
// orders differ, across the host's lines. All sizes but size are in elements.
type run struct {
	dev                             backend.Buffer
	host                            []byte // from the block's first element on
	size                            int    // of an element in bytes
	count, width, devLine, hostLine int
	transposed                      bool
}

// move copies all lines: at once where the buffer takes them as they lie on the host, else some at a time.
func (r run) move(ctx context.Context, d *device.Device, write bool) error {
	if c, ok := r.dev.(backend.LineCopier); ok && !r.transposed {
		return MoveLines(ctx, c, r.lines(0, r.count, r.hostLine), r.host, write)
	}
	if _, ok := d.Device.(backend.HostAllocator); ok && r.alike() { // its copies look at the context
		return r.pass(ctx, 0, r.count, r.host[:r.count*r.devLine*r.size], write)
	}
	scratch, err := d.Borrow(ctx)
	if err != nil {
		return err
	}
	defer d.GiveBack(scratch)
	step := max(1, device.Chunk/(r.devLine*r.size))
	for at := 0; at < r.count; at += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.copy(ctx, at, min(step, r.count-at), &scratch, write); err != nil {
			return err
		}
	}
	return nil
}

// alike tells whether the lines follow each other without gaps on both sides.
func (r run) alike() bool {
	return !r.transposed && r.width == r.devLine && r.width == r.hostLine
}

// lines describes n lines of the buffer from line at on, which are hostLine elements apart on the host.
func (r run) lines(at, n, hostLine int) backend.Lines {
	size := int64(r.size)
	return backend.Lines{
		Off: int64(at) * int64(r.devLine) * size, Pitch: int64(r.devLine) * size,
		HostPitch: int64(hostLine) * size, Width: int64(r.width) * size, Count: n,
	}
}

func MoveLines(ctx context.Context, c backend.LineCopier, l backend.Lines, p []byte, write bool) error {
	if write {
		return c.WriteLines(ctx, l, p)
	}
	return c.ReadLines(ctx, l, p)
}

// copy moves n lines from line at on, by way of scratch unless they lie alike on both sides.
func (r run) copy(ctx context.Context, at, n int, scratch *[]byte, write bool) error {
	bytes, off := n*r.devLine*r.size, int64(at)*int64(r.devLine*r.size)
	if r.alike() {
		return r.pass(ctx, at, n, r.host[off:][:bytes], write)
	}
	if cap(*scratch) < bytes {
		*scratch = make([]byte, bytes)
	}
	buf := (*scratch)[:bytes]
	if write {
		r.gather(buf, at, n)
		return r.pass(ctx, at, n, buf, true)
	}
	if err := r.pass(ctx, at, n, buf, false); err != nil {
		return err
	}
	r.scatter(buf, at, n)
	return nil
}

// pass copies n lines between the buffer and buf, in which they lie as on the device. What is between the lines of an
// imported buffer is not the tensor's.
func (r run) pass(ctx context.Context, at, n int, buf []byte, write bool) error {
	l := r.lines(at, n, r.devLine)
	c, ok := r.dev.(backend.LineCopier)
	switch {
	case ok:
		return MoveLines(ctx, c, l, buf, write)
	case write:
		return r.dev.Write(ctx, l.Off, buf)
	}
	return r.dev.Read(ctx, l.Off, buf)
}

// gather brings n lines of the host, from line at on, into buf as they lie on the device; scatter brings them back.
func (r run) gather(buf []byte, at, n int) {
	if r.transposed {
		transpose(buf, r.devLine, r.host[at*r.size:], r.hostLine, n, r.width, r.size)
		return
	}
	for i := range n {
		copy(buf[i*r.devLine*r.size:][:r.width*r.size], r.host[(at+i)*r.hostLine*r.size:])
	}
}

func (r run) scatter(buf []byte, at, n int) {
	if r.transposed {
		transpose(r.host[at*r.size:], r.hostLine, buf, r.devLine, r.width, n, r.size)
		return
	}
	for i := range n {
		copy(r.host[(at+i)*r.hostLine*r.size:][:r.width*r.size], buf[i*r.devLine*r.size:])
	}
}

// transpose sets dst to src transposed: rows × cols elements of 2, 4 or 8 bytes, in lines of ldd and lds elements. It
// goes by tiles, so that both sides stay in cache.
func transpose(dst []byte, ldd int, src []byte, lds int, rows, cols, size int) {
	const tile = 32
	for i0 := 0; i0 < rows; i0 += tile {
		for j0 := 0; j0 < cols; j0 += tile {
			for i := i0; i < min(i0+tile, rows); i++ {
				for j := j0; j < min(j0+tile, cols); j++ {
					d, s := dst[(i*ldd+j)*size:], src[(j*lds+i)*size:]
					switch size {
					case 8:
						binary.NativeEndian.PutUint64(d, binary.NativeEndian.Uint64(s))
					case 4:
						binary.NativeEndian.PutUint32(d, binary.NativeEndian.Uint32(s))
					default:
						binary.NativeEndian.PutUint16(d, binary.NativeEndian.Uint16(s))
					}
				}
			}
		}
	}
}
