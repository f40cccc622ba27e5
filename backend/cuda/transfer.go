//go:build cuda && cgo && linux && (amd64 || arm64)

// Copies between the host's memory and the device. Page-locked memory, whoever made it, the device reads and writes
// by itself. All other goes through two page-locked blocks: while the device copies one, the other is filled or
// emptied.

package cuda

import (
	"context"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

const (
	stagingBlock = 4 << 20
	directChunk  = 64 << 20 // what is copied from page-locked memory at once; a context is looked at in between
	directLeast  = 16 << 10 // less goes through a block faster than it is looked at
)

// staging is the page-locked memory, made on first use.
type staging struct {
	block [2][]byte
	done  [2]cu.Event // the device's last use of the block, or of a chunk that needs none, has ended
}

func (s *staging) make() error {
	for i := range s.block {
		if s.block[i] != nil {
			continue
		}
		var err error
		if s.done[i] == (cu.Event{}) {
			if s.done[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return err
			}
		}
		if s.block[i], err = driver.HostAlloc(stagingBlock); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) free() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range s.block {
		if s.block[i] != nil {
			keep(cu.MemFreeHost(unsafe.Pointer(&s.block[i][0])))
			s.block[i] = nil
		}
		if s.done[i] != (cu.Event{}) {
			keep(cu.DestroyEvent(&s.done[i]))
		}
	}
	return first
}

// Write copies p to the buffer at off.
func (b *buffer) Write(ctx context.Context, off int64, p []byte) error {
	return b.copyRange(ctx, off, p, true)
}

// Read copies from the buffer at off to p.
func (b *buffer) Read(ctx context.Context, off int64, p []byte) error {
	return b.copyRange(ctx, off, p, false)
}

func (b *buffer) copyRange(ctx context.Context, off int64, p []byte, in bool) error {
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	n := int64(len(p))
	return b.copy(ctx, transfer{lines: backend.Lines{Off: off, Pitch: n, HostPitch: n, Width: n, Count: 1}, host: p,
		in: in})
}

// WriteLines copies lines from p to the buffer.
func (b *buffer) WriteLines(ctx context.Context, l backend.Lines, p []byte) error {
	return b.copyLines(ctx, l, p, true)
}

// ReadLines copies lines from the buffer to p.
func (b *buffer) ReadLines(ctx context.Context, l backend.Lines, p []byte) error {
	return b.copyLines(ctx, l, p, false)
}

func (b *buffer) copyLines(ctx context.Context, l backend.Lines, p []byte, in bool) error {
	if err := l.Check(b.size, len(p)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if in && !b.imported && l.Pitch == l.HostPitch { // one line, with what lies between them
		l.Width, l.Pitch, l.Count = int64(l.Count-1)*l.Pitch+l.Width, 0, 1
	}
	if l.Count == 1 || l.Width == l.Pitch && l.Width == l.HostPitch {
		l.Width *= int64(l.Count)
		l.Pitch, l.HostPitch, l.Count = l.Width, l.Width, 1
	}
	return b.copy(ctx, transfer{lines: l, host: p, in: in})
}

// transfer is a copy between the host's memory and a buffer.
type transfer struct {
	lines backend.Lines
	host  []byte
	in    bool         // to the device
	base  cu.DevicePtr // of the buffer
	loose bool         // what lies between the lines of the buffer may be overwritten

	direct bool  // without blocks
	most   int64 // bytes of a chunk
	even   bool  // chunks lie in a block as on the device, else without gaps
}

// copy runs a transfer whose lines were checked.
func (b *buffer) copy(ctx context.Context, t transfer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := b.dev
	if err := d.enter(ctx, true); err != nil {
		return err
	}
	defer d.leave()
	if b.closed {
		return errBufferClosed
	}
	if t.lines.Count == 0 || t.lines.Width == 0 {
		return nil
	}
	if err := d.staging.make(); err != nil {
		return d.fail("allocating page-locked host memory", err)
	}
	t.base, t.loose = b.ptr, !b.imported
	what := "reading from the device"
	if t.in {
		what = "writing to the device"
	}
	return d.finish(ctx, what, d.move(ctx, &t))
}

// finish waits for the copies that were started and turns the first error into the caller's.
func (d *device) finish(ctx context.Context, what string, err error) error {
	if e := d.queue.Stream().Synchronize(); err == nil || driver.Code(e) != 0 {
		err = e
	}
	if err == nil || err == ctx.Err() {
		return err
	}
	return d.fail(what, err)
}

// move starts all copies of a transfer.
func (d *device) move(ctx context.Context, t *transfer) error {
	t.direct = t.pageLocked()
	t.most = stagingBlock
	if t.direct {
		t.most = directChunk
	} else {
		// Lines with narrow gaps go as one: the device copies that faster.
		t.even = t.lines.Pitch <= 2*t.lines.Width && (t.loose || !t.in)
	}
	if t.in || t.direct {
		return d.pass(ctx, t)
	}
	return d.fetch(ctx, t)
}

// pageLocked reports whether the device copies from and to the host's memory by itself.
func (t *transfer) pageLocked() bool {
	bytes := t.host[:int64(t.lines.Count-1)*t.lines.HostPitch+t.lines.Width]
	return len(bytes) >= directLeast && driver.PageLocked(bytes)
}

// A chunk is part of a transfer: lines of the buffer, from an address on, and their bytes on the host.
type chunk struct {
	ptr  cu.DevicePtr
	l    backend.Lines
	host []byte
}

// chunk returns the i-th chunk that fits a block: some lines, or a segment of one.
func (t *transfer) chunk(i int) (p chunk, ok bool) {
	l := t.lines
	line, at, width, count := int64(i), int64(0), l.Width, int64(1)
	if parts := (l.Width + t.most - 1) / t.most; parts > 1 {
		line, at = int64(i)/parts, int64(i)%parts*t.most
		width = min(t.most, l.Width-at)
	} else {
		each := max(1, t.most/t.blockPitch())
		line *= each
		count = min(each, int64(l.Count)-line)
	}
	if line >= int64(l.Count) {
		return chunk{}, false
	}
	return chunk{
		ptr:  t.base + cu.DevicePtr(l.Off+line*l.Pitch+at),
		l:    backend.Lines{Pitch: l.Pitch, HostPitch: l.HostPitch, Width: width, Count: int(count)},
		host: t.host[line*l.HostPitch+at:],
	}, true
}

// blockPitch is the distance of lines in a block.
func (t *transfer) blockPitch() int64 {
	if t.even {
		return t.lines.Pitch
	}
	return t.lines.Width
}

// copyChunk starts the copy of a chunk, through a staging block unless the device copies by itself.
func (d *device) copyChunk(t *transfer, q chunk, block []byte) error {
	p, pitch := unsafe.Pointer(&q.host[0]), q.l.HostPitch
	if !t.direct {
		p, pitch = unsafe.Pointer(&block[0]), t.blockPitch()
	}
	s := d.queue.Stream()
	one := q.l.Count == 1 || pitch == q.l.Pitch && (t.even || pitch == q.l.Width)
	n := int64(q.l.Count-1)*pitch + q.l.Width
	switch {
	case one && t.in:
		return cu.MemcpyHtoDAsync(q.ptr, p, n, s)
	case one:
		return cu.MemcpyDtoHAsync(p, q.ptr, n, s)
	case t.in:
		return driver.CopyLinesIn(q.ptr, q.l.Pitch, p, pitch, q.l.Width, q.l.Count, s)
	}
	return driver.CopyLinesOut(p, pitch, q.ptr, q.l.Pitch, q.l.Width, q.l.Count, s)
}

// pass copies chunk by chunk, two at a time, to the device or without blocks. It fills the blocks by turns: one is free
// again when its last copy is done.
func (d *device) pass(ctx context.Context, t *transfer) error {
	s := &d.staging
	for i := 0; ; i++ {
		q, ok := t.chunk(i)
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if i >= 2 {
			if err := s.done[i&1].Synchronize(); err != nil {
				return err
			}
		}
		block := s.block[i&1]
		if !t.direct {
			copyLines(block, t.blockPitch(), q.host, q.l.HostPitch, q.l)
		}
		if err := d.copyChunk(t, q, block); err != nil {
			return err
		}
		if _, more := t.chunk(i + 2); more {
			if err := s.done[i&1].Record(d.queue.Stream()); err != nil {
				return err
			}
		}
	}
}

// fetch copies to the host by way of the blocks: it starts the copy of one chunk before it waits for the one before,
// and empties that one's block.
func (d *device) fetch(ctx context.Context, t *transfer) error {
	s := &d.staging
	begin := func(i int) (chunk, bool, error) {
		q, ok := t.chunk(i)
		if !ok {
			return q, false, nil
		}
		if err := d.copyChunk(t, q, s.block[i&1]); err != nil {
			return q, false, err
		}
		return q, true, s.done[i&1].Record(d.queue.Stream())
	}
	q, more, err := begin(0)
	for i := 0; more && err == nil; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var next chunk
		if next, more, err = begin(i + 1); err != nil {
			return err
		}
		if err := s.done[i&1].Synchronize(); err != nil {
			return err
		}
		copyLines(q.host, q.l.HostPitch, s.block[i&1], t.blockPitch(), q.l)
		q = next
	}
	return err
}
