// Copies between several devices: directly where a device can reach the other's memory, else through the host's.

package many

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// together calls f for each of n devices, all at once. The first error ends the others.
func together(ctx context.Context, n int, f func(ctx context.Context, d int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	run, ctx := errgroup.WithContext(ctx)
	for d := range n {
		run.Go(func() error { return f(ctx, d) })
	}
	return run.Wait()
}

// Copy makes the elements of one matrix those of another, of the same size and type on the same devices. It returns the
// bytes that went from one device to another.
func Copy(ctx context.Context, dst, src tensor.Operand) (int64, error) {
	if src == nil {
		return 0, errors.New("the tensor to copy is missing")
	}
	switch t := dst.(type) {
	case *tensor.Tensor:
		one, err := tensor.One(src)
		if err != nil {
			return 0, err
		}
		return copyOne(ctx, t, one)
	case *Tensor:
		if s, is := src.(*Tensor); is {
			return t.copy(ctx, s)
		}
	}
	return 0, errors.New("a tensor lies on one device by itself, not on several")
}

// copy is Copy on several devices.
func (t *Tensor) copy(ctx context.Context, src *Tensor) (int64, error) {
	switch {
	case !slices.Equal(t.devs, src.devs):
		return 0, errors.New("tensors on other devices")
	case t.Rows != src.Rows || t.Cols != src.Cols || t.Type != src.Type:
		return 0, fmt.Errorf("a %d×%d tensor of %v cannot be made of one of %d×%d of %v", t.Rows, t.Cols, t.Type, src.Rows,
			src.Cols, src.Type)
	case t == src:
		return 0, nil
	}
	var moved atomic.Int64
	err := together(ctx, len(t.parts), func(ctx context.Context, d int) error {
		if t.parts[d] == nil {
			return nil
		}
		for _, from := range src.sources(d, t.boxes[d]) {
			n, err := t.copyPart(ctx, d, src, from)
			if err != nil {
				return named(t.devs[d], fmt.Errorf("copying from %s:%d: %w", src.devs[from].Info().Backend,
					src.devs[from].Info().Index, err))
			}
			if t.devs[d] != src.devs[from] {
				moved.Add(n)
			}
		}
		return nil
	})
	return moved.Load(), err
}

// copyOne makes the elements of another tensor on the device, of the same size, type and order, those of t.
func copyOne(ctx context.Context, t, src *tensor.Tensor) (int64, error) {
	switch {
	case t.Device() != src.Device():
		return 0, errors.New("tensors on other devices")
	case t.Rows != src.Rows || t.Cols != src.Cols || t.Type != src.Type || t.ColMajor != src.ColMajor:
		return 0, fmt.Errorf("a %d×%d tensor of %v cannot be made of one of %d×%d of %v, or of another order", t.Rows, t.Cols, t.Type, src.Rows, src.Cols, src.Type)
	case t == src:
		return 0, nil
	}
	if t.ColMajor {
		t, src = t.Transposed(), src.Transposed()
	}
	whole := box{0, t.Rows, 0, t.Cols}
	_, err := copyBox(ctx, t, whole, src, whole, false)
	return 0, err
}

// sources returns the parts that a box on device d is copied from: that device's own if it has all of it, which spares
// the link.
func (t *Tensor) sources(d int, x box) []int {
	if x.empty() {
		return nil
	}
	if t.parts[d] != nil && t.boxes[d].and(x) == x {
		return []int{d}
	}
	var from []int
	for i := range t.parts {
		if t.parts[i] != nil && !t.boxes[i].and(x).empty() {
			from = append(from, i)
		}
		if t.At == Replicated && len(from) > 0 {
			break
		}
	}
	return from
}

// copyPart copies what device d's part has in common with another tensor's part on device from, block by block.
func (t *Tensor) copyPart(ctx context.Context, d int, src *Tensor, from int) (int64, error) {
	return copyBox(ctx, t.parts[d], t.boxes[d], src.parts[from], src.boxes[from], false)
}

// copyBox copies what two tensors that have boxes of one matrix have in common; aside, while other work runs on
// both devices.
func copyBox(ctx context.Context, dst *tensor.Tensor, into box, s *tensor.Tensor, has box, aside bool) (int64, error) {
	if err := s.Use(); err != nil {
		return 0, err
	}
	defer s.Release()
	if err := dst.Use(); err != nil {
		return 0, err
	}
	defer dst.Release()
	var bytes int64
	for i := range dst.RowBlocks() * dst.ColBlocks() {
		to, at := lying(dst, i, into)
		for k := range s.RowBlocks() * s.ColBlocks() {
			of, lies := lying(s, k, has)
			x := at.and(lies)
			if x.empty() {
				continue
			}
			c := copying{
				dst: to.buf, dstOff: to.offset(at, x), dstPitch: to.pitch,
				src: of.buf, srcOff: of.offset(lies, x), srcPitch: of.pitch,
				width: int64(x.c1-x.c0) * int64(dst.Type.Size()), count: x.r1 - x.r0, aside: aside,
			}
			if err := c.run(ctx); err != nil {
				return bytes, err
			}
			bytes += c.width * int64(c.count)
		}
	}
	return bytes, nil
}

// lines is a block of a row-major tensor in its buffer.
type lines struct {
	buf         backend.Buffer
	pitch, size int64
}

// offset is the byte where x begins in the block, which has the elements of box at.
func (l lines) offset(at, x box) int64 { return int64(x.r0-at.r0)*l.pitch + int64(x.c0-at.c0)*l.size }

// lying returns block number i of a tensor, and which elements of a matrix are in it where the tensor has those of box
// x.
func lying(t *tensor.Tensor, i int, x box) (lines, box) {
	r, c := i/t.ColBlocks(), i%t.ColBlocks()
	l := t.BlockLayout(r, c)
	at := box{r0: x.r0 + r*t.RowBlock, c0: x.c0 + c*t.ColBlock}
	at.r1, at.c1 = at.r0+l.Rows, at.c0+l.Cols
	size := int64(t.Type.Size())
	return lines{t.Block(r, c), int64(l.LD) * size, size}, at
}

// copying is lines of one buffer to be copied to another, on the same device or not. Offsets are multiples of 4; where
// the width is none, what follows it in a line up to the next is nobody's.
type copying struct {
	dst, src           backend.Buffer
	dstOff, srcOff     int64
	dstPitch, srcPitch int64
	width              int64
	count              int
	aside              bool // while other work runs on the devices, where they copy directly
}

// run copies directly where the buffers' backend can, else through the host's memory.
func (c copying) run(ctx context.Context) error {
	if p, ok := c.dst.(backend.PeerCopier); ok && p.CanCopyFrom(c.src) {
		l := backend.PeerLines{Off: c.dstOff, Pitch: c.dstPitch, SrcOff: c.srcOff, SrcPitch: c.srcPitch, Width: c.width,
			Count: c.count}
		if c.aside {
			return p.CopyFromAside(ctx, c.src, l)
		}
		return p.CopyFrom(ctx, c.src, l)
	}
	c.width = (c.width + 3) &^ 3
	return c.stage(ctx)
}

// stage copies through two buffers in the host's memory: while one is written the other is read.
func (c copying) stage(ctx context.Context) error {
	each := int(max(1, min(int64(c.count), device.Chunk/c.srcPitch)))
	free, full := make(chan []byte, 2), make(chan staged, 2)
	for range min(2, spec.Ceil(c.count, each)) {
		free <- make([]byte, int64(each)*c.width)
	}
	run, ctx := errgroup.WithContext(ctx)
	run.Go(func() error {
		defer close(full)
		for at := 0; at < c.count; at += each {
			s := staged{at: at, n: min(each, c.count-at)}
			select {
			case s.p = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := c.lines(ctx, c.src, c.srcOff, c.srcPitch, s, false); err != nil {
				return err
			}
			full <- s
		}
		return nil
	})
	run.Go(func() error {
		for s := range full {
			if err := c.lines(ctx, c.dst, c.dstOff, c.dstPitch, s, true); err != nil {
				return err
			}
			free <- s.p
		}
		return ctx.Err()
	})
	return run.Wait()
}

// staged is n lines from number at on, side by side in the host's memory.
type staged struct {
	p     []byte
	at, n int
}

// lines copies lines to a buffer or from it.
func (c copying) lines(ctx context.Context, b backend.Buffer, off, pitch int64, s staged, write bool) error {
	off += int64(s.at) * pitch
	p := s.p[:int64(s.n)*c.width]
	if l, ok := b.(backend.LineCopier); ok {
		return tensor.MoveLines(ctx, l, backend.Lines{Off: off, Pitch: pitch, HostPitch: c.width, Width: c.width, Count: s.n},
			p, write)
	}
	whole := int64(s.n)
	if pitch == c.width { // as one
		s.n = 1
	}
	for i := range int64(s.n) {
		line := p[i*c.width:][:int64(len(p))-i*c.width]
		if int64(s.n) == whole {
			line = line[:c.width]
		}
		if err := c.line(ctx, b, off+i*pitch, line, write); err != nil {
			return err
		}
	}
	return nil
}

func (c copying) line(ctx context.Context, b backend.Buffer, off int64, p []byte, write bool) error {
	if write {
		return b.Write(ctx, off, p)
	}
	return b.Read(ctx, off, p)
}
