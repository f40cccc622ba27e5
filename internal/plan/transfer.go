// Copies between the host's memory and tensors, in pieces.

package plan

import (
	"context"
	"encoding/binary"

	"github.com/spmmrun/spmm/backend"
)

// Host is a dense matrix in the host's memory, as bytes: element (i, j) at byte offset
// (i·LD + j)·size, or (j·LD + i)·size if it is column-major.
type Host struct {
	Data     []byte
	LD       int
	ColMajor bool
}

// Write copies a host matrix of the same size and type, in either order, to the device.
func (t *Tensor) Write(ctx context.Context, h Host) error { return t.move(ctx, h, true) }

// Read copies the tensor to the host's matrix, leaving its padding alone.
func (t *Tensor) Read(ctx context.Context, h Host) error { return t.move(ctx, h, false) }

// chunk is how many bytes are moved at a time, so that a copy that rearranges them stays small and a
// cancelled context is noticed.
const chunk = 8 << 20

// move copies runs of lines (rows, or columns) block by block, to the device or from it.
func (t *Tensor) move(ctx context.Context, h Host, write bool) error {
	if err := t.use(); err != nil {
		return err
	}
	defer t.release()
	if t.Rows == 0 || t.Cols == 0 {
		return nil
	}
	var scratch []byte
	select {
	case scratch = <-t.dev.scratch:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { t.dev.scratch <- scratch }()
	size := t.Type.Size()
	for i := range t.rowBlocks() {
		for j := range t.colBlocks() {
			l := t.blockLayout(i, j)
			r := run{
				dev: t.block(i, j), host: h.Data[h.offset(i*t.RowBlock, j*t.ColBlock)*size:], size: size,
				width: l.width(), devLine: l.ld, hostLine: h.LD, transposed: h.ColMajor != t.ColMajor,
			}
			step := max(1, chunk/(l.ld*size))
			for at := 0; at < l.lines(); at += step {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := r.copy(ctx, at, min(step, l.lines()-at), &scratch, write); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// offset is the place of element (i, j), in elements.
func (h Host) offset(i, j int) int {
	if h.ColMajor {
		return j*h.LD + i
	}
	return i*h.LD + j
}

// run is a block of a tensor as lines that lie at regular distances on the device, and on the host too, or, where the
// orders differ, across the host's lines. All sizes but size are in elements.
type run struct {
	dev                      backend.Buffer
	host                     []byte // from the block's first element on
	size                     int    // of an element in bytes
	width, devLine, hostLine int
	transposed               bool
}

// copy moves n lines from line at on, by way of scratch unless they lie alike on both sides.
func (r run) copy(ctx context.Context, at, n int, scratch *[]byte, write bool) error {
	bytes, off := n*r.devLine*r.size, int64(at)*int64(r.devLine*r.size)
	if !r.transposed && r.width == r.devLine && r.width == r.hostLine {
		buf := r.host[off:][:bytes]
		if write {
			return r.dev.Write(ctx, off, buf)
		}
		return r.dev.Read(ctx, off, buf)
	}
	if cap(*scratch) < bytes {
		*scratch = make([]byte, bytes)
	}
	buf := (*scratch)[:bytes]
	if write {
		r.gather(buf, at, n)
		return r.dev.Write(ctx, off, buf)
	}
	if err := r.dev.Read(ctx, off, buf); err != nil {
		return err
	}
	r.scatter(buf, at, n)
	return nil
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

// transpose sets dst to src transposed: rows × cols elements of 2 or 4 bytes, in lines of ldd and lds elements. It
// goes by tiles, so that both sides stay in cache.
func transpose(dst []byte, ldd int, src []byte, lds int, rows, cols, size int) {
	const tile = 32
	for i0 := 0; i0 < rows; i0 += tile {
		for j0 := 0; j0 < cols; j0 += tile {
			for i := i0; i < min(i0+tile, rows); i++ {
				for j := j0; j < min(j0+tile, cols); j++ {
					d, s := dst[(i*ldd+j)*size:], src[(j*lds+i)*size:]
					if size == 4 {
						binary.NativeEndian.PutUint32(d, binary.NativeEndian.Uint32(s))
					} else {
						binary.NativeEndian.PutUint16(d, binary.NativeEndian.Uint16(s))
					}
				}
			}
		}
	}
}
