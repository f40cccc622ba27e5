// Copies between devices, which share the host's memory.

package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

// CanCopyFrom reports whether src is a buffer of this package's.
func (b *buffer) CanCopyFrom(src backend.Buffer) bool {
	s, ok := src.(*buffer)
	return ok && s != nil
}

// CopyFrom copies lines of another buffer. See backend.PeerCopier.
func (b *buffer) CopyFrom(ctx context.Context, src backend.Buffer, l backend.PeerLines) error {
	s, ok := src.(*buffer)
	if !ok || s == nil {
		return fmt.Errorf("cpu: copying from another backend's buffer: %w", backend.ErrUnsupported)
	}
	if err := l.Check(b.size, s.size); err != nil {
		return err
	}
	first, second := b, s // who copies the other way locks in the same order
	if uintptr(unsafe.Pointer(s.dev)) < uintptr(unsafe.Pointer(b.dev)) {
		first, second = s, b
	}
	if err := first.enter(ctx); err != nil {
		return err
	}
	defer first.dev.mu.Unlock()
	switch {
	case first.dev != second.dev:
		if err := second.enter(ctx); err != nil {
			return err
		}
		defer second.dev.mu.Unlock()
	case second.mem == nil:
		return errClosed
	}
	if l.Count == 0 || l.Width == 0 {
		return nil
	}
	if l.Count == 1 || l.Width == l.Pitch && l.Width == l.SrcPitch { // one line, which may be cut anywhere
		n := int64(l.Count) * l.Width
		return b.shareLines(ctx, lines{
			Lines: backend.Lines{Off: l.Off, Width: chunk, Pitch: chunk, HostPitch: chunk, Count: int((n + chunk - 1) / chunk)},
			host:  s.mem[l.SrcOff:][:n], in: true,
		})
	}
	return b.shareLines(ctx, lines{
		Lines: backend.Lines{Off: l.Off, Width: l.Width, Pitch: l.Pitch, HostPitch: l.SrcPitch, Count: l.Count},
		host:  s.mem[l.SrcOff:], in: true,
	})
}

// CopyFromAside is CopyFrom: the processor's cores are busy anyway.
func (b *buffer) CopyFromAside(ctx context.Context, src backend.Buffer, l backend.PeerLines) error {
	return b.CopyFrom(ctx, src, l)
}
