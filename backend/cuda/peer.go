//go:build cuda && cgo && linux && (amd64 || arm64)

// Copies between devices. Where one can reach the other's memory (NVLink, PCIe) they go directly; else the driver takes
// them through page-locked memory of the host's.

package cuda

import (
	"context"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// peerChunk is the bytes that are copied at once; the context is checked in between.
const peerChunk = 256 << 20

// CanCopyFrom reports whether src is memory of a CUDA device.
func (b *buffer) CanCopyFrom(src backend.Buffer) bool {
	s, ok := src.(*buffer)
	return ok && s != nil
}

// source is the buffer that lines are copied from, if they can be.
func (b *buffer) source(ctx context.Context, src backend.Buffer, l backend.PeerLines) (*buffer, error) {
	if !b.CanCopyFrom(src) {
		return nil, fmt.Errorf("cuda: copying from another backend's buffer: %w", backend.ErrUnsupported)
	}
	s := src.(*buffer)
	if err := l.Check(b.size, s.size); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	return s, ctx.Err()
}

// CopyFrom copies lines of another buffer. See backend.PeerCopier.
func (b *buffer) CopyFrom(ctx context.Context, src backend.Buffer, l backend.PeerLines) error {
	s, err := b.source(ctx, src, l)
	if err != nil {
		return err
	}
	if s.dev != b.dev {
		// Whoever frees memory of that device waits for the copy. Its lock is not held meanwhile: others may copy from it,
		// too.
		s.dev.lending.RLock()
		defer s.dev.lending.RUnlock()
		if err := s.lend(ctx); err != nil {
			return err
		}
	}
	if err := b.dev.enter(ctx, true); err != nil {
		return err
	}
	defer b.dev.leave()
	if b.closed || s.dev == b.dev && s.closed {
		return errBufferClosed
	}
	if l.Count == 0 || l.Width == 0 {
		return nil
	}
	return b.dev.copyPeer(ctx, b, s, l)
}

// CopyFromAside is CopyFrom in the stream of WriteAside, which waits for nothing. See backend.PeerCopier.
func (b *buffer) CopyFromAside(ctx context.Context, src backend.Buffer, l backend.PeerLines) error {
	s, err := b.source(ctx, src, l)
	if err != nil {
		return err
	}
	for _, d := range inOrder(b.dev, s.dev) { // nothing is freed meanwhile
		d.lending.RLock()
		defer d.lending.RUnlock()
		if d.closed {
			return errClosed
		}
	}
	if b.closed || s.closed {
		return errBufferClosed
	}
	if l.Count == 0 || l.Width == 0 {
		return nil
	}
	d := b.dev
	d.aside.mu.Lock()
	defer d.aside.mu.Unlock()
	if err := d.push(); err != nil {
		return wrap("entering the context", err)
	}
	defer d.pop()
	d.mu.Lock()
	err = d.reach(s.dev)
	d.mu.Unlock()
	if err != nil {
		return wrap("reaching another device's memory", err)
	}
	if err := d.aside.make(); err != nil {
		return wrap("making a stream", err)
	}
	if err := d.copyChunks(ctx, b, s, l, d.aside.stream); err != nil && err != ctx.Err() {
		return wrap("copying from another device", err)
	}
	return ctx.Err()
}

// inOrder returns devices without the second of two that are one, in an order that does not depend on theirs.
func inOrder(a, b *device) []*device {
	switch x, y := uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b)); {
	case x == y:
		return []*device{a}
	case x > y:
		return []*device{b, a}
	}
	return []*device{a, b}
}

// lend waits for what has been started on the buffer's device.
func (b *buffer) lend(ctx context.Context) error {
	if err := b.dev.enter(ctx, true); err != nil {
		return err
	}
	defer b.dev.leave()
	if b.closed {
		return errBufferClosed
	}
	return nil
}

// copyPeer copies checked lines to a buffer of d, chunk by chunk.
func (d *device) copyPeer(ctx context.Context, dst, src *buffer, l backend.PeerLines) error {
	if err := d.reach(src.dev); err != nil {
		return d.fail("reaching another device's memory", err)
	}
	return d.finish(ctx, "copying from another device", d.copyChunks(ctx, dst, src, l, d.queue.Stream()))
}

// copyChunks copies chunks in a stream, one after another.
func (d *device) copyChunks(ctx context.Context, dst, src *buffer, l backend.PeerLines, in cu.Stream) error {
	if l.Count == 1 || l.Width == l.Pitch && l.Width == l.SrcPitch { // one line, which may be cut anywhere
		l.Width, l.Count = l.Width*int64(l.Count), 1
	}
	var err error
	for err == nil && l.Count > 0 && l.Width > 0 {
		if err = ctx.Err(); err != nil {
			break
		}
		q := l
		if l.Count == 1 {
			q.Width = min(l.Width, peerChunk)
		} else {
			q.Count = int(min(int64(l.Count), max(1, peerChunk/l.Width)))
		}
		to, from := dst.ptr+cu.DevicePtr(q.Off), src.ptr+cu.DevicePtr(q.SrcOff)
		err = driver.CopyPeer(to, d.ctx, q.Pitch, from, src.dev.ctx, q.SrcPitch, q.Width, q.Count, in)
		if err == nil {
			err = in.Synchronize()
		}
		if l.Count == 1 {
			l.Off, l.SrcOff, l.Width = l.Off+q.Width, l.SrcOff+q.Width, l.Width-q.Width
			continue
		}
		l.Off, l.SrcOff, l.Count = l.Off+int64(q.Count)*l.Pitch, l.SrcOff+int64(q.Count)*l.SrcPitch, l.Count-q.Count
	}
	return err
}

// reach lets the device read another's memory by itself, if it can.
func (d *device) reach(other *device) error {
	if d.ctx == other.ctx || d.reached[other.ctx] {
		return nil
	}
	can, err := d.dev.CanAccessPeer(other.dev)
	if err != nil {
		return err
	}
	if can != 0 && d.dev != other.dev {
		err := other.ctx.EnablePeerAccess(0)
		switch driver.Code(err) {
		case 0, driver.PeerAccessEnabled, driver.PeerAccessUnsupported, driver.TooManyPeers:
		default:
			return err
		}
	}
	if d.reached == nil {
		d.reached = map[cu.CUContext]bool{}
	}
	d.reached[other.ctx] = true
	return nil
}
