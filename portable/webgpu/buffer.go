//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Buffers and copies to and from them.

package webgpu

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/spmmrun/spmm/backend"
)

const (
	// useStorage is the use of a buffer: kernels, and copies in both directions.
	useStorage  = 4 | 8 | 128
	useUniform  = 8 | 64
	useReadBack = 1 | 8
	// step is the most bytes that one copy moves; it bounds the memory that copies take in addition to the buffers.
	step = 32 << 20
)

type buffer struct {
	dev  *device
	size int64
	ref  ref       // none once closed
	used []*kernel // that have bind groups with it
}

// Alloc refuses what exceeds the size of one binding, since a buffer is always bound whole.
func (d *device) Alloc(bytes int64) (backend.Buffer, error) {
	if err := backend.CheckAlloc(bytes); err != nil {
		return nil, err
	}
	if bytes > d.caps.MaxBinding {
		return nil, fmt.Errorf("buffer of %d bytes: %s binds at most %d bytes (maxStorageBufferBindingSize, maxBufferSize): %w",
			bytes, d.info.Name, d.caps.MaxBinding, backend.ErrUnsupported)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	// Whole 16-byte units, so that a kernel may see any buffer as vectors.
	units := min((bytes+15)&^15, d.caps.MaxBinding&^3)
	b := &buffer{dev: d, size: bytes, ref: d.gpu.buffer(useStorage, units)}
	if err := d.take(fmt.Sprintf("buffer of %d bytes", bytes)); err != nil {
		return nil, err
	}
	d.buffers[b] = struct{}{}
	return b, nil
}

func (b *buffer) Size() int64 { return b.size }

// begin locks the device for a copy; a nil error means that the caller must unlock it.
func (b *buffer) begin(ctx context.Context, off int64, n int) error {
	if err := backend.CheckRange(b.size, off, n); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.dev.mu.Lock()
	err := b.dev.usable()
	if err == nil && b.ref == none {
		err = errClosed
	}
	if err == nil {
		err = b.dev.settle(ctx)
	}
	if err != nil {
		b.dev.mu.Unlock()
	}
	return err
}

func (b *buffer) Write(ctx context.Context, off int64, p []byte) error {
	d := b.dev
	return b.inSteps(ctx, "writing a buffer", off, p, func(off int64, p []byte) error {
		d.gpu.write(b.ref, off, p)
		if d.pending += len(p); d.pending >= step {
			d.gpu.flush()
			d.pending = 0
		}
		return nil
	})
}

func (b *buffer) Read(ctx context.Context, off int64, p []byte) error {
	d := b.dev
	return b.inSteps(ctx, "reading a buffer", off, p, func(off int64, p []byte) error {
		if err := d.staging.atLeast(d, len(p)); err != nil {
			return err
		}
		d.pending = 0
		d.gpu.read(b.ref, off, d.staging.ref, p)
		return nil
	})
}

// inSteps moves p, which lies off bytes into the buffer, step bytes at a time. what tells errors what it does.
func (b *buffer) inSteps(ctx context.Context, what string, off int64, p []byte,
	move func(off int64, p []byte) error) error {
	if err := b.begin(ctx, off, len(p)); err != nil {
		return err
	}
	d := b.dev
	defer d.mu.Unlock()
	for len(p) > 0 {
		n := min(len(p), step)
		if err := move(off, p[:n]); err != nil {
			return err
		}
		if err := d.take(what); err != nil {
			return err
		}
		off, p = off+int64(n), p[n:]
	}
	return nil
}

func (b *buffer) Close() error {
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	if b.ref != none {
		b.dev.settle(context.Background()) // a loss is for the next call to tell
	}
	b.free()
	return nil
}

// free is called with the device locked. Whatever goes wrong is of no use to the caller.
func (b *buffer) free() {
	if b.ref == none {
		return
	}
	for _, k := range b.used {
		k.forget(b)
	}
	b.dev.gpu.freeBuffer(b.ref)
	delete(b.dev.buffers, b)
	b.ref, b.used = none, nil
}

// staging is the buffer that reads go through; it grows to step bytes at most.
type staging struct {
	ref  ref
	size int
}

func (s *staging) atLeast(d *device, n int) error {
	if s.size >= n {
		return nil
	}
	s.free(d)
	size := max(1<<16, 1<<bits.Len(uint(n-1)))
	s.ref = d.gpu.buffer(useReadBack, int64(size))
	if err := d.take("a buffer to read back through"); err != nil {
		return err
	}
	s.size = size
	return nil
}

func (s *staging) free(d *device) {
	if s.ref != none {
		d.gpu.freeBuffer(s.ref)
	}
	*s = staging{}
}
