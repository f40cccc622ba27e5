//go:build cuda && cgo && linux && (amd64 || arm64)

// Copies to the device while it runs launches: in a stream of their own.

package cuda

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// aside is the stream for such copies, and two page-locked blocks for what is not page-locked; made on first use.
type aside struct {
	mu      sync.Mutex // one copy at a time
	stream  cu.Stream
	made    bool
	staging staging
}

// WriteAside copies p to the buffer at off. See backend.SideWriter.
func (b *buffer) WriteAside(ctx context.Context, off int64, p []byte) error {
	if err := backend.CheckRange(b.size, off, len(p)); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d := b.dev
	d.lending.RLock() // nothing is freed meanwhile
	defer d.lending.RUnlock()
	if d.closed {
		return errClosed
	}
	if b.closed {
		return errBufferClosed
	}
	if len(p) == 0 {
		return nil
	}
	d.aside.mu.Lock()
	defer d.aside.mu.Unlock()
	if err := d.push(); err != nil {
		return wrap("entering the context", err)
	}
	defer d.pop()
	if err := d.aside.make(); err != nil {
		return wrap("making a stream", err)
	}
	err := d.aside.write(ctx, b.ptr+cu.DevicePtr(off), p)
	if e := d.aside.stream.Synchronize(); err == nil {
		err = e
	}
	if err == nil || err == ctx.Err() {
		return err
	}
	return wrap("writing to the device", err)
}

func (a *aside) make() (err error) {
	if !a.made {
		if a.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return err
		}
		a.made = true
	}
	return nil
}

// write starts the copies; two are in flight at a time.
func (a *aside) write(ctx context.Context, to cu.DevicePtr, p []byte) error {
	direct := len(p) >= directLeast && driver.PageLocked(p)
	most := directChunk
	if !direct {
		most = stagingBlock
	}
	if err := a.staging.make(); err != nil {
		return err
	}
	for i := 0; len(p) > 0; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		done := &a.staging.done[i&1]
		if i >= 2 {
			if err := done.Synchronize(); err != nil {
				return err
			}
		}
		q := p[:min(len(p), most)]
		from := q
		if !direct {
			from = a.staging.block[i&1][:len(q)]
			copyLines(from, int64(len(q)), q, int64(len(q)), backend.Lines{Width: int64(len(q)), Count: 1})
		}
		if err := cu.MemcpyHtoDAsync(to, unsafe.Pointer(&from[0]), int64(len(q)), a.stream); err != nil {
			return err
		}
		if err := done.Record(a.stream); err != nil {
			return err
		}
		p, to = p[len(q):], to+cu.DevicePtr(len(q))
	}
	return nil
}

// free frees the stream and the blocks; the context is current.
func (a *aside) free() error {
	err := a.staging.free()
	if a.made {
		a.made = false
		if e := a.stream.Destroy(); err == nil {
			err = e
		}
	}
	return err
}
