// Copies of lines that lie at regular distances.

package cpu

import (
	"context"

	"github.com/spmmrun/spmm/backend"
)

// WriteLines copies lines from p to the buffer.
func (b *buffer) WriteLines(ctx context.Context, l backend.Lines, p []byte) error {
	return b.copyLines(ctx, lines{l, p, true}, len(p))
}

// ReadLines copies lines from the buffer to p.
func (b *buffer) ReadLines(ctx context.Context, l backend.Lines, p []byte) error {
	return b.copyLines(ctx, lines{l, p, false}, len(p))
}

// lines are to be copied from the host's memory, or to it.
type lines struct {
	backend.Lines
	host []byte
	in   bool
}

func (b *buffer) copyLines(ctx context.Context, l lines, n int) error {
	if err := l.Check(b.size, n); err != nil {
		return err
	}
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.dev.mu.Unlock()
	if l.Count == 0 || l.Width == 0 {
		return nil
	}
	if l.Count == 1 || l.Width == l.Pitch && l.Width == l.HostPitch { // one line, which may be cut anywhere
		l.host = l.host[:int64(l.Count)*l.Width]
		l.Width, l.Pitch, l.HostPitch, l.Count = chunk, chunk, chunk, (len(l.host)+chunk-1)/chunk
	}
	if int64(l.Count)*l.Pitch <= chunk {
		l.copy(b.mem[l.Off:], 0, int64(l.Count))
		return nil
	}
	return b.shareLines(ctx, l)
}

// shareLines has all workers copy, a few lines at a time.
func (b *buffer) shareLines(ctx context.Context, l lines) error {
	mem, count := b.mem[l.Off:], int64(l.Count)
	each := max(1, chunk/l.Pitch)
	err := b.dev.pool.do(ctx.Done(), (count+each-1)/each, func(lo, hi int64) {
		l.copy(mem, lo*each, min(hi*each, count))
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// copy copies lines lo to hi-1. The last may be shorter.
func (l lines) copy(mem []byte, lo, hi int64) {
	for i := lo; i < hi; i++ {
		host := l.host[i*l.HostPitch:]
		host = host[:min(l.Width, int64(len(host)))]
		if l.in {
			copy(mem[i*l.Pitch:], host)
		} else {
			copy(host, mem[i*l.Pitch:])
		}
	}
}
